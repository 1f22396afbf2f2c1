# SPDX-License-Identifier: Apache-2.0
"""A ping that goes on while something happens, and tells exactly what was lost."""

import re

from .wait import wait_until


class SteadyPing:
    """where: whatever has spawn(): a node, a pod, a runtime's container."""

    def __init__(self, where, address, interval=0.02, name="ping"):
        self.process = where.spawn(name, f"ping -n -i {interval} {address}")
        self.wait_more(3)

    def answered(self):
        """Numbers of the requests that were answered, as they came."""
        return [int(n) for n in re.findall(r"icmp_seq=(\d+) ttl=", self.process.log)]

    def wait_more(self, n=10, timeout=20):
        """Until that many more have been answered."""
        goal = len(self.answered()) + n
        wait_until(lambda: len(self.answered()) >= goal, timeout, f"{n} more answers to {self}")

    def stop(self):
        """End it; returns the numbers of lost requests. The last ones may still be on their way."""
        self.process.kill()
        seen = set(self.answered())
        return sorted(set(range(1, max(seen))) - seen)

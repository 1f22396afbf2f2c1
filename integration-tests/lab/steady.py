# SPDX-License-Identifier: Apache-2.0
"""A ping that goes on while something happens, and tells exactly what was lost."""

import re

from .wait import wait_until

# A reply that takes longer than this counts as lost.
GRACE = 5


class SteadyPing:
    """where: whatever has spawn(): a node, a pod, a runtime's container."""

    def __init__(self, where, address, interval=0.02, name="ping"):
        # -O: also a line for each request that is unanswered when the next one is sent.
        self.process = where.spawn(name, f"ping -O -n -i {interval} {address}")
        self.wait_more(3)

    def answered(self):
        """Numbers of the requests that were answered, as they came."""
        return [int(n) for n in re.findall(r"icmp_seq=(\d+) ttl=", self.process.log)]

    def wait_more(self, n=10, timeout=20):
        """Until that many more have been answered."""
        goal = len(self.answered()) + n
        wait_until(lambda: len(self.answered()) >= goal, timeout, f"{n} more answers to {self}")

    def stop(self):
        """End it; returns the numbers of lost requests, of all that were sent until this call.

        Replies come in order: one to a later request says that no other is on its way. Where
        none comes, nothing passes any more."""
        # The last one that was sent has no line yet, if it is unanswered.
        last = max(int(n) for n in re.findall(r"icmp_seq=(\d+)", self.process.log)) + 1
        try:
            wait_until(lambda: max(self.answered()) > last, GRACE, "the last replies")
        except AssertionError:
            pass
        self.process.kill()
        return sorted(set(range(1, last + 1)) - set(self.answered()))

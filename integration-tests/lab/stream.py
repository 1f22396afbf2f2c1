# SPDX-License-Identifier: Apache-2.0
"""A ping that runs while a test does its worst, and knows which replies never came.

    with Stream(pod, other.address) as stream:
        ...
    # leaving the block fails if a request between the first and the last reply had none
"""

import re
import signal

from .wait import wait_until


class Stream:
    """Twenty echo requests a second out of a pod."""

    def __init__(self, pod, address, name="stream"):
        """pod: a lab Pod."""
        self.process = pod.spawn(name, ["ping", "-n", "-i", "0.05", address])
        self.wait_more(5)

    def received(self):
        """Numbers of the replies so far."""
        return {int(n) for n in re.findall(r"bytes from .* icmp_seq=(\d+)", self.process.log)}

    def wait_more(self, n=20, timeout=60):
        """Until n more replies have come."""
        before = len(self.received())
        wait_until(lambda: len(self.received()) >= before + n, timeout, f"{n} more replies",
                   poll=0.1)

    def lost(self):
        """Requests without a reply; the newest may still be on their way."""
        got = self.received()
        return sorted(set(range(1, max(got) + 1)) - got)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        if kind is None:
            self.wait_more()
            lost = self.lost()
            self.process.signal(signal.SIGINT)
            self.process.wait()
            assert not lost, f"{len(lost)} of {max(self.received())} were lost: {lost[:20]}"
        else:
            self.process.kill()

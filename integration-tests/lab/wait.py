# SPDX-License-Identifier: Apache-2.0
"""Waiting for something that only the outside can tell us."""

import time


def wait_until(fn, timeout=10, what="", errors=(), poll=0.01):
    """Call fn until it returns something true; return that.

    errors: exceptions that mean "not yet" (say OSError while a server starts). All
    others end the wait at once: a broken test should not look like a slow one.
    Time limits are there against hangs; make them ten times what you expect.
    """
    deadline = time.monotonic() + timeout
    while True:
        last = None
        try:
            last = fn()
            if last:
                return last
        except errors as e:
            last = e
        if time.monotonic() >= deadline:
            raise AssertionError(f"waited {timeout} s for {what or fn}; last: {last!r}")
        # 10 ms: short against what we wait for, long against the cost of most fn.
        time.sleep(poll)

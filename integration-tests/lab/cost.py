# SPDX-License-Identifier: Apache-2.0
"""What a process costs: memory from /proc, wake-ups by strace."""

import pathlib
import re
import signal

from .wait import wait_until


def status(pid, field):
    """A number of /proc/PID/status: kB, or a count."""
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(rf"^{field}:\s+(\d+)", text, re.M)[1])


def family(pid):
    """The process and its children."""
    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *map(int, children)]


def wait_quiet(pid, seconds=3):
    """Until it has slept for so long: what its start has left to do is done."""
    before = None

    def quiet():
        nonlocal before
        last, before = before, status(pid, "voluntary_ctxt_switches")
        return last == before
    wait_until(quiet, 60, "the agent to come to rest", poll=seconds)


def watch(node, pid):
    """strace of every call in which it, or a child of it, may sleep for something to do."""
    traced = [x for p in family(pid) for x in ("-p", p)]
    tracer = node.spawn("strace", ["strace", "-T", "-e",
                                   "trace=epoll_wait,epoll_pwait,ppoll,read,recvfrom,recvmsg",
                                   *traced])
    tracer.wait_log("attached")
    return tracer


def wakeups(tracer):
    """Of the calls that took more than a millisecond, those that have ended: their seconds."""
    tracer.signal(signal.SIGINT)
    tracer.wait()
    return [s for s in map(float, re.findall(r"<(\d+\.\d+)>$", tracer.log, re.M)) if s > 0.001]

# SPDX-License-Identifier: Apache-2.0
"""What an agent costs that has 250 pods and nothing to do."""

import pathlib
import re
import shutil
import signal
import time

import pytest

from lab import wait_until

PODS, INTERFACES, SECONDS = 50, 5, 60
# The goals are 16 MB and 12 a minute (docs/FIGURES.md); the bounds leave room for a busy machine.
RSS_KB, WAKEUPS = 24 * 1024, 30

pytestmark = pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")


def status(pid, field):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(rf"^{field}:\s+(\d+)", text, re.M)[1])


def family(pid):
    """The process and its children."""
    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *map(int, children)]


def wait_quiet(pid, seconds=3):
    """Until it has slept for so long: what the pods' start has left to do is done."""
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
    """Of the calls that took more than a millisecond, those that have ended."""
    tracer.signal(signal.SIGINT)
    tracer.wait()
    return [s for s in map(float, re.findall(r"<(\d+\.\d+)>$", tracer.log, re.M)) if s > 0.001]


@pytest.mark.limit(300)
def test_250_pods_cost_little(cluster):
    [agent] = cluster()
    agent.fill(PODS, INTERFACES)
    wait_until(lambda: len(agent.keys("address")) == PODS * INTERFACES, 30, "the keys in etcd")
    assert len(agent.pod_routes()) == PODS * INTERFACES
    agent.wait_agreed()
    wait_quiet(agent.process.pid)

    tracer = watch(agent.node, agent.process.pid)
    # The one thing to wait for is time itself.
    time.sleep(SECONDS)
    slept = wakeups(tracer)
    rss = status(agent.process.pid, "VmRSS")
    print(f"250 pods: {rss / 1024:.1f} MB resident "
          f"({status(agent.process.pid, 'RssAnon') / 1024:.1f} MB of its own), "
          f"{len(slept)} wake-ups in {SECONDS} s")
    assert sum(slept) > SECONDS / 2, "strace has seen too little to count"
    assert rss <= RSS_KB
    assert len(slept) <= WAKEUPS

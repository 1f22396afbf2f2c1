# SPDX-License-Identifier: Apache-2.0
"""What an agent costs that has 250 pods and nothing to do."""

import shutil
import time

import pytest

from lab import wait_until
from lab.cost import status, wait_quiet, wakeups, watch

PODS, INTERFACES, SECONDS = 50, 5, 60
# The goals are 16 MB and 12 a minute (docs/BENCHMARKS.md); the bounds leave room for a busy machine.
RSS_KB, WAKEUPS = 24 * 1024, 30

pytestmark = pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")


@pytest.mark.limit(300)
@pytest.mark.plain("it measures memory")
@pytest.mark.slow(65)
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

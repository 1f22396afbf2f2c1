# SPDX-License-Identifier: Apache-2.0
"""What one agent watches, counted at a real etcd: no key by two watches."""

import re
import shutil

from lab import wait_until
from lab.agent import PREFIX, Agent, pool
from lab.slow import Slow


def watchers(etcd):
    """How many watches etcd itself serves."""
    member = etcd.members[0]
    text = member.node.run(["curl", "-s", f"{member.url}/metrics"]).stdout
    return int(re.search(r"^etcd_debugging_mvcc_watcher_total (\d+)", text, re.M)[1])


def test_no_prefix_is_watched_twice(lab, etcd, build):
    before = watchers(etcd)
    tap = Slow(etcd)
    pool(etcd)
    agent = Agent(lab.node("n1"), build, tap, bird=shutil.which("bird") or "/usr/sbin/bird").start()
    wait_until(lambda: watchers(etcd) == before + 11, 20, "the watches of an agent with BIRD")

    pool(etcd, "far", cidr="10.77.0.0/16", encapsulation="vxlan")
    wait_until(lambda: (PREFIX + "block/", PREFIX + "block0") in tap.watched(), 20,
               "an overlay: all blocks are watched")
    ranges = tap.watched()
    assert sorted(key.removeprefix(PREFIX) for key, _ in ranges) == [
        "block/", "config", "extent/", "filter/", "host/n1/", "node/", "peer/", "pool/",
        "recovery", "removed/n1", "spec/", "static-route/"]
    for key, end in ranges:
        inside = [k for k, e in ranges if (k, e) != (key, end) and (k < key < e or k == key)]
        assert not inside, f"{key} is watched by {inside} too"
    wait_until(lambda: watchers(etcd) == before + len(ranges), 10, "etcd to count the same")
    agent.stop()
    tap.close()

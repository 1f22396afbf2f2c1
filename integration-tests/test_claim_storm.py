# SPDX-License-Identifier: Apache-2.0
"""A whole cluster starts: every node claims its first block of one pool at the same time.

tools/claim_storm.c is the nodes, with the agents' own claim code; etcd is a real one. That a
claim succeeds is what the tool says; that no block has two owners is read from etcd.
"""

import ipaddress
import json
import os
import pathlib

import pytest

NODES = 5000
POOL = ipaddress.ip_network("10.64.0.0/12")
BLOCK = 26


def etcd_load(etcd):
    """(CPU seconds so far, peak resident MB) of etcd's process."""
    pid = etcd.members[0].process.pid
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12])
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    peak = next(int(x.split()[1]) for x in status.splitlines() if x.startswith("VmHWM"))
    return ticks / os.sysconf("SC_CLK_TCK"), peak / 1024


def storm(lab, build, networks, timeout):
    """Run it on an etcd of its own; returns etcd and what the tool printed."""
    etcd = lab.etcd()
    node = lab.node("nodes")
    etcd.join(node)
    before, _ = etcd_load(etcd)
    done = node.run([build / "claim-storm", "--etcd", etcd.endpoints, "--nodes", NODES,
                     "--networks", networks], timeout=timeout)
    said = json.loads(done.stdout)
    after, peak = etcd_load(etcd)
    print(json.dumps({**said, "etcd_cpu_s": round(after - before, 2), "etcd_rss_mb": round(peak)}))
    return etcd, said


def check_keys(etcd, network):
    """One block for each node, none twice, all of the pool, each with its index."""
    blocks = etcd.dump(f"/roost/v1/block/{network}/")
    owners = {k.rpartition("/")[2]: json.loads(v)["node"] for k, v in blocks.items()}
    assert len(owners) == NODES and len(set(owners.values())) == NODES
    cut = [ipaddress.ip_network(b.replace("-", "/")) for b in owners]
    assert all(b.prefixlen == BLOCK and b.subnet_of(POOL) for b in cut)
    assert len(etcd.dump(f"/roost/v1/extent/{network}/")) == 1
    return {f"/roost/v1/host/{node}/ipv4/block/{network}/{block}" for block, node in owners.items()}


def check(etcd, said, networks):
    claims = NODES * networks
    assert (said["claimed"], said["failed"]) == (claims, 0)
    assert said["tried"] <= 1.3 * claims, f"{said['ratio']:.2f} transactions for a block"
    wanted = set().union(*(check_keys(etcd, f"net-{i}") for i in range(networks)))
    assert {kv.key for kv in etcd.list("/roost/v1/host/")} == wanted


@pytest.mark.limit(250)
def test_five_thousand_nodes_claim_their_first_block_at_once(lab, build):
    check(*storm(lab, build, 1, 240), 1)


@pytest.mark.limit(1800)
@pytest.mark.skipif(os.environ.get("ROOST_STORM_FULL") != "1",
                    reason="takes minutes: ROOST_STORM_FULL=1 runs it")
def test_five_thousand_nodes_on_ten_networks(lab, build):
    check(*storm(lab, build, 10, 1700), 10)

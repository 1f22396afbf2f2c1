# SPDX-License-Identifier: Apache-2.0
"""Agents over the lease server: the same pods, without credentials for etcd."""

import json

from lab.agent import PREFIX, Agent, pool
from lab.controller import etcd_txn
from lab.lease_agent import LeaseServers
from lab.wait import wait_until


def overlay(etcd):
    pool(etcd, "over", "10.5.0.0/16", blockSize=24, encapsulation="vxlan")


def record(etcd, key):
    return json.loads(etcd.get(PREFIX + key))


def test_one_pool_for_nodes_with_and_without_etcd(lab, etcd, build):
    overlay(etcd)
    servers = LeaseServers(lab, etcd, build, 2)
    leased = [Agent(lab.node(f"n{i}"), build, servers).start() for i in (1, 2)]
    direct = Agent(lab.node("n3"), build, etcd).start()
    held = [{a.assign(c)[0]: c for c in "xy"} for a in (*leased, direct)]
    blocks = [a.blocks() for a in (*leased, direct)]
    assert [list(b.values()) for b in blocks] == [["owned"]] * 3, blocks
    assert len({b for owned in blocks for b in owned}) == 3
    for agent, owned in zip(leased, blocks):
        assert servers.leased(agent) == set(owned)
        address = etcd.switch.address(agent.node)
        assert record(etcd, f"node/lease-{address}")["vtep"]["mac"][1] in "26ae"
        assert address in agent.process.log and "towards the lease server" in agent.process.log
        assert agent.status()["health"] == "ok"

    # Nobody answers: what is ours serves on, also after a restart.
    for s in servers:
        s.kill()
    n1 = leased[0]
    reason = n1.wait_health("lease-server")
    assert reason.startswith("the lease server is out of reach: http")
    held[0][n1.assign("z")[0]] = "z"
    n1.restart()
    assert n1.held() == held[0] and n1.blocks() == blocks[0]
    held[0][n1.assign("after")[0]] = "after"

    # One of them comes back, which need not be the one that was asked before.
    servers[1].start()
    for agent, owned, pods in zip(leased, blocks, held):
        agent.wait_well("lease-server", 30)
        agent.restart()
        assert agent.blocks() == owned and agent.held() == pods
        assert servers.leased(agent) == set(owned)
    assert "belongs to" not in n1.log and "vanished" not in n1.log


def test_a_lease_that_was_lost(lab, etcd, build):
    """Another has it: pods keep their addresses, new ones get them elsewhere."""
    overlay(etcd)
    servers = LeaseServers(lab, etcd, build)
    agent = Agent(lab.node("n1"), build, servers, "--minute", "1000").start()
    address = agent.assign("a")[0]
    (block, _), = agent.blocks().items()
    key = block.replace("/", "-")
    index = f"host/lease-{etcd.switch.address(agent.node)}/ipv4/block/default/{key}"
    etcd_txn(etcd, {
        "node/lease-192.0.2.99": {"ipv4": "192.0.2.99/32", "machine": "lease", "boot": "lease"},
        f"block/default/{key}": {"node": "lease-192.0.2.99", "pool": "over", "token": "t",
                                 "lease": {"publicIP": "192.0.2.99"}},
    }, [index])
    wait_until(lambda: agent.blocks().get(block) == "lost", 20, "the block to be lost")
    assert agent.held() == {address: "a"}
    other = agent.assign("b")[0]
    assert servers.leased(agent) == {b for b, s in agent.blocks().items() if s == "owned"}
    assert agent.held() == {address: "a", other: "b"}

    # Nobody has it any more: it is asked for by name, and ours again.
    etcd.delete(PREFIX + f"block/default/{key}")
    wait_until(lambda: agent.blocks().get(block) == "owned" and block in servers.leased(agent), 60,
               "the block to be ours again")

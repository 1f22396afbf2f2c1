# SPDX-License-Identifier: Apache-2.0
"""Agents over the lease server: the same pods, without credentials for etcd."""

import json

from lab.agent import PREFIX, Agent, pool
from lab.cluster import Member
from lab.controller import etcd_txn
from lab.lease_agent import LeaseServers
from lab.wait import wait_until


def overlay(etcd):
    pool(etcd, "over", "10.5.0.0/16", blockSize=24, encapsulation="vxlan")


class Pod:
    def __init__(self, member, name):
        self.member, self.pod = member, member.node.pod(name)
        self.start()

    def start(self):
        result = self.member.add(self.pod.name, self.pod.netns)
        self.address = result["ips"][0]["address"].split("/")[0]


def reach(pods, timeout=30):
    for a in pods:
        for b in pods:
            if a is not b:
                wait_until(lambda: a.pod.ping(b.address), timeout, f"{a.pod} to reach {b.pod}")


def test_one_pool_for_nodes_with_and_without_etcd(lab, etcd, build):
    overlay(etcd)
    servers = LeaseServers(lab, etcd, build, 2)
    leased = [Member(lab.node(f"n{i}"), build, servers).start() for i in (1, 2)]
    n1 = leased[0]
    members = [*leased, Member(lab.node("n3"), build, etcd).start()]
    pods = [Pod(m, f"p-{m.node.name}") for m in members]
    reach(pods)
    blocks = [m.blocks() for m in members]
    assert [list(b.values()) for b in blocks] == [["owned"]] * 3, blocks
    assert len({b for owned in blocks for b in owned}) == 3
    for m, owned in zip(leased, blocks):
        assert servers.leased(m) == set(owned)
        vtep = json.loads(etcd.get(f"{PREFIX}node/lease-{m.address}"))["vtep"]
        assert vtep["mac"] in m.node.run("ip link show dev roost.vxlan").stdout
        assert "towards the lease server" in m.log and m.status()["health"] == "ok"

    # Nobody answers: what is ours serves on, and others are reached, also after a restart.
    for s in servers:
        s.kill()
    reason = n1.wait_health("lease-server")
    assert reason.startswith("the lease server is out of reach: http")
    assert n1.status()["etcd"]["server"] == "lease-server"
    pods.append(Pod(n1, "meanwhile"))
    n1.restart()
    pods.append(Pod(n1, "restarted"))
    assert n1.blocks() == blocks[0]
    reach(pods)

    # One of them comes back, which need not be the one that was asked before.
    servers[1].start()
    for m, owned in zip(leased, blocks):
        m.wait_well("lease-server", 30)
        held = m.held()
        m.restart()
        assert m.blocks() == owned and m.held() == held
        assert servers.leased(m) == set(owned)
    assert "belongs to" not in n1.log and "vanished" not in n1.log
    reach(pods)


def test_a_lease_that_was_lost(lab, etcd, build):
    """Another has it: pods keep their addresses, new ones get them elsewhere."""
    overlay(etcd)
    servers = LeaseServers(lab, etcd, build, tls=True)
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
    assert agent.held()[address] == "a"
    other = agent.assign("b")[0]
    assert servers.leased(agent) == {b for b, s in agent.blocks().items() if s == "owned"}
    assert agent.held()[address] == "a" and agent.held()[other] == "b"

    # Nobody has it any more: it is asked for by name, and ours again.
    etcd.delete(PREFIX + f"block/default/{key}")
    wait_until(lambda: agent.blocks().get(block) == "owned" and block in servers.leased(agent), 60,
               "the block to be ours again")

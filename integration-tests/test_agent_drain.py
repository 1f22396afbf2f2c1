# SPDX-License-Identifier: Apache-2.0
"""A drained node: nothing new, what runs stays, empty blocks go back."""

import json

from lab import wait_until
from lab.cni import failure

SENTENCE = ("node n1 is drained and gives no new addresses; `roostctl node undrain n1` ends that")


def test_a_drained_node_keeps_what_runs_and_takes_nothing_new(cluster):
    agent, = cluster()
    etcd = agent.etcd
    etcd.put("/roost/v1/pool/zone", json.dumps({"cidr": "10.9.0.0/24", "blockSize": 26}))
    pod = agent.node.pod("p1")
    held = agent.add("c1", pod.netns)
    wait_until(lambda: "zone" in agent.status()["pools"], 30, "the pool to be known")
    other = agent.assign("c2", pools=["zone"])
    before = agent.blocks()
    assert len(before) == 2 and not agent.status().get("drained")

    etcd.put("/roost/v1/spec/n1", json.dumps({"drain": True, "labels": {"rack": "r1"}}))
    reason = agent.wait_health("drain", timeout=30)
    assert reason == ("node n1 is drained: it gives no new addresses, 2 pods are left; `roostctl "
                      "node undrain n1` ends that")
    status = agent.status()
    assert status["drained"] and status["ready"] and status["attachments"] == 2
    assert agent.metrics()["roost_drained"] == 1
    assert agent.get("/readyz").status == 200, "the agent does what it should"

    error = agent.refuses("c3")
    assert (error.status, error.code, error.text) == (503, 11, SENTENCE)
    # An error here would make the kubelet's node NotReady, and have it evict what runs.
    for path in ("/v1/ipam/status", "/v1/ready"):
        assert agent.api("GET", path).status == 200
    agent.cni("STATUS", "", version="1.1.0")
    # Also where another IPAM plugin gives the address.
    foreign = {"ipam": {"type": "host-local", "ranges": [[{"subnet": "10.77.0.0/24"}]], "dataDir": "/run/host-local"}}
    refused = failure(agent.cni, "ADD", "c4", agent.node.pod("p4").netns, conf=foreign)
    assert refused.code == 11 and SENTENCE in str(refused)

    # What is there stays: the same ADD again, the routes, the block.
    assert agent.assign("c2", pools=["zone"]) == other
    assert held["ips"][0]["address"].split("/")[0] in agent.held()
    assert agent.blocks() == before

    # The last pod of a block takes it along.
    agent.release("c2")
    wait_until(lambda: list(agent.keys("ipv4/block")) == [
        f"default/{b.replace('/', '-')}" for b in agent.blocks()] and len(agent.blocks()) == 1,
        30, "the empty block to be given back")
    assert agent.wait_health("drain", "1 pod is left", 30)
    agent.delete("c1", pod.netns)
    wait_until(lambda: not agent.blocks() and not agent.keys("ipv4/block"), 30,
               "the last block to be given back")
    agent.wait_health("drain", "0 pods are left", 30)

    # Also over a restart, with etcd away or not.
    agent.restart()
    assert agent.refuses("c3").text == SENTENCE

    etcd.put("/roost/v1/spec/n1", json.dumps({"labels": {"rack": "r1"}}))
    agent.wait_well("drain", 30)
    assert agent.assign("c3")
    assert agent.api("GET", "/v1/ready").status == 200


def test_a_restart_without_etcd_remembers_the_drain(cluster):
    agent, = cluster()
    assert agent.assign("c1")
    agent.etcd.put("/roost/v1/spec/n1", json.dumps({"drain": True}))
    agent.wait_health("drain", timeout=30)
    # The local copy of the records has it too.
    agent.etcd.kill()
    agent.kill()
    agent.start(timeout=60)
    assert agent.refuses("c2").text == SENTENCE
    assert agent.assign("c1")


def test_the_list_says_all_of_an_attachment(cluster):
    agent, = cluster()
    pod = agent.node.pod("p1")
    result = agent.add("c1", pod.netns)
    a, = agent.list()["attachments"]
    inside = next(i for i in result["interfaces"] if i.get("sandbox"))
    outside = next(i for i in result["interfaces"] if not i.get("sandbox"))
    assert (a["container"], a["interface"], a["network"]) == ("c1", "eth0", "pods")
    assert (a["link"], a["mac"], a["netns"]) == (outside["name"], inside["mac"], str(pod.netns))
    assert (a["ipam"], a["state"], a["mark"]) == ("roost-ipam", "attached", False)
    assert a["since"] >= agent.status()["started"][:19]
    b, = agent.list()["blocks"]
    assert (b["state"], b["pool"], b["used"]) == ("owned", a["addresses"][0]["pool"], 1)
    assert b["free"] + b["resting"] == 63

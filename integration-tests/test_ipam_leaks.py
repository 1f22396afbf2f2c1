# SPDX-License-Identifier: Apache-2.0
"""Addresses whose pod is gone though nobody said so; garbage; notes in the spool; reboots.

Where leaks are looked for a minute is 100 ms: the agent looks every 100 ms and wants
evidence for 200 ms, where it would take one and two minutes.
"""

import json
import time

from lab import wait_until
from lab.agent import pool

SPOOL = "/run/roost/spool"


def leaky(agents):
    return agents("--minute", "100").start()


def note(agent, container, boottime=None, **more):
    """Leaves a DEL in the spool as a plugin does."""
    boottime = boottime or time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    path = f"{SPOOL}/{boottime}-1.json"
    agent.node.write(path + ".tmp", json.dumps(
        {"network": "pods", "container": container, "interface": "eth0", "boottime": boottime,
         **more}))
    agent.node.path(path + ".tmp").rename(agent.node.path(path))


# --- leaks ---------------------------------------------------------------------------------------


def test_a_vanished_namespace_is_evidence_where_others_are_seen(etcd, agents):
    pool(etcd, cidr="10.1.0.0/24")
    agent = leaky(agents)
    pods = {n: agent.node.pod(n) for n in ("stays", "goes", "changes")}
    args = "IgnoreUnknown=1;K8S_POD_NAMESPACE=prod;K8S_POD_NAME="
    for name, p in pods.items():
        agent.plugin("ADD", name, netns=p.netns, args=args + name)
    agent.plugin("ADD", "proc", netns=f"/proc/{agent.process.pid}/ns/net")
    agent.plugin("ADD", "never", netns="/run/netns/was-never-there")
    agent.plugin("ADD", "elsewhere", netns="/run/elsewhere/x")
    pods["goes"].delete()
    pods["changes"].delete()
    agent.node.pod("changes")  # the same name, another namespace
    wait_until(lambda: set(agent.held().values()) == {"stays", "proc", "never", "elsewhere"}, 10,
               "the two leaks to be released")
    assert "leak: pod prod/goes, container goes" in agent.log
    assert "leak: pod prod/changes, container changes" in agent.log
    assert agent.log.count("leak: ") == 2
    agent.wait_agreed()


def test_without_others_to_see_nothing_is_evidence(etcd, agents):
    """An agent in a container of its own may just not see that directory."""
    pool(etcd, cidr="10.1.0.0/24")
    agent = leaky(agents)
    p = agent.node.pod("only")
    agent.plugin("ADD", "only", netns=p.netns)
    p.delete()
    # Five looks later, as a second attachment in another directory proves.
    other = agent.node.pod("mark")
    agent.node.run(["mkdir", "-p", "/run/b"])
    for name in "x", "y":
        agent.node.run(["touch", f"/run/b/{name}"])
        agent.plugin("ADD", name, netns=f"/run/b/{name}")
    agent.node.run(["rm", "/run/b/x"])
    wait_until(lambda: "x" not in agent.held().values(), 10, "the leak that can be seen")
    assert set(agent.held().values()) == {"only", "y"}
    other.delete()


def test_a_leak_of_an_earlier_agent_is_found(etcd, agents):
    """The inode is in the file; the suspicion starts anew."""
    pool(etcd, cidr="10.1.0.0/24")
    agent = leaky(agents)
    for name in "stays", "goes":
        agent.plugin("ADD", name, netns=agent.node.pod(name).netns)
    agent.kill()
    agent.node.run("ip netns delete goes")
    agent.start()
    wait_until(lambda: set(agent.held().values()) == {"stays"}, 10, "the leak to be released")
    agent.wait_agreed()


def test_garbage_collection_releases_what_is_not_listed(etcd, agents):
    """Of its own network only; a list is required, and an empty one is a list."""
    pool(etcd, cidr="10.1.0.0/24")
    agent = agents().start()
    for network in "pods", "other":
        for c in "abc":
            agent.assign(c, network=network)
    given = {x["container"]: x["addresses"][0]["address"] for x in agent.list()["attachments"]
             if x["network"] == "pods"}
    valid = [{"container": "a", "interface": "eth0"}, {"container": "b", "interface": "eth1"}]
    released = agent.call("gc", network="pods", valid=valid)["released"]
    assert sorted(released) == sorted([given["b"], given["c"]])
    assert len(agent.held()) == 4
    agent.plugin("GC", conf={"cniVersion": "1.1.0", "name": "pods", "type": "x",
                             "ipam": {"type": "roost-ipam"}, "cni.dev/valid-attachments": []})
    assert {x["network"] for x in agent.list()["attachments"]} == {"other"}
    agent.wait_agreed()


# --- the spool -----------------------------------------------------------------------------------


def test_notes_are_taken_at_the_start_and_while_running(etcd, agents):
    pool(etcd, cidr="10.1.0.0/24")
    agent = agents().start()
    for c in "abc":
        agent.assign(c)
    agent.wait_agreed()
    agent.stop()
    agent.plugin("DEL", "a")
    agent.plugin("DEL", "unknown")
    assert len(list(agent.node.path(SPOOL).iterdir())) == 2
    agent.start()
    assert set(agent.held().values()) == {"b", "c"}
    note(agent, "b")
    wait_until(lambda: set(agent.held().values()) == {"c"}, 5, "the note to be taken")
    wait_until(lambda: not list(agent.node.path(SPOOL).iterdir()), 5, "the spool to be empty")
    assert "left in the spool" in agent.log
    agent.wait_agreed()


def test_an_old_note_frees_nothing(etcd, agents):
    """DEL without an agent, then a new ADD of the same attachment, then the note is found."""
    pool(etcd, cidr="10.1.0.0/24")
    agent = agents().start()
    before = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    address = agent.assign("a")
    note(agent, "a", before)
    agent.process.wait_log("older than the attachment that it names")
    assert agent.assign("a") == address
    agent.kill()
    note(agent, "a", before)
    agent.start()
    assert agent.assign("a") == address and not list(agent.node.path(SPOOL).iterdir())


def test_garbage_in_the_spool_is_told_and_removed(etcd, agents):
    pool(etcd, cidr="10.1.0.0/24")
    agent = agents().start()
    address = agent.assign("a")
    agent.kill()
    agent.node.write(f"{SPOOL}/1-1.json", "{")
    agent.node.write(f"{SPOOL}/2-1.json", '{"network":"pods","container":"a"}')
    agent.node.write(f"{SPOOL}/3-1.json", "x" * 100000)
    agent.node.write(f"{SPOOL}/4-1.json.tmp", "half a no")
    agent.node.run(["mkdir", f"{SPOOL}/5-1.json"])
    agent.start()
    for name in "1-1", "2-1", "3-1":
        assert f"spool/{name}.json is invalid" in agent.log
    assert agent.assign("a") == address
    note(agent, "a")
    wait_until(lambda: agent.held() == {}, 5, "a good note behind the bad ones")


# --- reboot --------------------------------------------------------------------------------------


def test_after_a_reboot_nothing_of_the_old_boot_blocks_an_address(etcd, agents):
    """Files are gone with /run, etcd's keys are of another boot, the blocks are still ours."""
    pool(etcd, cidr="10.1.0.0/28", blockSize=28)
    agent = agents().start()
    for i in range(16):
        agent.assign(f"old{i}")
    agent.wait_agreed()
    blocks = agent.blocks()
    agent.kill()
    agent.node.reboot()
    agent.start()
    assert agent.held() == {} and agent.blocks() == blocks
    wait_until(lambda: agent.keys("address") == {}, 5, "the old keys to be deleted")
    assert len({agent.assign(f"new{i}")[0] for i in range(16)}) == 16
    agent.wait_agreed()

# SPDX-License-Identifier: Apache-2.0
"""Addresses while etcd is away, empty, old or wrong: nothing lost, nothing given twice."""

import threading
import time

import pytest

from lab import wait_until
from lab.agent import PREFIX, pool, put

BLOCK = PREFIX + "block/default/"


def first_answer(etcd):
    """When etcd, just started, answered for the first time."""
    for m in etcd.members:
        m.launch()
    etcd.wait_healthy()
    return time.monotonic()


@pytest.mark.parametrize("killed", [False, True], ids=["the agent lives", "the agent is killed"])
def test_pods_come_and_go_without_etcd(etcd, agents, killed):
    """The agent is killed after a DEL that etcd never heard of: it must not come back as in use."""
    pool(etcd, cidr="10.1.0.0/24")
    agent = agents().start()
    before = {c: agent.assign(c)[0] for c in ("a", "b", "c")}
    agent.wait_agreed()
    etcd.stop()
    agent.wait_health("etcd")

    agent.plugin("DEL", "a")
    agent.plugin("ADD", "d")
    if killed:
        agent.restart()
        agent.plugin("DEL", "b")
        agent.plugin("ADD", "e")
        assert "files of this boot" in agent.log
    held = agent.held()
    assert set(held.values()) == ({"c", "d", "e"} if killed else {"b", "c", "d"})
    assert held[before["c"]] == "c" and agent.assign("c") == [before["c"]]

    start = first_answer(etcd)
    agent.wait_agreed(2)
    assert time.monotonic() - start < 2
    assert agent.held() == held and "etcd" not in agent.health()
    agent.restart().wait_agreed(2)
    assert agent.held() == held


def test_a_del_in_the_last_moment_is_not_forgotten(etcd, agents):
    """SIGKILL right after the reply: etcd still has the key, the file is gone."""
    pool(etcd, cidr="10.1.0.0/24")
    agent = agents().start()
    for i in range(4):
        agent.assign("a")
        agent.wait_agreed()
        etcd.members[0].pause()
        assert agent.release("a")
        agent.kill()
        etcd.members[0].resume()
        agent.start()
        assert agent.held() == {}
        agent.wait_agreed(2)


def test_a_del_left_in_the_spool_is_not_forgotten(etcd, agents):
    """The note frees the address before etcd has told what it knows of it."""
    pool(etcd, cidr="10.1.0.0/24")
    agent = agents().start()
    agent.assign("a"), agent.assign("b")
    agent.wait_agreed()
    agent.kill()
    agent.plugin("DEL", "a")
    agent.start()
    assert set(agent.held().values()) == {"b"}
    agent.wait_agreed(2)


def test_an_add_waits_for_etcd(etcd, agents):
    """Of the block that it needs: an outage of a second is not the runtime's business."""
    pool(etcd, cidr="10.1.0.0/24", blockSize=32)
    agent = agents().start()
    agent.assign("a")
    etcd.stop()
    agent.wait_health("etcd")
    agent.plugin("DEL", "a")
    agent.plugin("ADD", "a")  # the one that it has
    got = []
    t = threading.Thread(target=lambda: got.append(agent.assign("b")))
    t.start()
    wait_until(lambda: "b" not in agent.held().values(), 1)
    etcd.start()
    t.join(20)
    assert len(got) == 1 and len(agent.held()) == 2
    agent.wait_agreed()


@pytest.mark.parametrize("new_id", [False, True], ids=["same id", "new id"])
def test_an_emptied_etcd_is_filled_again(etcd, agents, new_id):
    """Pool and extent are gone with the rest: what runs keeps its addresses, claimed as before."""
    pool(etcd, cidr="10.1.0.0/24", blockSize=28)
    agents = [agents().start() for _ in range(2)]
    held = [{agent.assign(c)[0]: c for c in "ab"} for agent in agents]
    for agent in agents:
        agent.wait_agreed()
    blocks = etcd.dump(BLOCK).keys()
    etcd.wipe(new_id)
    for agent, h in zip(agents, held):
        agent.wait_agreed()
        assert agent.held() == h
    assert etcd.dump(BLOCK).keys() == blocks
    assert PREFIX + "extent/default/web" in etcd.dump(PREFIX)
    assert agents[0].refuses("new").code == 100  # no pool, no new addresses
    pool(etcd, cidr="10.1.0.0/24", blockSize=28)
    wait_until(lambda: agents[0].status()["pools"].get("web"), 5)
    assert agents[0].assign("new")[0] not in set(held[0]) | set(held[1])
    agents[0].wait_agreed()


def test_an_emptied_etcd_under_a_dead_agent(etcd, agents):
    """It comes back with its files, and etcd knows nothing."""
    pool(etcd, cidr="10.1.0.0/24", blockSize=28)
    agent = agents().start()
    held = {agent.assign(c)[0]: c for c in "ab"}
    agent.wait_agreed()
    agent.kill()
    etcd.wipe()
    agent.start().wait_agreed()
    assert agent.held() == held


def test_an_older_etcd_is_brought_up_to_date(etcd, agents):
    """Restored: a block claimed since is unknown there, one released since is there again."""
    pool(etcd, cidr="10.1.0.0/24", blockSize=30, cooldownSeconds=0)
    agent = agents().start()
    held = {agent.assign(c)[0]: c for c in "abcde"}
    agent.wait_agreed()
    snapshot = etcd.save()
    held.update({agent.assign(c)[0]: c for c in "fghij"})
    for c in "ab":
        held.pop(agent.release(c)[0])
    agent.wait_agreed()
    etcd.restore(snapshot, new_id=False)
    agent.wait_agreed()
    assert agent.held() == held
    agent.assign("k")
    agent.wait_agreed()


def test_a_block_that_another_took_is_lost(etcd, agents):
    """etcd was restored from before the claim; meanwhile a new node got the same block."""
    pool(etcd, cidr="10.1.0.0/26")  # one block
    first, second = agents().start(), agents()
    empty = etcd.save()
    mine = first.assign("a")[0]
    first.assign("b")
    first.wait_agreed()
    first.node.plugs[0].switch.cut(first.node)
    etcd.restore(empty)
    second.start()
    theirs = second.assign("x")[0]
    second.wait_agreed()
    first.node.plugs[0].switch.restore(first.node)

    # The first held it when etcd went back; the other one could not know that it did.
    reason = second.wait_health("block/default/10.1.0.0-26", "belongs to node n1", timeout=30)
    assert "10.1.0.0/26" in reason
    assert second.blocks() == {"10.1.0.0/26": "lost"} and first.blocks() == {"10.1.0.0/26": "owned"}
    assert first.held()[mine] == "a" and first.assign("a") == [mine]
    assert second.held() == {theirs: "x"} and second.assign("x") == [theirs]
    assert second.refuses("c").code == 100
    assert second.refuses("c", addresses=["10.1.0.60"]).code == 102
    second.restart()
    assert second.held() == {theirs: "x"} and second.refuses("c").code == 100
    second.wait_health("block/default/10.1.0.0-26", "belongs to node n1")

    second.release("x")
    wait_until(lambda: second.blocks() == {}, 5, "the lost block to be forgotten")
    second.wait_well("block/default/10.1.0.0-26")
    first.wait_agreed(), second.wait_agreed()


@pytest.mark.parametrize("size, cut", [(28, "alike"), (26, "another way")])
def test_an_emptied_etcd_with_a_pool_made_anew(etcd, agents, size, cut):
    """Under another name, and claimed by the other node before we are back."""
    pool(etcd, cidr="10.1.0.0/24", blockSize=28)
    first, second = agents("--minute", "200").start(), agents()
    held = {first.assign(c)[0]: c for c in "ab"}
    (block,) = first.blocks()
    first.wait_agreed()
    first.kill()
    etcd.wipe()
    pool(etcd, "new", "10.1.0.0/24", blockSize=size)
    second.start()
    given = {second.assign(f"c{i}")[0] for i in range(20)}
    second.wait_agreed()
    first.start()
    assert first.held() == held
    if cut == "alike":
        first.wait_agreed()
        more = {first.assign(f"m{i}")[0] for i in range(20)}
        assert not more & (given | set(held))
        assert set(etcd.dump(PREFIX + "extent/")) == {PREFIX + "extent/default/new"}
    else:
        reason = first.wait_health(f"block/default/{block.replace('/', '-')}", "pool new")
        assert "/26" in reason and first.blocks()[block] == "claiming"
        more = {first.assign(f"m{i}")[0] for i in range(20)}
        assert not more & (given | set(held))
        for c in "ab":
            first.release(c)
        wait_until(lambda: block not in first.blocks(), 10, "the block to be forgotten")
        first.wait_agreed()


def test_keys_deleted_by_hand_come_back(etcd, agents):
    pool(etcd, cidr="10.1.0.0/24", blockSize=28)
    agent = agents().start()
    held = {agent.assign("a")[0]: "a"}
    agent.wait_agreed()
    (block,) = agent.blocks()
    key = block.replace("/", "-")
    index = f"{PREFIX}host/n1/ipv4/block/default/{key}"
    for keys in ([index], [BLOCK + key, index], [f"{PREFIX}host/n1/address/default/{min(held)}"],
                 [f"{PREFIX}node/n1"], [BLOCK + key, index, f"{PREFIX}extent/default/web"]):
        for k in keys:
            assert etcd.delete(k) == 1
        wait_until(lambda: all(etcd.get(k) for k in keys), 5, f"{keys} to come back")
        agent.wait_agreed()
        assert agent.held() == held and agent.assign("a") == list(held)
    agent.assign("b")
    agent.wait_agreed()


def test_a_block_key_deleted_by_hand_comes_back(etcd, agents):
    """Nobody watches it, so it is looked at every minute."""
    pool(etcd, cidr="10.1.0.0/24", blockSize=28)
    agent = agents("--minute", "200").start()
    agent.assign("a")
    agent.wait_agreed()
    (block,) = agent.blocks()
    key = BLOCK + block.replace("/", "-")
    etcd.delete(key)
    wait_until(lambda: etcd.get(key), 5, "the block to be claimed again")
    agent.wait_agreed()


def test_cut_off_for_long_it_gives_no_new_addresses(etcd, agents):
    """reclaimAfter less ten minutes; a minute is 100 ms here, so it is 0.5 s."""
    put(etcd, "config", reclaimAfter=900)
    pool(etcd, cidr="10.1.0.0/24")
    agent = agents("--minute", "100").start()
    old = agent.assign("a")
    agent.assign("b")
    agent.wait_agreed()
    etcd.stop()
    wait_until(lambda: not agent.status()["ready"], 10, "the agent to stop giving addresses")
    e = agent.refuses("c")
    assert e.code == 11 and "last confirmed more than 5 minutes ago" in e.text
    assert agent.release("b") and agent.plugin("CHECK", "a", conf=check(old)) is None
    agent.kill()
    agent.spawn()  # the clock goes on over a restart
    wait_until(lambda: "more than 5 minutes" in agent.status()["reason"], 10, errors=OSError)
    assert agent.refuses("c").code == 11 and set(agent.held().values()) == {"a"}
    etcd.start()
    agent.wait_ready()
    agent.assign("c")
    agent.wait_agreed()


def check(addresses):
    return {"cniVersion": "1.0.0", "name": "pods", "type": "x", "ipam": {"type": "roost-ipam"},
            "prevResult": {"cniVersion": "1.0.0",
                           "ips": [{"address": f"{a}/32"} for a in addresses]}}

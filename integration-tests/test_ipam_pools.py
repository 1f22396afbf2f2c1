# SPDX-License-Identifier: Apache-2.0
"""Pools: who gets which address, from which block, and what becomes of edited pools."""

import concurrent.futures
import ipaddress
import json

import pytest

from lab import wait_until
from lab.agent import PREFIX, pool, put

EXTENT = PREFIX + "extent/default/"


def ip(text):
    return ipaddress.ip_address(text)


def all_blocks(etcd):
    """{(network, block): node} by etcd's block keys; none may overlap another of its network."""
    found = {}
    for key, value in etcd.dump(PREFIX + "block/").items():
        network, block = key[len(PREFIX + "block/"):].split("/")
        found[network, ipaddress.ip_network(block.replace("-", "/"))] = json.loads(value)["node"]
    for (n1, b1) in found:
        for (n2, b2) in found:
            assert (n1, b1) == (n2, b2) or n1 != n2 or b1.version != b2.version or \
                not b1.overlaps(b2), f"{b1} and {b2} are both claimed"
    return found


def seen(agent, name):
    """Wait until the agent knows this pool."""
    wait_until(lambda: name in agent.status()["pools"], 5, f"pool {name}")


# --- exactly as many as there are ----------------------------------------------------------------


@pytest.mark.parametrize("size", [29, 31, 32])
def test_a_pool_serves_to_its_last_address(etcd, agents, size):
    """Two nodes share 16 addresses; the 17th is refused by name; one DEL makes room at once."""
    pool(etcd, cidr="10.1.0.0/28", blockSize=size)
    agents = [agents().start() for _ in range(2)]
    given = {}
    for i in range(16):
        agent = agents[i % 2]
        try:
            address, = agent.assign(f"c{i}")
        except AssertionError:  # the other node has the free ones
            agent = agents[1 - i % 2]
            address, = agent.assign(f"c{i}")
        assert address not in given
        given[address] = (agent, f"c{i}")
    assert len(given) == 16 and all(ip(a) in ipaddress.ip_network("10.1.0.0/28") for a in given)
    for agent in agents:
        e = agent.refuses("late")
        assert (e.status, e.code) == (507, 100)
        assert "web" in e.text and "10.1.0.0/28" in e.text and "16 addresses" in e.text
    address, (agent, container) = given.popitem()
    agent.release(container)
    assert agent.assign("late") == [address]  # though it had to rest for a minute
    for agent in agents:
        agent.wait_agreed()
    assert all_blocks(etcd)


def test_a_full_pool_under_many_clients_at_once(etcd, agents):
    pool(etcd, cidr="10.1.0.0/27", blockSize=29)
    agent = agents().start()

    def add(i):
        reply = agent.api("POST", "/v1/ipam/assign", {"network": "pods", "container": f"c{i}",
                                                      "interface": "eth0"})
        return reply.body["addresses"][0]["address"] if reply.status == 200 else reply.body["code"]
    with concurrent.futures.ThreadPoolExecutor(16) as threads:
        got = list(threads.map(add, range(40)))
    assert sorted(a for a in got if a == 100) == [100] * 8
    assert len({a for a in got if a != 100}) == 32
    agent.wait_agreed()


def test_a_fixed_address_moves_between_nodes(etcd, agents):
    """blockSize 32: each address is a block of its own, given back when it has rested."""
    pool(etcd, cidr="10.1.0.0/24", blockSize=32, cooldownSeconds=1)
    first, second = agents().start(), agents().start()
    assert first.assign("a", addresses=["10.1.0.77"]) == ["10.1.0.77"]
    e = second.refuses("a", addresses=["10.1.0.77"])
    assert (e.status, e.code) == (409, 102) and "n1" in e.text
    assert first.refuses("b", addresses=["10.1.0.77"]).code == 102
    first.release("a")
    wait_until(lambda: not first.blocks(), 10, "the block to be given back")
    assert second.assign("a", addresses=["10.1.0.77"]) == ["10.1.0.77"]
    first.wait_agreed(), second.wait_agreed()
    for wrong in "10.1.1.1", "fd00::1":
        assert first.refuses("c", addresses=[wrong]).code == 102


# --- what etcd shows -----------------------------------------------------------------------------


def test_a_node_with_pod_cidrs_claims_in_them_alone(etcd, agents):
    pool(etcd, "web", "10.1.0.0/16", blockSize=26)
    pool(etcd, "other", "10.2.0.0/16", blockSize=26, namespaces=["other"])
    put(etcd, "spec/n1", podCIDRs=["10.1.7.0/25"])
    agent = agents().start()
    given = {agent.assign(f"c{i}")[0] for i in range(128)}
    assert given == {str(a) for a in ipaddress.ip_network("10.1.7.0/25")}
    assert "pool web" in str(agent.refuses("one-too-many"))
    # A pool without a range of this node's is as free as ever; another's range is not to be had.
    assert ip(agent.assign("elsewhere", namespace="other")[0]) in ipaddress.ip_network("10.2.0.0/16")
    agent.refuses("beside", addresses=["10.1.9.1"])
    assert {str(b) for _, b in all_blocks(etcd) if b.overlaps(ipaddress.ip_network("10.1.0.0/16"))} == \
        {"10.1.7.0/26", "10.1.7.64/26"}


def test_keys_are_what_people_can_read(etcd, agents):
    """Line 6: the documented command lists exactly the claimed blocks."""
    pool(etcd, cidr="10.1.0.0/24", blockSize=28)
    pool(etcd, "six", "fd00:1::/112", blockSize=124)
    agents = [agents().start() for _ in range(2)]
    for agent in agents:
        for i in range(18):
            agent.plugin("ADD", f"c{i}", netns=f"/run/netns/c{i}",
                         args=f"IgnoreUnknown=1;K8S_POD_NAMESPACE=prod;K8S_POD_NAME=web-{i}")
    for agent in agents:
        agent.wait_agreed()
    listed = [k for k in etcd.ctl("get", "--prefix", PREFIX, "--keys-only").splitlines()
              if "host/" in k and "/ipv4/block/" in k]
    blocks = all_blocks(etcd)
    assert sorted(listed) == sorted(
        f"{PREFIX}host/{node}/ipv4/block/{network}/{str(block).replace('/', '-')}"
        for (network, block), node in blocks.items() if block.version == 4)
    assert len(listed) >= 4
    for agent in agents:
        records = agent.keys("address")
        assert len(records) == 36
        for key, record in records.items():
            i = record["container"][1:]
            assert record["namespace"] == "prod" and record["pod"] == f"web-{i}"
            assert record["netns"] == f"/run/netns/c{i}" and record["interface"] == "eth0"
            assert record["boot"] == agent.node.boot_id and record["assigned"].endswith("Z")
            assert record["pool"] == ("six" if ":" in key else "web")


# --- which pool ----------------------------------------------------------------------------------


def test_both_families_or_one(etcd, agents):
    agent = agents().start()
    assert agent.refuses("x").code == 100  # no pool at all
    pool(etcd, "six", "fd00:1::/112")
    seen(agent, "six")
    one = agent.assign("a")
    assert len(one) == 1 and ip(one[0]) in ipaddress.ip_network("fd00:1::/112")
    assert [b.partition("/")[2] for b in agent.blocks()] == ["122"]
    pool(etcd, "four", "10.1.0.0/30", blockSize=30)
    seen(agent, "four")
    assert agent.assign("a") == one
    two = agent.assign("b")
    assert sorted(ip(a).version for a in two) == [4, 6]
    for c in "cde":
        agent.assign(c)
    # All or nothing: IPv4 is full, so no IPv6 address is taken either.
    assert agent.refuses("f").code == 100
    assert len(agent.held()) == 9
    assert sorted(agent.release("b")) == sorted(two)
    agent.wait_agreed()


def test_namespaces_names_selectors_and_disabled_pools(etcd, agents):
    """named > namespace > the rest by name; another node's and disabled ones never."""
    pool(etcd, "a-web", "10.1.0.0/24", namespaces=["web", "web-*"])
    pool(etcd, "b-gpu", "10.2.0.0/24", nodeSelector="gpu == 'yes'")
    pool(etcd, "c-all", "10.3.0.0/24")
    pool(etcd, "d-off", "10.4.0.0/24", disabled=True)
    pool(etcd, "e-net", "10.5.0.0/24", network="storage")
    agent = agents().start()

    def where(container, **more):
        address, = agent.assign(container, **more)
        return address.rpartition(".")[0]
    assert where("1", namespace="web") == where("2", namespace="web-x") == "10.1.0"
    assert where("3", namespace="webx") == where("4") == "10.3.0"
    assert where("5", pools=["a-web"]) == "10.1.0" and where("6", pools=["e-net"]) == "10.5.0"
    for name, words in ("b-gpu", "nodeSelector"), ("d-off", "disabled"), ("none", "none"):
        e = agent.refuses("7", pools=[name])
        assert e.code == 100 and name in e.text and words in e.text, e.text
    put(etcd, "spec/n1", labels={"gpu": "yes"})
    wait_until(lambda: where("8") == "10.2.0" or agent.release("8") is None, 5, "the label")
    # The label goes: what runs stays, nothing new comes from there, the block goes back later.
    put(etcd, "spec/n1", labels={})
    wait_until(lambda: where("9") == "10.3.0" or agent.release("9") is None, 5, "the label to go")
    assert where("8") == "10.2.0"
    agent.wait_agreed()


def test_what_a_pool_keeps_back_and_tells(etcd, agents):
    """prefix, gateway, routes, dns; edges, exclusions, range and gateway are never given."""
    pool(etcd, "net", "10.1.0.0/28", blockSize=28, prefix="pool", gateway="10.1.0.3",
         exclude=["10.1.0.4", "10.1.0.8/31"], rangeStart="10.1.0.2", rangeEnd="10.1.0.13",
         routes=[{"dst": "0.0.0.0/0", "gw": "10.1.0.3"}, {"dst": "10.0.0.0/8"}],
         dns={"nameservers": ["10.0.0.53", "fd00::53"], "domain": "x.test", "search": ["y.test"]})
    pool(etcd, "edges", "10.2.0.0/29", blockSize=29, reserveEdges=True, namespaces=["e"])
    agent = agents().start()
    full = agent.assign_full("c0")
    assert full["addresses"][0]["length"] == 28 and full["addresses"][0]["gateway"] == "10.1.0.3"
    assert full["routes"] == [{"dst": "0.0.0.0/0", "gw": "10.1.0.3"},
                              {"dst": "10.0.0.0/8", "gw": ""}]
    assert full["dns"] == {"nameservers": ["10.0.0.53", "fd00::53"], "domain": "x.test",
                           "search": ["y.test"]}
    assert full["existing"] is False and agent.assign_full("c0")["existing"] is True
    got = {full["addresses"][0]["address"]} | {agent.assign(f"c{i}")[0] for i in range(1, 8)}
    assert got == {f"10.1.0.{i}" for i in (2, 5, 6, 7, 10, 11, 12, 13)}
    assert agent.refuses("late").code == 100
    assert agent.refuses("late", addresses=["10.1.0.4"]).code == 102
    got = {agent.assign(f"e{i}", namespace="e")[0] for i in range(6)}
    assert got == {f"10.2.0.{i}" for i in range(1, 7)}
    assert agent.refuses("late", namespace="e").code == 100
    # By the plugin, in CNI's own shape.
    agent.release("c0")
    done = agent.plugin("ADD", "p")
    assert done["ips"][0]["address"].endswith("/28") and done["ips"][0]["gateway"] == "10.1.0.3"
    assert done["routes"][0] == {"dst": "0.0.0.0/0", "gw": "10.1.0.3"}
    assert done["dns"]["domain"] == "x.test"


# --- which block ---------------------------------------------------------------------------------


def test_blocks_are_claimed_ahead_and_given_back(etcd, agents):
    """Low water: a quarter of a block. Back: when empty for the cooldown, and enough is left."""
    pool(etcd, cidr="10.1.0.0/24", blockSize=28, cooldownSeconds=1)
    agent = agents().start()
    assert agent.blocks() == {}
    for i in range(12):
        agent.assign(f"c{i}")
    assert len(agent.blocks()) == 1
    agent.assign("c12")  # three left of sixteen
    wait_until(lambda: len(agent.blocks()) == 2, 5, "the next block ahead of need")
    for i in range(13, 40):
        agent.assign(f"c{i}")
    agent.wait_agreed()
    n = len(agent.blocks())
    assert n >= 3
    for i in range(40):
        agent.release(f"c{i}")
    wait_until(lambda: len(agent.blocks()) == 1, 10, "the empty blocks to be given back")
    agent.wait_agreed()
    assert len(all_blocks(etcd)) == 1


def test_preallocate_and_most_blocks(etcd, agents):
    pool(etcd, cidr="10.1.0.0/24", blockSize=30, preallocate=3, maxBlocksPerNode=4,
         cooldownSeconds=0)
    agent = agents().start()
    wait_until(lambda: len(agent.blocks()) == 3, 5, "the preallocated blocks")
    for i in range(16):
        agent.assign(f"c{i}")
    e = agent.refuses("late")
    assert e.code == 100 and "at most 4 blocks" in e.text and len(agent.blocks()) == 4
    for i in range(16):
        agent.release(f"c{i}")
    wait_until(lambda: len(agent.blocks()) == 3, 10, "what is too much to be given back")
    agent.wait_agreed()


def test_surplus_is_given_back_when_the_controller_asks(etcd, agents):
    """Even the last block, which would else be kept for the next pod."""
    pool(etcd, cidr="10.1.0.0/24", blockSize=28, cooldownSeconds=0)
    agent = agents().start()
    agent.assign("a")
    agent.release("a")
    agent.wait_agreed()
    assert len(agent.blocks()) == 1
    put(etcd, "host/n1/give-back/default")
    wait_until(lambda: agent.blocks() == {}, 10, "the block to be given back")
    wait_until(lambda: etcd.get(PREFIX + "host/n1/give-back/default") is None, 10,
               "the agent to answer")
    agent.assign("a")
    # Nothing to spare: answered at once.
    put(etcd, "host/n1/give-back/default")
    wait_until(lambda: etcd.get(PREFIX + "host/n1/give-back/default") is None, 10,
               "the agent to answer")
    assert len(agent.blocks()) == 1
    agent.wait_agreed()


def test_a_route_of_ours_marks_its_address(etcd, agents):
    """Whatever became of the file: found at the start, it is in use."""
    pool(etcd, cidr="10.1.0.0/29", blockSize=29)
    pool(etcd, "six", "fd00:1::/125", blockSize=125, namespaces=["six"])
    agent = agents()
    agent.node.ip("route add 10.1.0.3/32 dev eth0 proto 114", "route add 10.1.0.4/32 dev eth0")
    agent.node.run("ip -6 route add fd00:1::3/128 dev eth0 proto 114")
    agent.start()
    assert {agent.assign(f"c{i}")[0] for i in range(7)} == {f"10.1.0.{i}" for i in range(8)
                                                             if i != 3}
    e = agent.refuses("late", addresses=["10.1.0.3"])
    assert e.code == 102 and "route" in e.text
    assert agent.refuses("late").code == 100
    got = {agent.assign(f"s{i}", namespace="six", pools=["six"])[0] for i in range(7)}
    assert "fd00:1::3" not in got and len(got) == 7


# --- wrong pools, and edited ones ----------------------------------------------------------------


WRONG = [
    ({"cidr": "10.1.0.0/24", "blockSize": 33}, "blockSize"),
    ({"cidr": "10.1.0.0/24", "blockSize": 23}, "blockSize"),
    ({"cidr": "10.1.0.5/24"}, "cidr"),
    ({"cidr": "10.1.0.0/24", "rangeStart": "10.2.0.1"}, "rangeStart"),
    ({"cidr": "fd00::/64", "blockSize": 122}, "blockSize"),
    ({"cidr": "10.1.0.0/24", "nodeSelector": "zone =="}, "nodeSelector"),
    ({"blockSize": 26}, "cidr"),
    ({"cidr": "10.1.4.0/24"}, "a-old"),
    ({"cidr": "10.0.0.0/8"}, "a-old"),
]


def test_a_wrong_pool_is_refused_with_the_reason(etcd, agents):
    """From the start; and an edit that damages a good one changes nothing."""
    pool(etcd, "a-old", "10.1.0.0/16", namespaces=["old"])
    agent = agents().start()
    for i, (record, words) in enumerate(WRONG):
        name = f"bad{i}"
        put(etcd, f"pool/{name}", **record)
        reason = agent.wait_health(f"pool/{name}", words)
        assert name in reason and reason in agent.log
        e = agent.refuses("x", pools=[name])
        assert e.code == 100 and name in e.text
        assert agent.assign("y", namespace="old")
        put(etcd, f"pool/{name}", cidr=f"10.{200 + i}.0.0/24")
        agent.wait_well(f"pool/{name}")
        assert agent.assign(f"x{i}", pools=[name])[0].startswith(f"10.{200 + i}.0.")
        put(etcd, f"pool/{name}", **record)
        agent.wait_health(f"pool/{name}")
        assert agent.assign(f"z{i}", pools=[name])[0].startswith(f"10.{200 + i}.0.")
    agent.wait_agreed()


def test_an_edited_pool_is_cut_as_it_was(etcd, agents):
    """blockSize and cidr of a claimed pool: the extent rules, and the edit is reported."""
    pool(etcd, cidr="10.1.0.0/26", blockSize=28)
    agents = [agents().start() for _ in range(2)]
    given = [agents[0].assign(f"c{i}")[0] for i in range(3)]
    pool(etcd, cidr="10.1.0.0/24", blockSize=30)
    for agent in agents:
        reason = agent.wait_health("pool/web", "10.1.0.0/26")
        assert "28" in reason
    given += [agent.assign(f"d{i}")[0] for agent in agents for i in range(20)]
    assert len(set(given)) == 43
    assert all(ip(a) in ipaddress.ip_network("10.1.0.0/26") for a in given)
    assert {b.prefixlen for _, b in all_blocks(etcd)} == {28}
    for agent in agents:
        agent.wait_agreed()


def test_a_pool_made_anew_under_another_name_cuts_nothing_twice(etcd, agents):
    """Deleted with pods in it: they keep theirs, and the name's successor waits its turn."""
    pool(etcd, cidr="10.1.0.0/24", blockSize=28, cooldownSeconds=0)
    first, second = agents().start(), agents().start()
    given = {first.assign(f"c{i}")[0] for i in range(20)}
    etcd.delete(PREFIX + "pool/web")
    wait_until(lambda: not first.status()["pools"], 5, "the pool to go")
    assert first.refuses("late").code == 100
    assert set(first.held()) == given
    pool(etcd, "new", "10.1.0.0/24", blockSize=26)
    for agent in first, second:
        agent.wait_health("pool/new", "web")
    assert second.refuses("x").code == 100
    assert set(first.held()) == given and first.restart() and set(first.held()) == given
    # Its own name again: it goes on, whatever size it asks for now.
    etcd.delete(PREFIX + "pool/new")
    pool(etcd, cidr="10.1.0.0/24", blockSize=26)
    for agent in first, second:
        seen(agent, "web")
    more = {first.assign("late")[0], second.assign("x")[0]}
    assert len(given | more) == 22
    assert {b.prefixlen for _, b in all_blocks(etcd)} == {28}
    first.wait_agreed(), second.wait_agreed()


def test_a_pool_that_is_not_for_this_node_any_more_gets_its_blocks_back(etcd, agents):
    """Even the last one, once it is empty; and not before."""
    pool(etcd, cidr="10.1.0.0/24", blockSize=28, cooldownSeconds=0)
    agent = agents().start()
    agent.assign("a")
    pool(etcd, cidr="10.1.0.0/24", blockSize=28, cooldownSeconds=0, nodeSelector="zone == 'z'")
    wait_until(lambda: agent.api("POST", "/v1/ipam/assign", {
        "network": "pods", "container": "b", "interface": "eth0"}).status == 507
        or agent.release("b") is None, 5, "the selector to be seen")
    assert len(agent.blocks()) == 1
    agent.release("a")
    wait_until(lambda: agent.blocks() == {}, 10, "the block to be given back")
    agent.wait_agreed()
    assert all_blocks(etcd) == {} and etcd.get(EXTENT + "web")


def test_networks_do_not_meet(etcd, agents):
    """Equal ranges on two networks: the same address twice, and nobody minds."""
    pool(etcd, "one", "10.1.0.0/30", blockSize=30)
    pool(etcd, "two", "10.1.0.0/30", blockSize=30, network="storage")
    agent = agents().start()
    a = {agent.assign(f"c{i}")[0] for i in range(4)}
    b = {agent.assign(f"c{i}", interface="net1", pools=["two"])[0] for i in range(4)}
    assert a == b and len(a) == 4
    agent.wait_agreed()
    agent.restart().wait_agreed()


def test_a_resting_address_comes_last(etcd, agents):
    pool(etcd, cidr="10.1.0.0/29", blockSize=29)
    agent = agents().start()
    order = []
    for i in range(8):
        order += agent.assign("same")
        agent.release("same")
    assert len(set(order)) == 8
    assert agent.assign("again") == [order[0]]  # released longest ago

# SPDX-License-Identifier: Apache-2.0
"""IPAM configs in Whereabouts' words, by the plugin and the agent together."""

import ipaddress
import json
import pathlib

import pytest

from lab import cni, wait_until
from lab.agent import PREFIX, pool
from lab.cni import failure

DEBIAN = pathlib.Path("/usr/lib/cni")


def network(text):
    return ipaddress.ip_network(text)


def addresses(result):
    return [ipaddress.ip_interface(ip["address"]) for ip in result["ips"]]


def pools(etcd):
    return {k[len(PREFIX + "pool/"):]: json.loads(v)
            for k, v in etcd.dump(PREFIX + "pool/").items()}


def test_a_range_becomes_a_pool(etcd, agents):
    """Host bits masked, the whole range's length in the result, /26 blocks without a slice size."""
    agents = [agents().start() for _ in range(2)]
    conf = {"range": "10.5.3.225/20", "range_start": "10.5.0.10", "gateway": "10.5.0.1",
            "exclude": ["10.5.0.64/26"], "routes": [{"dst": "0.0.0.0/0"}]}
    got = [agents[i % 2].plugin("ADD", f"c{i}", conf) for i in range(8)]
    found = [addresses(r)[0] for r in got]
    assert len({a.ip for a in found}) == 8
    assert all(a.network == network("10.5.0.0/20") and a.ip >= ipaddress.ip_address("10.5.0.10")
               and a.ip not in network("10.5.0.64/26") for a in found)
    assert got[0]["ips"][0]["gateway"] == "10.5.0.1" and got[0]["routes"] == [{"dst": "0.0.0.0/0"}]
    made, = pools(etcd).values()
    assert made["cidr"] == "10.5.0.0/20" and made["origin"] == "ipam-config"
    assert made.get("blockSize", 26) == 26 and made["prefix"] == "pool"
    for agent in agents:
        agent.wait_agreed()
        # Pods that ask for nothing in particular never land there.
        assert agent.refuses("plain").code == 100
    for i in range(8):
        agents[i % 2].plugin("DEL", f"c{i}", conf)
    assert agents[0].held() == agents[1].held() == {}


def test_a_small_range_is_one_block_and_ends_clearly(etcd, agents):
    agent = agents().start()
    conf = {"range": "10.5.0.0/29"}
    got = [addresses(agent.plugin("ADD", f"c{i}", conf))[0] for i in range(6)]
    assert {a.ip.packed[3] for a in got} == {1, 2, 3, 4, 5, 6}  # edges are never given
    e = failure(agent.plugin, "ADD", "late", conf)
    assert e.code == 100 and "10.5.0.0/29" in e.msg
    agent.plugin("DEL", "c3", conf)
    assert addresses(agent.plugin("ADD", "late", conf)) == [got[3]]
    agent.wait_agreed()


def test_several_ranges_give_one_address_each(etcd, agents):
    """All pools are made by the first request; all addresses are given or none."""
    agent = agents().start()
    conf = {"ipRanges": [{"range": "10.5.0.0/24"}, {"range": "10.6.0.0/30"},
                         {"range": "fd00:5::/112", "exclude": ["fd00:5::/120"]}]}
    got = addresses(agent.plugin("ADD", "a", conf))
    assert [a.network for a in got] == [network(n) for n in
                                        ("10.5.0.0/24", "10.6.0.0/30", "fd00:5::/112")]
    assert got[2].ip >= ipaddress.ip_address("fd00:5::100")
    assert len(pools(etcd)) == 3
    agent.plugin("ADD", "b", conf)
    e = failure(agent.plugin, "ADD", "c", conf)
    assert e.code == 100 and "10.6.0.0/30" in e.msg
    assert len(agent.held()) == 6
    agent.wait_agreed()


def test_ten_interfaces_of_one_pod(etcd, agents):
    agent = agents().start()
    got = {}
    for i in range(10):
        conf = {**cni.conf("1.0.0", "x", {"range": f"10.5.{i}.0/24"}), "name": f"net{i}"}
        got[i] = addresses(agent.plugin("ADD", "pod", conf=conf, ifname=f"net{i}"))
        assert got[i][0].network == network(f"10.5.{i}.0/24")
    assert len(agent.list()["attachments"]) == 10
    agent.wait_agreed()
    agent.restart()
    for i in range(10):
        conf = {**cni.conf("1.0.0", "x", {"range": f"10.5.{i}.0/24"}), "name": f"net{i}"}
        assert addresses(agent.plugin("ADD", "pod", conf=conf, ifname=f"net{i}")) == got[i]
        agent.plugin("DEL", "pod", conf=conf, ifname=f"net{i}")
    assert agent.held() == {}
    agent.wait_agreed()


def test_one_range_on_two_networks(etcd, agents):
    """Two CNI networks share the range; with network_name they are two ranges."""
    agent = agents().start()

    def add(name, container, **ipam):
        conf = {**cni.conf("1.0.0", "x", {"range": "10.5.0.0/29", **ipam}), "name": name}
        return addresses(agent.plugin("ADD", container, conf=conf))[0].ip
    shared = {add(name, f"c{i}") for i in range(3) for name in ("red", "blue")}
    assert len(shared) == 6
    own = {add("green", f"c{i}", network_name="green") for i in range(6)}
    assert own == shared
    assert {p.get("network", "default") for p in pools(etcd).values()} == {"default", "green"}
    agent.wait_agreed()
    agent.restart().wait_agreed()


def test_a_range_that_grows(etcd, agents):
    """The old wording has its part, the new one all of it; nothing is cut twice."""
    agent = agents().start()
    small, large = {"range": "10.5.0.0/29"}, {"range": "10.5.0.0/27"}
    got = [addresses(agent.plugin("ADD", f"s{i}", small))[0] for i in range(6)]
    more = [addresses(agent.plugin("ADD", f"l{i}", large))[0] for i in range(20)]
    assert all(a.network == network("10.5.0.0/27") for a in more)
    ips = {a.ip for a in got + more}
    assert len(ips) == 26
    assert failure(agent.plugin, "ADD", "late", small).code == 100
    agent.wait_agreed()
    # Shrinking again below what is live is another size.
    e = failure(agent.plugin, "ADD", "odd", {"range": "10.5.0.0/28"})
    assert e.code == 100 and "10.5.0." in e.msg
    agent.restart()
    assert addresses(agent.plugin("ADD", "s0", small))[0].ip == got[0].ip
    agent.wait_agreed()


def test_slice_sizes(etcd, agents):
    """Its own from the start; added to a live range it keeps the cut; another is refused."""
    agents = [agents().start() for _ in range(2)]
    sliced = {"range": "10.5.0.0/24", "node_slice_size": "/28"}
    for i, agent in enumerate(agents):
        agent.plugin("ADD", f"c{i}", sliced)
        assert [b.partition("/")[2] for b in agent.blocks()] == ["28"]
    e = failure(agents[0].plugin, "ADD", "odd", {**sliced, "node_slice_size": "/27"})
    assert e.code == 100 and "/28" in e.msg
    agents[0].plugin("ADD", "none", {"range": "10.5.0.0/24"})
    agents[0].plugin("ADD", "live", {"range": "10.6.0.0/24"})
    agents[0].plugin("ADD", "added", {"range": "10.6.0.0/24", "node_slice_size": "/28"})
    assert [b for b in agents[0].blocks() if b.startswith("10.6.") and b.endswith("/26")]
    for agent in agents:
        agent.wait_agreed()


def test_a_strangers_pool_is_not_taken(etcd, agents):
    pool(etcd, "pods", "10.5.0.0/16")
    agent = agents().start()
    e = failure(agent.plugin, "ADD", "a", {"range": "10.5.1.0/24"})
    assert e.code == 100 and "pods" in e.msg
    assert list(pools(etcd)) == ["pods"]
    agent.plugin("ADD", "a", {"range": "10.5.1.0/24", "network_name": "other"})
    agent.wait_agreed()


def test_two_nodes_make_one_pool(etcd, agents):
    """At once: one transaction wins, and both use what it made."""
    agents = [agents().start() for _ in range(3)]
    started = [a.node.popen([a.build / "roost-ipam"], stdin=-1, stdout=-1, text=True,
                            env=cni.environment("ADD")) for a in agents]
    conf = json.dumps(cni.conf("1.0.0", "x", {"range": "10.5.0.0/24"}))
    for p in started:
        p.stdin.write(conf)
        p.stdin.close()
    got = [addresses(json.loads(p.stdout.read()))[0] for p in started if p.wait(20) == 0]
    assert len({a.ip for a in got}) == 3 and len(pools(etcd)) == 1
    for agent in agents:
        agent.wait_agreed()


@pytest.mark.skipif(not (DEBIAN / "bridge").exists(),
                    reason="Debian's containernetworking-plugins is not installed")
def test_pods_on_debians_bridge(etcd, agents):
    """Pods of one range answer their gateway; DEL gives all back."""
    agent = agents().start()
    conf = {**cni.conf("1.0.0", "bridge", {"range": "10.5.0.0/24", "gateway": "10.5.0.1"}),
            "bridge": "br9", "isGateway": True}
    pods = [agent.node.pod(f"p{i}") for i in range(2)]

    def main(verb, pod, conf=conf):
        return cni.call(agent.node, DEBIAN / "bridge", verb, conf, container=pod.name,
                        netns=pod.netns, path=f"{agent.build}:{DEBIAN}")
    results = [main("ADD", p) for p in pods]
    for p, r in zip(pods, results):
        ip = str(addresses(r)[0].ip)
        wait_until(lambda: agent.node.ping(ip), 10, f"{p} to answer")
        main("CHECK", p, {**conf, "prevResult": r})
        main("DEL", p)
    assert agent.held() == {}
    agent.wait_agreed()

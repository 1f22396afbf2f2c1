# SPDX-License-Identifier: Apache-2.0
"""libcni's own driver runs our plugins: chains, capabilities, CHECK, the cache."""

import json

import pytest

from lab import libcni, wait_until
from lab.agent import pool
from lab.cluster import CONF, NETWORK, PORTMAP, ROOST, VERSIONS
from lab.libcni import Libcni, LibcniError, build_driver

pytestmark = pytest.mark.skipif(bool(libcni.missing()), reason=libcni.missing())

BANDWIDTH = {"type": "bandwidth", "capabilities": {"bandwidth": True}}
TUNING = {"type": "tuning", "sysctl": {"net.ipv4.conf.eth0.arp_filter": "1"}}


@pytest.fixture
def one(cluster, build):
    """A node, libcni on it, and a pod's namespace."""
    [member] = cluster()
    return member, Libcni(member.node, build_driver(build)), member.node.pod("p1")


WANTED = {"portMappings": [{"hostPort": 18081, "containerPort": 80, "protocol": "tcp"}],
          "bandwidth": {"ingressRate": 8000000, "ingressBurst": 8000000,
                        "egressRate": 8000000, "egressBurst": 8000000}}


def no_other_links(n1):
    """The bandwidth plugin's own helper link goes after ours."""
    wait_until(lambda: {x["ifname"] for x in n1.ip("link")} == {"lo", "eth0"}, 10,
               "the shaping link to go")


def test_a_chain_of_four_plugins(one):
    n1, cni, pod = one
    n1.install([ROOST, PORTMAP, BANDWIDTH, TUNING])
    cni("validate", CONF)
    result = cni.add(CONF, "c1", pod.netns, capabilities=WANTED)
    address = result["ips"][0]["address"].split("/")[0]
    assert cni.cached() == [f"{NETWORK}-c1-eth0"]
    [link] = n1.pod_links()
    assert " tbf " in n1.node.run(["tc", "qdisc", "show", "dev", link]).stdout
    assert f"{address}:80" in n1.node.run("iptables -t nat -S").stdout
    assert pod.run("cat /proc/sys/net/ipv4/conf/eth0/arp_filter").stdout == "1\n"
    assert n1.node.ping(address)
    cni.delete(CONF, "c1", pod.netns, capabilities=WANTED)
    assert cni.cached() == []
    assert address not in n1.node.run("iptables -t nat -S").stdout
    pod.delete()
    n1.wait_no_trace()
    no_other_links(n1)


def test_check_of_a_chain_holds_at_once(etcd, cluster, build):
    """Without portmap: the CHECK of Debian's looks for IPv4's rules in IPv6's table."""
    pool(etcd, "web6", "fd00:1::/112")
    [n1] = cluster()
    n1.node.ip("addr add fd00:250::1/64 dev eth0 nodad")  # to ask from
    cni, pod = Libcni(n1.node, build_driver(build)), n1.node.pod("p1")
    n1.install([ROOST, BANDWIDTH, TUNING])
    result = cni.add(CONF, "c1", pod.netns, capabilities=WANTED)
    cni.check(CONF, "c1", pod.netns, capabilities=WANTED)
    v4, v6 = [ip["address"].split("/")[0] for ip in result["ips"]]
    assert n1.node.ping(v4) and n1.node.ping(v6)
    cni.delete(CONF, "c1", pod.netns, capabilities=WANTED)
    pod.delete()
    n1.wait_no_trace()
    no_other_links(n1)


def test_check_tells_what_is_wrong(one):
    n1, cni, pod = one
    cni.add(CONF, "c1", pod.netns)
    cni.check(CONF, "c1", pod.netns)
    pod.run("ip route del default")
    with pytest.raises(LibcniError, match="route"):
        cni.check(CONF, "c1", pod.netns)
    pod.run("ip link del eth0")
    with pytest.raises(LibcniError, match="eth0"):
        cni.check(CONF, "c1", pod.netns)
    cni.delete(CONF, "c1", pod.netns)
    with pytest.raises(LibcniError):
        cni.check(CONF, "c1", pod.netns)
    pod.delete()
    n1.wait_no_trace()


def test_several_interfaces_of_one_pod(one):
    n1, cni, pod = one
    results = [cni.add(CONF, "c1", pod.netns, ifname=name) for name in ("eth0", "net1")]
    addresses = {r["ips"][0]["address"].split("/")[0] for r in results}
    assert len(addresses) == 2 and set(n1.pod_routes()) == addresses
    assert all(n1.node.ping(a) for a in addresses)
    cni.delete(CONF, "c1", pod.netns, ifname="net1")
    wait_until(lambda: len(n1.pod_links()) == 1, 10, "the second link to go")
    cni.delete(CONF, "c1", "", ifname="eth0")
    cni.delete(CONF, "c1", "", ifname="eth0")
    pod.delete()
    n1.wait_no_trace()


def test_a_single_plugin_configuration(one):
    n1, cni, pod = one
    path = "/etc/cni/net.d/10-roost.conf"
    n1.node.write(path, json.dumps({**VERSIONS, "name": NETWORK, **ROOST}))
    result = cni.add(path, "c1", pod.netns)
    assert n1.node.ping(result["ips"][0]["address"].split("/")[0])
    cni.check(path, "c1", pod.netns)
    cni.delete(path, "c1", pod.netns)
    pod.delete()
    n1.wait_no_trace()


def test_the_reason_reaches_the_runtime(one):
    n1, cni, pod = one
    n1.kill()
    with pytest.raises(LibcniError, match="start roostd"):
        cni.add(CONF, "c1", pod.netns)
    cni.delete(CONF, "c1", pod.netns)
    n1.start()
    pod.delete()
    n1.wait_no_trace()

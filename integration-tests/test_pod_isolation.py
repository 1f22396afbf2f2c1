# SPDX-License-Identifier: Apache-2.0
"""What a pod cannot do to its host and its neighbours, nor anybody to it."""

import contextlib
import json
import shutil
import socket
import struct

import pytest

from lab import wait_until
from lab.agent import pool
from lab.cluster import Member
from lab.cni import failure
from lab.packets import advertisement, ethernet, udp4, udp6

HOST_MAC = "ee:ee:ee:ee:ee:ee"
HOST_LL, POD_LL = "fe80::ecee:eeff:feee:eeee", "fe80::1"
PORT = 5005
IPV4, IPV6 = 0x0800, 0x86DD


class Inmate:
    """A pod that sends whatever it likes."""

    def __init__(self, member, name, **conf):
        self.member, self.pod = member, member.node.pod(name)
        result = member.add(name, self.pod.netns, conf=conf)
        self.result = result
        self.addresses = [ip["address"].split("/")[0] for ip in result["ips"]]
        self.address = self.addresses[0]
        self.link = next(i["name"] for i in result["interfaces"] if not i.get("sandbox"))
        self.mac = next(i["mac"] for i in result["interfaces"] if i.get("sandbox"))

    def send(self, dst, data, src=None, port=PORT):
        kind, own, udp = ((IPV6, self.addresses[-1], udp6) if ":" in dst else
                          (IPV4, self.address, udp4))
        frame = ethernet(HOST_MAC, self.mac, kind, udp(src or own, dst, port, data))
        with self.pod.socket(socket.AF_PACKET, socket.SOCK_RAW) as s:
            s.bind(("eth0", 0))
            s.send(frame)


@contextlib.contextmanager
def listening(where, family=socket.AF_INET, port=PORT):
    """where: a node or a pod. heard() is all that has arrived, once "the end" has."""
    with where.socket(family, socket.SOCK_DGRAM) as s:
        s.bind(("", port))
        s.settimeout(20)

        def heard():
            said = []
            while (data := s.recv(100)) != b"the end":
                said.append(data)
            return said
        yield heard


def protected(member):
    """Until the table is there; a restarted agent makes it again."""
    wait_until(lambda: member.status().get("firewall", {}).get("protection") == "set", 20,
               f"{member} to protect its node")
    return member


def drops(member, reason):
    return member.metrics()[f'roost_firewall_drops_total{{reason="{reason}"}}']


def publish(member, container, result, port, to):
    """What a chained portmap does for a hostPort."""
    conf = {"type": "portmap", "capabilities": {"portMappings": True}, "snat": True,
            "prevResult": {"cniVersion": "1.0.0", **result},
            "runtimeConfig": {"portMappings": [{"hostPort": port, "containerPort": to,
                                                "protocol": "tcp"}]}}
    member.cni("ADD", container, f"/run/netns/{container}", conf=conf, quiet=False)


@contextlib.contextmanager
def serving(where, port, address=""):
    """A TCP server; calls() are the addresses of who has connected so far."""
    with where.socket(socket.AF_INET, socket.SOCK_STREAM) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind((address, port))
        server.listen()
        server.settimeout(1)

        def calls():
            got = []
            with contextlib.suppress(TimeoutError):
                while True:
                    connection, (peer, _) = server.accept()
                    connection.close()
                    got.append(peer)
            return got
        yield calls


def connects(where, address, port, timeout=1.5):
    with where.socket(socket.AF_INET, socket.SOCK_STREAM) as s:
        s.settimeout(timeout)
        return s.connect_ex((address, port)) == 0


@pytest.mark.skipif(not shutil.which("iptables"), reason="portmap needs iptables")
def test_a_published_port_does_not_open_the_hosts_loopback(cluster):
    """portmap with snat sets route_localnet on the pod's link, and nobody resets it."""
    [n1] = cluster()
    protected(n1)
    pod = Inmate(n1, "p1")
    publish(n1, "p1", pod.result, 18080, 8080)
    assert n1.node.run(["sysctl", "-n", f"net.ipv4.conf.{pod.link}.route_localnet"]).stdout == "1\n"
    with listening(n1.node) as heard:
        pod.send("127.0.0.1", b"to the loopback")
        pod.send("127.8.8.8", b"to another address of it")
        pod.send(n1.address, b"the end")
        assert heard() == []
    assert drops(n1, "loopback") >= 2
    # What the port is for goes on: also from the host's own loopback.
    with serving(pod.pod, 8080) as calls:
        assert connects(n1.node, "127.0.0.1", 18080)
        assert connects(n1.node, n1.address, 18080)
        assert len(calls()) == 2
    # An operator may want it otherwise.
    n1.kill().start("--pod-loopback", "allow")
    wait_until(lambda: "127.0.0.0" not in n1.node.run("nft list table inet roost").stdout, 20,
               "the loopback to be open")
    with listening(n1.node) as heard:
        pod.send("127.0.0.1", b"to the loopback")
        pod.send(n1.address, b"the end")
        assert heard() == [b"to the loopback"]


def test_ipv6_is_off_for_pods_without_it(cluster):
    """The host's end would have a link-local address, and with it all that listens on [::]."""
    [n1] = cluster(1, "--minute", "2000")  # the kernel does not report this setting
    protected(n1)
    n1.node.configure("eth0", "fd50::1/64")
    pod = Inmate(n1, "p1")
    pod.pod.run(["sh", "-c", "echo 0 > /proc/sys/net/ipv6/conf/eth0/disable_ipv6"])
    pod.pod.run("ip link set eth0 down")
    pod.pod.run("ip link set eth0 up")
    with listening(n1.node, socket.AF_INET6) as heard:
        for dst, src in ((HOST_LL, POD_LL), ("fd50::1", "fd66::7"), ("fd50::1", "2001:db8::1"),
                         ("fd50::1", POD_LL)):
            pod.send(dst, b"over IPv6", src=src)
        pod.send(n1.address, b"the end")
        assert heard() == []
    # It is kept so.
    n1.node.sysctl(f"net.ipv6.conf.{pod.link}.disable_ipv6", 0)
    wait_until(lambda: n1.node.run(["sysctl", "-n", f"net.ipv6.conf.{pod.link}.disable_ipv6"]).stdout
               == "1\n", 30, "IPv6 to be off again")


def vxlan(inner, vni=4096):
    return struct.pack("!BBHI", 8, 0, 0, vni << 8) + inner


def test_nobody_but_nodes_sends_into_the_overlay(lab, etcd, cluster):
    n1, n2 = cluster(2)
    pool(etcd, encapsulation="vxlan")
    for m in n1, n2:
        wait_until(lambda: "@nodes4" in m.node.run("nft list table inet roost", check=False).stdout, 20,
                   f"{m} to close its tunnel")
    a, c, b = Inmate(n1, "a"), Inmate(n1, "c"), Inmate(n2, "b")
    wait_until(lambda: a.pod.ping(b.address), 30, "the tunnel to work")
    stranger = lab.node("stranger")
    etcd.join(stranger)
    tunnel = json.loads(n2.node.run("ip -j link show roost.vxlan").stdout)[0]["address"]

    def inject(where, said, src):
        """By a plain UDP socket: the inner packet comes from a pod that did not send it."""
        frame = ethernet(tunnel, "02:00:00:00:00:07", IPV4, udp4(src, b.address, PORT, said))
        with where.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.sendto(vxlan(frame), (n2.address, 4789))

    def attack():
        with listening(b.pod) as heard:
            inject(a.pod, b"from a pod", c.address)
            inject(b.pod, b"from a pod of the node itself", c.address)
            inject(stranger, b"from a stranger", c.address)
            c.send(b.address, b"from c")
            c.send(b.address, b"the end")
            return heard()
    assert attack() == [b"from c"]
    assert drops(n1, "vxlan") >= 1 and drops(n2, "vxlan") >= 1 and drops(n2, "underlay") >= 1
    # A packet that came through the table is one that the device takes: so it was well made.
    for m in n1, n2:
        m.kill()
        m.node.run("nft delete table inet roost")
    assert len(attack()) == 4
    for m in n1, n2:
        m.start()
        protected(m)
    # One more node is known at once, and by what its record says.
    n3 = Member(lab.node("n3"), n1.build, etcd).start()
    d = Inmate(n3, "d")
    wait_until(lambda: d.pod.ping(b.address) and b.pod.ping(d.address), 30, "n3 to be let in")
    assert attack() == [b"from c"]


def test_pods_do_not_talk_bgp_and_bfd_with_the_node(cluster):
    [n1] = cluster()
    protected(n1)
    pod = Inmate(n1, "p1")
    with serving(n1.node, 179) as calls, listening(n1.node, port=3784) as heard:
        assert not connects(pod.pod, n1.address, 179)
        pod.send(n1.address, b"BFD", port=3784)
        assert calls() == [] and drops(n1, "routing") >= 2
        assert connects(n1.node, n1.address, 179) and len(calls()) == 1
        n1.kill().start("--pod-routing", "allow")
        wait_until(lambda: "3784" not in n1.node.run("nft list table inet roost").stdout, 20,
                   "pods to be let in")
        assert connects(pod.pod, n1.address, 179) and calls() == [pod.address]
        pod.send(n1.address, b"the end", port=3784)
        assert heard() == []


def test_no_new_pod_without_protection_where_it_is_required(cluster):
    missing = ["--nftables-library", "/nonexistent/libnftables.so.1"]
    [n1] = cluster(1, "--require-firewall", "on")
    protected(n1)
    Inmate(n1, "p1")
    # The table of an earlier agent protects; one that is gone and cannot be set does not.
    n1.kill().start(*missing)
    n1.wait_health("firewall", "install Debian's package libnftables1")
    p2 = n1.node.pod("p2")
    said = failure(n1.add, "p2", p2.netns)
    assert "--require-firewall" in said.msg and "libnftables1" in said.msg, said
    said = failure(n1.cni, "STATUS", "", version="1.1.0")
    assert "--require-firewall" in said.msg, said
    n1.delete("p1", "/run/netns/p1")
    n1.restart()
    protected(n1)
    n1.add("p2", p2.netns)


def test_the_hosts_loopback_is_out_of_reach(cluster):
    [n1] = cluster()
    with listening(n1.node) as heard:
        pod = Inmate(n1, "p1")
        pod.send("127.0.0.1", b"to the loopback")
        pod.send(n1.address, b"to the host")
        pod.send(n1.address, b"the end")
        assert heard() == [b"to the host"]
        # The agent's side decides, not who wrote the network configuration.
        p2 = n1.node.pod("p2")
        said = failure(n1.add, "p2", p2.netns, conf={"routeLocalnet": True})
        assert "--pod-loopback allow" in said.msg, said
        p2.delete()
        n1.kill().start("--pod-loopback", "allow")
        wait_until(lambda: "127.0.0.0" not in n1.node.run("nft list table inet roost").stdout, 20,
                   "the loopback to be open")
        pod.send("127.0.0.1", b"to the loopback")
        # Who asks for it gets it; so the packet was as it should be.
        pod = Inmate(n1, "p2", routeLocalnet=True)
        pod.send("127.0.0.1", b"to the loopback")
        pod.send(n1.address, b"the end")
        assert heard() == [b"to the loopback"]


def test_a_pod_cannot_use_another_ones_address(cluster):
    [n1] = cluster()
    a, b, c = [Inmate(n1, name) for name in ("a", "b", "c")]
    for where, address in (n1.node, n1.address), (c.pod, c.address):
        with listening(where) as heard:
            for src in b.address, "10.1.255.77", n1.address, "192.0.2.1", "0.0.0.0":
                a.send(address, b"forged", src=src)
            a.send(address, b"from a")
            b.send(address, b"from b")
            a.send(address, b"the end")
            assert sorted(heard()) == [b"from a", b"from b"]


@pytest.mark.parametrize("check", ["on", "off"])
def test_nor_over_ipv6(etcd, cluster, check):
    pool(etcd, "web6", "fd00:1::/112")
    [n1] = cluster(1, "--ipv6-source-check", check)
    protected(n1)
    if check == "on":
        said = n1.node.run(["nft", "add table ip6 t; add chain ip6 t c; "
                            "add rule ip6 t c fib saddr . iif oif missing drop"], check=False)
        if said.returncode:
            pytest.skip(f"this kernel has no fib expression: {said.stderr}")
    n1.node.configure("eth0", "fd50::1/64")
    a, b, c = [Inmate(n1, name) for name in ("a", "b", "c")]
    forged = [b.addresses[1], "fd00:1::7777", "fd50::1", "2001:db8::1"]
    passed = [] if check == "on" else [b"forged"] * len(forged)
    for where, address in (n1.node, "fd50::1"), (c.pod, c.addresses[1]):
        with listening(where, socket.AF_INET6) as heard:
            for src in forged:
                a.send(address, b"forged", src=src)
            a.send(address, b"from a")
            b.send(address, b"from b")
            a.send(address, b"the end")
            assert sorted(heard()) == [*passed, b"from a", b"from b"]
    # A link-local address is for the link alone, and stays usable there.
    with listening(n1.node, socket.AF_INET6) as heard:
        a.send(HOST_LL, b"on the link", src=POD_LL)
        a.send("fd50::1", b"the end")
        assert heard() == [b"on the link"]


def sees_router(run):
    """Whether IPv6 there has learned anything from the advertisement."""
    addresses, routes = run("ip -6 addr").stdout, run("ip -6 route show table all").stdout
    return "fd66:" in addresses or "fd66:" in routes or "proto ra" in routes


def advertise(where, interface, src):
    frame = ethernet("33:33:00:00:00:01", HOST_MAC, IPV6, advertisement(src, "fd66::"))
    with where.socket(socket.AF_PACKET, socket.SOCK_RAW) as s:
        s.bind((interface, 0))
        s.send(frame)


@pytest.mark.parametrize("families", [4, 46])
def test_router_advertisements_have_no_effect(etcd, cluster, families):
    if families == 46:
        pool(etcd, "web6", "fd00:1::/112")
    [n1] = cluster()
    # One that listens to routers, to show that this is such an advertisement.
    fool = n1.node.pod("fool")
    n1.node.ip("link add fool0 type veth peer name eth0 netns fool", "link set fool0 up")
    fool.run("ip link set eth0 up")
    wait_until(lambda: (advertise(n1.node, "fool0", HOST_LL), sees_router(fool.run))[1], 20,
               "somebody to take our advertisement for one")

    a = Inmate(n1, "p1")
    assert len(a.addresses) == len(str(families))
    routes = json.loads(a.pod.run("ip -j -6 route").stdout)
    for _ in range(3):
        advertise(n1.node, a.link, HOST_LL)
        advertise(a.pod, "eth0", POD_LL)
        assert n1.node.ping(a.address)  # so both have been through
    assert not sees_router(a.pod.run)
    assert json.loads(a.pod.run("ip -j -6 route").stdout) == routes
    assert not sees_router(n1.node.run)

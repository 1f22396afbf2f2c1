# SPDX-License-Identifier: Apache-2.0
"""What a pod cannot do to its host and its neighbours, nor anybody to it."""

import contextlib
import json
import socket

import pytest

from lab import wait_until
from lab.agent import pool
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
        self.addresses = [ip["address"].split("/")[0] for ip in result["ips"]]
        self.address = self.addresses[0]
        self.link = next(i["name"] for i in result["interfaces"] if not i.get("sandbox"))
        self.mac = next(i["mac"] for i in result["interfaces"] if i.get("sandbox"))

    def send(self, dst, data, src=None):
        kind, own, udp = ((IPV6, self.addresses[-1], udp6) if ":" in dst else
                          (IPV4, self.address, udp4))
        frame = ethernet(HOST_MAC, self.mac, kind, udp(src or own, dst, PORT, data))
        with self.pod.socket(socket.AF_PACKET, socket.SOCK_RAW) as s:
            s.bind(("eth0", 0))
            s.send(frame)


@contextlib.contextmanager
def listening(where, family=socket.AF_INET):
    """where: a node or a pod. heard() is all that has arrived, once "the end" has."""
    with where.socket(family, socket.SOCK_DGRAM) as s:
        s.bind(("", PORT))
        s.settimeout(20)

        def heard():
            said = []
            while (data := s.recv(100)) != b"the end":
                said.append(data)
            return said
        yield heard


def test_the_hosts_loopback_is_out_of_reach(cluster):
    [n1] = cluster()
    with listening(n1.node) as heard:
        pod = Inmate(n1, "p1")
        pod.send("127.0.0.1", b"to the loopback")
        pod.send(n1.address, b"to the host")
        pod.send(n1.address, b"the end")
        assert heard() == [b"to the host"]
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
            for src in b.address, "10.1.255.77", n1.address, "192.0.2.1":
                a.send(address, b"forged", src=src)
            a.send(address, b"from a")
            b.send(address, b"from b")
            a.send(address, b"the end")
            assert sorted(heard()) == [b"from a", b"from b"]


@pytest.mark.parametrize("check", ["on", "off"])
def test_nor_over_ipv6(etcd, cluster, check):
    pool(etcd, "web6", "fd00:1::/112")
    [n1] = cluster(1, "--ipv6-source-check", check)
    if check == "on":
        said = n1.node.run(["nft", "add table ip6 t; add chain ip6 t c; "
                            "add rule ip6 t c fib saddr . iif oif missing drop"], check=False)
        if said.returncode:
            pytest.skip(f"this kernel has no fib expression: {said.stderr}")
        n1.process.wait_log("IPv6 sources checked")
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

# SPDX-License-Identifier: Apache-2.0
"""natOutgoing: what leaves all pools has the node's address, what stays inside the pod's own. The
table that does it is ours, kept as it should be, and the only one that we touch."""

import socket

import pytest

from lab import wait_until
from lab.agent import pool
from lab.cluster import Member

FIELDS = {4: {"name": "web", "cidr": "10.1.0.0/16"}, 6: {"name": "web6", "cidr": "fd00:1::/112"}}
PORT = 5005
FAMILY = {4: socket.AF_INET, 6: socket.AF_INET6}
# Of others: one like a distribution's firewall, one with our name in another family.
STRANGERS = """
table inet filter {
    set friends { type ipv4_addr; flags interval; elements = { 10.0.0.0/8, 192.168.0.0/16 }; }
    chain input { type filter hook input priority filter; policy accept; ip saddr @friends accept; }
}
table ip roost { chain output { type filter hook output priority 0; policy accept; accept; }; }
table ip nat { chain post { type nat hook postrouting priority srcnat; policy accept; ip daddr 203.0.113.9 masquerade; }; }
"""


@pytest.fixture(autouse=True)
def nftables(node):
    said = node.run(["nft", "add table inet t; add chain inet t c { type nat hook postrouting priority 100; }; "
                     "add rule inet t c masquerade; add chain inet t p; "
                     "add rule inet t p meta nfproto ipv6 fib saddr . iif oif missing drop"],
                    check=False)
    if said.returncode:
        pytest.skip(f"this kernel lacks something of nftables: {said.stderr}")


class Nats:
    """Nodes with pools of both families, or just one, and a host outside that knows of no pod."""

    def __init__(self, lab, etcd, build, nodes=1, families=(4,), flags=()):
        self.etcd = etcd
        for f in families:
            self.pool(f, natOutgoing=True)
        made = [lab.node(f"n{i + 1}") for i in range(nodes)]
        self.outside = lab.node("outside")
        self.switch = lab.switch([*made, self.outside], subnet6="fd50::/64")
        for node in made:
            node.run("nft -f -", input=STRANGERS)
        self.others = [self.strangers(n) for n in made]
        self.members = [Member(n, build, etcd, *flags).start() for n in made]

    def pool(self, family, **fields):
        pool(self.etcd, **FIELDS[family], **fields)

    def pod(self, member, name):
        pod = member.node.pod(name)
        result = member.add(name, pod.netns)
        pod.addresses = {6 if ":" in ip["address"] else 4: ip["address"].split("/")[0]
                         for ip in result["ips"]}
        return pod

    @staticmethod
    def table(member):
        return member.node.run("nft -s list table inet roost", check=False).stdout

    @staticmethod
    def strangers(node):
        listed = node.run("nft -s list tables").stdout.splitlines()
        return [node.run(f"nft -s -a list {t}").stdout for t in listed if t != "table inet roost"]

    def wait_table(self, member, words="masquerade", absent=None):
        wait_until(lambda: words in self.table(member) and
                   (not absent or absent not in self.table(member)), 20,
                   f"{words!r} in our table on {member.node.name}")
        return self.table(member)

    def wait_set(self, member):
        """Until an agent that has just started has seen to it."""
        wait_until(lambda: member.status().get("firewall", {}).get("natOutgoing") == "set", 30,
                   f"{member} to have set its table")

    def wait_gone(self, member):
        wait_until(lambda: "masquerade" not in self.table(member), 20, "NAT to go")

    def end(self):
        assert [self.strangers(m.node) for m in self.members] == self.others


@pytest.fixture
def nats(lab, etcd, build):
    return lambda **kwargs: Nats(lab, etcd, build, **kwargs)


def source_seen(sender, receiver, address, family):
    """Whom the receiver of a datagram sees as its sender."""
    with receiver.socket(FAMILY[family], socket.SOCK_DGRAM) as heard, \
            sender.socket(FAMILY[family], socket.SOCK_DGRAM) as s:
        heard.bind(("", PORT))
        heard.settimeout(20)
        s.sendto(b"hello", (address, PORT))
        _, peer = heard.recvfrom(100)
        heard.sendto(b"you too", peer)
        s.settimeout(20)
        assert s.recv(100) == b"you too"
        return peer[0]


def test_pods_go_out_with_the_nodes_address_and_meet_with_their_own(nats):
    s = nats(nodes=2, families=(4, 6))
    n1, n2 = s.members
    a, b = s.pod(n1, "a"), s.pod(n2, "b")
    for one, other in (n1, n2), (n2, n1):
        s.wait_table(one)
        one.node.ip(*[f"route replace {block} via {s.switch.address(other.node, 6 if ':' in block else 4)}"
                      for block in other.blocks()])
    for f in 4, 6:
        outside, node = s.switch.address(s.outside, f), s.switch.address(n1.node, f)
        assert source_seen(a, s.outside, outside, f) == node
        assert source_seen(a, b, b.addresses[f], f) == a.addresses[f]
        # What is addressed to the node itself does not leave it; other nodes are outside.
        assert source_seen(a, n1.node, node, f) == a.addresses[f]
        assert source_seen(a, n2.node, s.switch.address(n2.node, f), f) == node

    # Another pool is inside as well, though it has no NAT itself.
    pool(s.etcd, "plain", "10.77.0.0/16")
    s.wait_table(n1, "10.77.0.0/16")
    s.outside.ip("addr add 10.77.0.1/32 dev lo",
                 f"route add {a.addresses[4]} via {s.switch.address(n1.node)}")
    n1.node.ip(f"route add 10.77.0.1 via {s.switch.address(s.outside)}")
    assert source_seen(a, s.outside, "10.77.0.1", 4) == a.addresses[4]

    s.pool(4)
    s.wait_table(n1, absent="nat4")
    assert source_seen(a, s.outside, s.switch.address(s.outside), 4) == a.addresses[4]
    drops = dict.fromkeys(("source", "loopback", "vxlan", "routing", "underlay"), 0)
    assert n1.status()["firewall"] == {"natOutgoing": "set", "sourceCheck": "set",
                                       "protection": "set", "repairs": 0, "drops": drops}
    s.end()


TAMPERING = ["flush ruleset", "delete table inet roost", "flush chain inet roost nat_outgoing",
             "delete element inet roost nat4 { 10.1.0.0/16 }",
             "insert rule inet roost nat_outgoing accept",
             "add element inet roost pools4 { 203.0.113.0/24 }",
             "flush chain inet roost pod_destinations"]


def test_what_somebody_does_to_the_table_is_undone(nats):
    s = nats()
    [n1] = s.members
    right = s.wait_table(n1)
    for i, line in enumerate(TAMPERING[:3]):
        n1.node.run(["nft", line])
        wait_until(lambda: s.table(n1) == right, 20, f"what `nft {line}` did to be undone")
        wait_until(lambda: n1.status()["firewall"]["repairs"] == i + 1, 20, "the repair to be counted")
        n1.process.wait_log(r"was changed or removed by nft \(process ")
        if "ruleset" in line:
            n1.node.run("nft -f -", input=STRANGERS)
            s.others = [s.strangers(n1.node)]
    # Now it is a fight, which the log counts.
    for line in TAMPERING[3:]:
        n1.node.run(["nft", line])
        wait_until(lambda: s.table(n1) == right, 60, f"what `nft {line}` did to be undone")
    n1.process.wait_log("again and again, last by nft")
    assert n1.metrics()["roost_firewall_repairs_total"] >= 5

    # Changes to others' tables concern nobody here.
    def passes():
        n1.metrics()  # what the kernel has told until now is seen to
        return n1.metrics()['roost_passes_total{pass="firewall",outcome="ok"}']
    before = wait_until(lambda: passes() if passes() == passes() else None, 20, "some quiet")
    n1.node.run(["nft", "add table inet another; add chain inet another c; "
                 "delete table inet another"])
    assert passes() == before
    s.end()


def test_nat_goes_with_the_wish_for_it(nats):
    s = nats()
    [n1] = s.members
    s.wait_table(n1)
    s.pool(4)
    s.wait_gone(n1)
    wait_until(lambda: n1.status()["firewall"]["natOutgoing"] == "off", 20, "status to say so")
    assert n1.status()["firewall"]["protection"] == "set"
    s.pool(4, natOutgoing=True)
    s.wait_table(n1)
    # A pod whose pool is deleted keeps what it has, also over a restart.
    s.pod(n1, "a")
    s.etcd.delete("/roost/v1/pool/web")
    s.pool(6)
    s.wait_table(n1)
    n1.restart()
    s.wait_set(n1)
    assert "ip saddr @nat4" in s.table(n1) and "10.1.0.0/16" in s.table(n1)
    # Who has not heard of etcd yet does nothing to it; handles would be new if it were set again.
    n1.kill()
    s.etcd.stop()
    before = n1.node.run("nft -a list table inet roost").stdout
    n1.start()
    n1.wait_health("etcd")
    assert n1.node.run("nft -a list table inet roost").stdout == before
    s.etcd.start()
    s.wait_set(n1)
    assert n1.node.run("nft -a list table inet roost").stdout != before
    # Switched off while nobody was there to see it.
    n1.kill()
    s.etcd.delete("/roost/v1/pool/web6")
    s.pool(4)
    assert s.table(n1)
    n1.start()
    s.wait_gone(n1)
    s.end()


def test_connections_go_on_while_the_table_is_replaced(nats):
    s = nats()
    [n1] = s.members
    s.wait_table(n1)
    a = s.pod(n1, "a")
    with s.outside.socket(socket.AF_INET, socket.SOCK_STREAM) as server, \
            a.socket(socket.AF_INET, socket.SOCK_STREAM) as client:
        server.bind(("", PORT))
        server.listen()
        for end in server, client:
            end.settimeout(20)
        client.connect((s.switch.address(s.outside), PORT))
        there, (peer, _) = server.accept()
        there.settimeout(20)
        assert peer == s.switch.address(n1.node)

        def talk():
            for _ in range(20):
                client.sendall(b"ping")
                assert there.recv(4) == b"ping"
                there.sendall(b"pong")
                assert client.recv(4) == b"pong"
        talk()
        pool(s.etcd, "other", "10.2.0.0/16", natOutgoing=True)
        s.wait_table(n1, "10.2.0.0/16")
        talk()
        n1.restart()
        s.wait_set(n1)
        talk()
        s.pool(4)
        n1.process.wait_log("natOutgoing for 1 of 2 pool prefixes")
        talk()
        there.close()
    s.end()


def test_without_the_library_it_is_told_and_all_else_goes_on(nats):
    s = nats(flags=["--nftables-library", "/nonexistent/libnftables.so.1"])
    [n1] = s.members
    n1.wait_health("firewall", "install Debian's package libnftables1")
    assert "cannot reach addresses outside" in n1.health()["firewall"]
    assert n1.status()["firewall"]["natOutgoing"] == "missing"
    a = s.pod(n1, "a")
    assert n1.node.ping(a.addresses[4])
    assert n1.metrics()["roost_firewall_failures_total"] == 1, "it is not tried without a pause"
    assert "; pods can reach this node's tunnel and BGP ports" in n1.health()["firewall"]
    s.pool(4)
    wait_until(lambda: "outside all pools" not in n1.health()["firewall"], 20,
               "NAT to be no part of it")
    assert n1.status()["firewall"]["protection"] == "missing"
    s.end()

# SPDX-License-Identifier: Apache-2.0
"""`roostctl status` prints "All is well." only while all is: faults are injected into a healthy node
one by one, and each is named with its remedy within 15 s."""

import re
import time

import pytest

from lab import wait_until
from lab.ctl import Ctl
from lab.site import Site

WELL = "All is well."
SOON = 15  # seconds until a fault is named
TEMPLATE = "/etc/roost/templates/bird-base.mustache"


def is_well(ctl):
    done = ctl.run("status")
    assert (done.returncode == 0) == (WELL in done.stdout), done.stdout
    return done.returncode == 0


def wait_well(ctl, timeout=90):
    try:
        wait_until(lambda: is_well(ctl), timeout, "status to say that all is well", poll=0.3)
    except AssertionError as e:
        raise AssertionError(f"{e}: {ctl.run('status').stdout}") from None


def wait_named(ctl, part, words, timeout=SOON):
    """Until status has a problem of this part with these words; returns the line."""
    last = None

    def named():
        nonlocal last
        last = ctl.run("status").stdout
        for line in last.splitlines():
            if f" {part} " in line and all(w in line for w in words):
                return line
        return None
    try:
        return wait_until(named, timeout, f"status to name {part}: {words}", poll=0.3)
    except AssertionError as e:
        raise AssertionError(f"{e}: {last}") from None


@pytest.fixture
def pair(lab, etcd, build):
    site = Site(lab, build, etcd)
    site.put("pool/web", cidr="10.1.0.0/24", blockSize=28)
    a, b = site.start(2)
    a.pod("pa"), b.pod("pb")
    site.settle()
    ctl = Ctl(a.node, build, etcd)
    wait_well(ctl)
    return site, a, b, ctl


def fault(ctl, inject, part, words, mend):
    """One fault: named in time, and all is well only after it is gone."""
    wait_well(ctl)
    inject()
    began = time.monotonic()
    line = wait_named(ctl, part, words)
    print(f"{part}: named after {time.monotonic() - began:.1f} s: {line}")
    assert WELL not in ctl.run("status").stdout
    mend()
    wait_well(ctl)
    return line


@pytest.mark.limit(600)
@pytest.mark.slow(150)
def test_ten_faults_are_named_within_15_s(pair, etcd):
    site, a, b, ctl = pair
    interface = a.node.plugs[-1].interface
    address = a.address()
    prefix = a.node.run(["sh", "-c", f"ip -o -4 addr show dev {interface}"]).stdout.split()[3]
    [block] = b.blocks()
    [session] = a.established()
    pod = next(d for d, r in a.routes().items() if "dev roost" in r)

    def nft(text):
        a.node.run("nft -f -", input=text)

    # 1: the only session is down
    fault(ctl, b.bird.kill, "sessions", ["0 of 1 BGP session is up", "roostctl bgp"],
          lambda: b.bird.start("-R"))
    # 2: another program's chain drops what is forwarded
    fault(ctl, lambda: nft("table ip filter {\n chain FORWARD {\n type filter hook forward "
                           "priority 0; policy drop;\n }\n}"),
          "forward", ["FORWARD of table ip filter", 'iifname "roost*" accept'],
          # 2a: the remedy is known as such
          lambda: nft('add rule ip filter FORWARD iifname "roost*" accept\n'
                      'add rule ip filter FORWARD oifname "roost*" accept\n'))
    # 3: a rule that drops, in a chain that is jumped to
    fault(ctl, lambda: nft("table inet other {\n chain deep {\n counter drop\n }\n chain f {\n"
                           "type filter hook forward priority 5;\n jump deep\n }\n}"),
          "forward", ["f of table inet other"], lambda: nft("delete table inet other"))
    # 4: a foreign route to another node's block
    fault(ctl, lambda: a.node.run(["ip", "route", "add", block, "via", etcd.switch.address(b.node)]),
          f"foreign-route/{block}", ["another node", f"ip route del {block}"],
          lambda: a.node.run(["ip", "route", "del", block, "proto", "boot"]))
    # 5: the node's own address is gone from its interface; the neighbour is not to blame
    line = fault(ctl, lambda: a.node.run(["ip", "address", "del", prefix, "dev", interface]),
                 "own-address/ipv4", [address, "is on no interface", "ip address add"],
                 lambda: a.node.run(["ip", "address", "add", prefix, "dev", interface]))
    assert "neighbour runs" not in line
    # 6: BIRD is gone
    fault(ctl, a.bird.kill, "bird", ["systemctl status bird"], lambda: a.bird.start("-R"))
    # 7: a session is disabled by hand
    fault(ctl, lambda: a.bird.birdc(f"disable {session}"), "bird-protocols",
          [f"birdc enable {session}"], lambda: a.bird.birdc(f"enable {session}"))
    # 8: a configuration that BIRD refuses
    def refuse():
        a.node.write(TEMPLATE, "router id {{routerId}};\nprotocol nonsense { }\n")
        a.agent.reload()

    def accept():
        a.node.path(TEMPLATE).unlink()
        a.agent.reload()
    fault(ctl, refuse, "bird-config", ["roostctl render --diff"], accept)
    # 9: a foreign route in the place of a pod's
    stranger = [pod, "dev", "lo", "proto", "99"]
    fault(ctl, lambda: a.node.run(["ip", "route", "replace", *stranger]),
          f"route/{pod if '/' in pod else pod + '/32'}", ["remove it"],
          lambda: a.node.run(["ip", "route", "del", *stranger]))
    # 10: etcd is out of reach
    fault(ctl, etcd.kill, "etcd", ["check etcd"], etcd.start)


def lonely(lab, etcd, build, **config):
    """One node with a pod, and a routing protocol without a neighbour."""
    site = Site(lab, build, etcd)
    site.put("pool/web", cidr="10.1.0.0/24", blockSize=28)
    site.put("config", **config)
    a = site.member().start()
    a.pod("pa")
    return site, a, Ctl(a.node, build, etcd)


def test_ospf_without_a_neighbour_or_an_interface_is_not_well(lab, etcd, build):
    timers = {"hello": 1, "dead": 4}
    site, a, ctl = lonely(lab, etcd, build, protocol="ospf", ospf={"interfaces": ["eth0"], **timers})
    wait_named(ctl, "settling/neighbours/ospf4", ["settling for ", "has no neighbour yet"])
    wait_named(ctl, "neighbours/ospf4", ["has no neighbour", "ospf.interfaces"], 30)
    b = site.member().start()
    wait_well(ctl)
    b.bird.kill()
    wait_named(ctl, "neighbours/ospf4", ["has no neighbour", "ospf.interfaces"])
    b.bird.start("-R")
    wait_well(ctl)
    site.put("config", protocol="ospf", ospf={"interfaces": ["eth0", "bond7"], **timers})
    wait_named(ctl, "neighbours/bond7", ["no interface bond7", "ospf.interfaces"])
    site.put("config", protocol="ospf", ospf={"interfaces": ["eth0"], **timers})
    wait_well(ctl)


def test_rip_without_a_neighbour_or_an_interface_is_not_well(lab, etcd, build):
    timers = {"updateTime": 1, "timeoutTime": 60}
    site, a, ctl = lonely(lab, etcd, build, protocol="rip", rip={"interfaces": ["eth0"], **timers})
    wait_named(ctl, "neighbours/rip4", ["has no neighbour", "rip.interfaces"], 30)
    site.member().start().pod("pb")
    wait_well(ctl)
    site.put("config", protocol="rip", rip={"interfaces": ["eth0", "bond7"], **timers})
    wait_named(ctl, "neighbours/bond7", ["no interface bond7", "rip.interfaces"])


def test_ipv6_pods_on_a_node_without_ipv6_are_not_well(lab, etcd, build):
    site = Site(lab, build, etcd)
    site.put("pool/web", cidr="10.1.0.0/24", blockSize=28)
    site.put("pool/web6", cidr="fd10:1::/112", blockSize=122)
    a, b = site.start(2)
    ctl = Ctl(a.node, build, etcd)
    wait_named(ctl, "pool/web6", ["no IPv6 address", "nodeSelector"])
    a.pod("pa")
    assert not is_well(ctl)


def test_a_refused_pod_is_named_until_it_has_its_address(lab, etcd, build):
    site = Site(lab, build, etcd)
    site.put("pool/web", cidr="10.1.0.0/30", blockSize=30)
    a = site.member().start()
    ctl = Ctl(a.node, build, etcd)
    pods = [f"p{i}" for i in range(4)]
    for name in pods:
        a.agent.assign(name, namespace="shop", pod=name)
    refused = a.agent.refuses("c1", namespace="shop", pod="web-1")
    line = wait_named(ctl, "refused-pods", ["shop/web-1", "is full", "roostctl pod why shop/web-1"])
    assert WELL not in ctl.run("status").stdout, line
    assert re.search(r"pod shop/web-1, interface eth0 was refused: .* is full.*; add a pool",
                     a.agent.log)
    # Another container of the same pod, as a runtime makes one for each try.
    a.agent.refuses("c2", namespace="shop", pod="web-1")
    [second, first] = a.agent.api("GET", "/v1/refusals?pod=shop/web-1").body["refusals"]
    assert (first["container"], second["container"]) == ("c1", "c2")
    assert first["reason"] == refused.text and first["code"] == refused.code
    assert "add a pool" in first["remedy"]
    assert a.agent.api("GET", "/v1/refusals?pod=shop/other").body["refusals"] == []
    assert len(a.agent.api("GET", "/v1/refusals").body["refusals"]) == 2
    [row, _] = ctl.json("pod why shop/web-1")
    assert (row["part"], row["state"]) == ("refusal", "error") and "add a pool" in row["about"]
    # It has its address: over.
    a.agent.release("p0")
    a.agent.assign("c3", namespace="shop", pod="web-1")
    a.agent.wait_well("refused-pods")
    assert all(r["over"] for r in a.agent.api("GET", "/v1/refusals").body["refusals"])
    assert [r["part"] for r in ctl.json("pod why shop/web-1")] == \
        ["address", "link", "announcement", "refusal", "refusal"]
    assert ctl.json("pod why shop/other") == []
    assert "Nothing is known of this pod" in ctl("pod why shop/other")


def test_pod_why_shows_what_is_known_of_a_pod(pair, etcd, build):
    site, a, b, ctl = pair
    rows = ctl.json("pod why pa")  # its container
    assert [(r["part"], r["state"]) for r in rows] == \
        [(part, "ok") for part in ("address", "link", "kernel", "announcement")]
    assert "1 of 1 BGP sessions up" in rows[-1]["about"]
    [elsewhere] = ctl.json("pod why pb")
    assert "is on node n2: run this command there" in elsewhere["about"]


def test_bgp_shows_what_bird_has_at_this_moment(pair):
    site, a, _, ctl = pair
    [row] = ctl.json("bgp")
    assert row["record"] == "node/n2" and row["state"] == "Established"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", row["since"])
    # The agent looks every few seconds by itself: twice in a row is faster than that.
    for verb in ("disable", "enable"):
        a.bird.birdc(f"{verb} {row['session']}")
        assert ctl.json("bgp")[0]["up"] is False
    assert all(r["age"].endswith(" s") for r in ctl.json("bgp --all"))
    site.put("peer/tor", address="10.250.0.99", asn=64999)
    site.put("peer/secret", address="10.250.0.98", asn=64998, passwordFile="/etc/roost/none")

    def told():
        said = {r["name"]: r["sessions"] for r in ctl.json("peer list")}
        return said["tor"].startswith("up 0/2, down on n") and \
            said["secret"].startswith("up 0/2, 2 left out: ")
    wait_until(told, 60, "the peers' sessions")

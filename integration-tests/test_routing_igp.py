# SPDX-License-Identifier: Apache-2.0
"""OSPF and RIP in the place of BGP, both families."""

import pytest

from lab.site import Site

WORD, PASSWORD = "s3cret-word", "/etc/roost/igp.key"


def link_local(other, six):
    """For settle(): OSPFv3 and RIPng speak from link-local addresses."""
    return [w for w in other.next_hops(six) if not six or "via fe80:" in w]


def show_routes(site, n=3):
    members = [site.member() for _ in range(n)]
    for m in members:
        m.node.write(PASSWORD, WORD + "\n", mode=0o600)
        m.spawn()
    for m in members:
        m.agent.wait_ready(60)
    pods = [m.pod(f"p{i}") for i, m in enumerate(members)]
    site.settle(via=link_local)
    site.all_ping(pods)
    site.assert_kept_apart(pods)
    return members


@pytest.mark.slow(15)
def test_ospf(dual_site):
    dual_site.put("config", protocol="ospf",
                  ospf={"interfaces": ["eth0"], "hello": 1, "dead": 5, "passwordFile": PASSWORD})
    a, b, c = show_routes(dual_site)
    assert {"ospf4", "ospf6"} <= set(a.bird.protocols())
    # A node that is lost without a word is forgotten. It may have been the designated router:
    # then the others are without each other for a moment.
    gone = c.blocks()
    dual_site.etcd.switch.isolate(c.node)
    for block in gone:
        a.wait_no_route(block, family="-6" if ":" in block else "-4")
        b.wait_no_route(block, family="-6" if ":" in block else "-4")
    dual_site.settle([a, b], via=link_local)


@pytest.mark.slow(10)
def test_ospf_does_not_believe_who_lacks_the_password(dual_site):
    site = dual_site
    site.put("config", protocol="ospf",
             ospf={"interfaces": ["eth0"], "hello": 1, "dead": 5, "passwordFile": PASSWORD})
    members = [site.member() for _ in range(3)]
    for m, word in zip(members, (WORD, WORD, "another-word")):
        m.node.write(PASSWORD, word, mode=0o600)
        m.start()
        m.pod("p")
    site.settle(members[:2], via=link_local)
    assert not members[2].by_bird("-4") and not members[2].by_bird("-6")


def test_rip(dual_site):
    dual_site.put("config", protocol="rip",
                  rip={"interfaces": ["eth0"], "updateTime": 1, "timeoutTime": 60})
    show_routes(dual_site)


def test_rip_with_a_password_is_for_ipv4_alone(etcd, lab, build):
    site = Site(lab, build, etcd)
    site.put("pool/web", cidr="10.1.0.0/16")
    site.put("config", protocol="rip", rip={"updateTime": 1, "timeoutTime": 60,
                                            "passwordFile": PASSWORD})
    members = show_routes(site, 2)
    assert "rip6" not in members[0].bird.protocols()

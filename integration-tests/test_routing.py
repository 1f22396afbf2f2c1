# SPDX-License-Identifier: Apache-2.0
"""From records to routes on the wire: real BIRD, real kernels, pods that ping each other."""

import pytest

from lab import wait_until
from lab.agent import TEMPLATES
from lab.site import Site


@pytest.mark.slow(10)
@pytest.mark.quick
def test_a_mesh_of_five(dual_site):
    members = dual_site.start(5)
    pods = [m.pod(f"p{i}") for i, m in enumerate(members)]
    assert all(len(p.addresses) == 2 for p in pods)
    dual_site.settle()
    dual_site.all_ping(pods)
    dual_site.assert_kept_apart(pods)
    for m in members:
        for family in ("-4", "-6"):
            assert all(" dev eth0 " in line for line in m.by_bird(family).values())
    wait_until(lambda: members[0].status()["bird"]["established"] == 8, 60,
               "status to show the sessions, one per neighbour and family")


def test_a_mesh_with_each_bird(lab, dual_etcd, build, bird_program):
    site = Site(lab, build, dual_etcd, program=bird_program)
    site.dual_pools()
    pods = [m.pod(f"p{i}") for i, m in enumerate(site.start(3))]
    site.settle()
    site.all_ping(pods)
    site.assert_kept_apart(pods)


def reflect(site, **config):
    """n1 and n2 reflect, and are the only neighbours of all the others."""
    site.put("config", mesh=False, **config)
    site.put("peer/reflectors", peerSelector="role == 'rr'")
    for name in ("n1", "n2"):
        site.put(f"spec/{name}", labels={"role": "rr"}, routeReflectorClusterId="10.0.0.1")


def test_two_reflectors_with_six_clients(dual_site):
    site = dual_site
    reflect(site)
    members = site.start(8)
    # The reflectors are nodes too: with pods of their own.
    pods = [m.pod(f"p{i}") for i, m in enumerate(members)]
    site.settle()
    # Every node to and from two others; settle() has seen the routes of all pairs.
    for a, b in zip(pods, pods[1:] + pods[:1]):
        site.all_ping([a, b])
    site.assert_kept_apart(pods)
    for m in members[2:]:
        assert len(m.established()) == 4, m.bird.birdc("show protocols")


def test_a_reflector_that_dies_is_not_missed(dual_site):
    site = dual_site
    reflect(site, bgp={"gracefulRestart": False})
    members = site.start(4)
    pods = [m.pod(f"p{i}") for i, m in enumerate(members[2:])]
    site.settle()
    for m in members[2:]:
        wait_until(lambda: len(m.established()) == 4, 60, "sessions to both reflectors")
    members[0].bird.kill()
    for m in members[2:]:
        wait_until(lambda: len(m.established()) == 2, 60, "the session to go")
    site.settle(members[2:])
    site.all_ping(pods)


def test_an_ipv6_fabric_carries_both_families(lab, etcd, build):
    """Nodes that know each other by IPv6 alone: one session, IPv4 blocks by IPv6 next hops."""
    site = Site(lab, build, etcd)
    site.dual_pools()
    nodes = lab.nodes(2)
    for node in nodes:
        etcd.join(node)
    fabric = lab.switch(nodes, subnet="fd51::/64")
    members = [site.member(None, "--address", fabric.address(n, 6), node=n) for n in nodes]
    pods = [m.start().pod(f"p{i}") for i, m in enumerate(members)]
    etcd.switch.separate(*nodes)
    site.settle(via=lambda other, six: [w if six else w.replace("via ", "via inet6 ")
                                        for w in other.next_hops(True)])
    site.all_ping(pods)
    site.assert_kept_apart(pods)
    for m in members:
        assert len(m.established()) == 1, m.bird.birdc("show protocols")
        assert all(" dev eth1 " in line for line in m.by_bird().values()), m.by_bird()


def test_each_bird_accepts_every_rendered_case(node, bird_program):
    """The unit tests ask those BIRDs that happen to be there."""
    texts = sorted((TEMPLATES / "cases").glob("*.expect"))
    assert texts
    for path in texts:
        if bird_program != "bird" or "2.17" not in path.name:
            node.run([bird_program, "-p", "-c", path])

# SPDX-License-Identifier: Apache-2.0
"""Ways of announcing: learned or static, pools that go, single addresses, an export table."""

import re

from lab import wait_until
from lab.bird import Bird
from lab.site import Site
from lab.strangers import Frr


def lost(member, since):
    """What ip monitor on this node has seen go away since that moment."""
    return re.findall(r"^Deleted .*proto bird.*$", member.monitor.log[since:], re.M)


def test_changing_how_blocks_are_announced_withdraws_none(lab, dual_etcd, build, bird_program):
    """Nor does a new pool, or another limit for ECMP; no session restarts either."""
    site = Site(lab, build, dual_etcd, program=bird_program)
    site.dual_pools()
    a, b = site.start(2)
    pods = [a.pod("pa"), b.pod("pb")]
    site.settle()
    since = len(b.monitor.log)

    def change(words, **config):
        site.put("config", **config)
        wait_until(lambda: all(words in m.node.read("/etc/bird/bird.conf") for m in (a, b)), 60,
                   f"{words} in the configuration")
        for m in (a, b):
            m.wait_configured(60)
    change("protocol static blocks4", announce="static")
    for m in (a, b):
        wait_until(lambda: "blocks4" in m.bird.protocols(), 60, "the static routes")
    site.all_ping(pods)
    # A block that comes later reaches the neighbour this way too.
    site.put("pool/more", cidr="10.2.0.0/16")
    pods.append(a.pod("pc", ipam={"type": "roost-ipam", "pools": ["more"]}))
    site.settle()
    change("limit 4;", announce="static", bgp={"ecmp": 4})
    change("limit 8;")
    for m in (a, b):
        wait_until(lambda: "blocks4" not in m.bird.protocols(), 60, "the static routes to go")
    site.settle()
    site.all_ping(pods)
    assert not lost(b, since), lost(b, since)
    site.assert_kept_apart(pods)
    for m in (a, b):
        assert "will restart" not in m.agent.log and m.bird.process.alive


def test_disabled_and_deleted_pools_stay_reachable(dual_site):
    a, b = dual_site.start(2)
    pods = [a.pod("pa"), b.pod("pb")]
    dual_site.settle()
    since = len(b.monitor.log)
    dual_site.dual_pools(disabled=True)
    a.agent.restart()  # now it is sure to have seen that
    dual_site.settle()
    dual_site.all_ping(pods)
    for pool in ("web", "web6"):
        dual_site.delete(f"pool/{pool}")
    # Also when the agents have seen nothing but what is left.
    for m in (a, b):
        m.agent.restart()
        m.wait_configured(60)
    dual_site.settle()
    dual_site.all_ping(pods)
    assert not lost(b, since), lost(b, since)


def test_single_addresses_are_announced_themselves(dual_site):
    site = dual_site
    site.put("pool/web", cidr="10.1.0.0/24", blockSize=32)
    site.put("pool/web6", cidr="fd10:1::/120", blockSize=128)
    a, b = site.start(2)
    pods = [a.pod("pa"), b.pod("pb"), b.pod("pc")]
    for p in pods[1:]:
        for address in p.addresses:
            a.wait_route(address, b.next_hops(":" in address),
                         family="-6" if ":" in address else "-4")
    site.all_ping(pods)
    assert not [r for r in a.routes().values() if "blackhole" in r], "it would hide the pod"
    pods[2].delete()
    a.wait_no_route(pods[2].address)


def coil_bird(me, neighbour):
    """Somebody's own BIRD, which takes blocks from table 119 of the kernel."""
    return f"""
log stderr all;
router id {me};
ipv4 table coil4;
protocol device {{}}
protocol direct {{ ipv4; interface "eth*"; }}
protocol kernel {{ ipv4 {{ export where source = RTS_BGP; }}; }}
protocol kernel kcoil4 {{ kernel table 119; learn; scan time 2;
  ipv4 {{ table coil4; import all; export none; }}; }}
protocol pipe pcoil4 {{ table master4; peer table coil4;
  import filter {{ preference = 200; accept; }}; export none; }}
protocol bgp n_other {{ local {me} as 64512; neighbor {neighbour} as 64512; direct;
  connect delay time 1;
  ipv4 {{ import all; export where proto = "kcoil4"; next hop self; }}; }}
"""


def coil_frr(me, neighbour):
    """Somebody's own FRR. It imports table 119, but of one prefix BGP is told of the selected
    route alone, and that is the blackhole of the main table: redistribute that one."""
    return f"""
ip prefix-list blocks permit 10.1.0.0/16 ge 26 le 26
route-map blocks permit 10
 match ip address prefix-list blocks
router bgp 64512
 bgp router-id {me}
 neighbor {neighbour} remote-as 64512
 neighbor {neighbour} timers connect 1
 address-family ipv4 unicast
  redistribute kernel route-map blocks
  neighbor {neighbour} next-hop-self
 exit-address-family
"""


def coil_members(site):
    """Two agents that leave routing to somebody else."""
    site.put("pool/web", cidr="10.1.0.0/16")
    site.put("config", exportTable=119)
    members = [site.member(None, "--bird-config", "none").start() for _ in range(2)]
    pods = [m.pod(f"p{i}") for i, m in enumerate(members)]
    for m in members:
        wait_until(lambda: set(m.routes("-4", "table", "119")) == set(m.blocks()), 60,
                   "the block, and nothing else, in the table")
    return members, pods


def test_an_export_table_for_a_bird_of_somebody_else(lab, etcd, build):
    site = Site(lab, build, etcd)
    (a, b), pods = coil_members(site)
    Bird(a.node, coil_bird(a.address(), b.address())).start()
    Bird(b.node, coil_bird(b.address(), a.address())).start()
    for m, other in ((a, b), (b, a)):
        for block in other.blocks():
            m.wait_route(block, f"via {other.address()} dev eth0 proto bird")
    site.all_ping(pods)
    site.assert_kept_apart(pods)


def test_an_frr_of_somebody_else(lab, etcd, build):
    """It sees the export table, and announces the same blocks from the main one."""
    site = Site(lab, build, etcd)
    (a, b), pods = coil_members(site)
    for m, other in ((a, b), (b, a)):
        frr = Frr(m.node, zebra="ip import-table 119\n",
                  bgpd=coil_frr(m.address(), other.address())).start()
        wait_until(lambda: f"T[119]   {m.blocks()[0]}" in frr.vtysh("show ip route"), 60,
                   "zebra to import the table")
    for m, other in ((a, b), (b, a)):
        for block in other.blocks():
            m.wait_route(block, f"via {other.address()} dev eth0 proto bgp")
    site.all_ping(pods)
    site.assert_kept_apart(pods)

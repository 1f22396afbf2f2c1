# SPDX-License-Identifier: Apache-2.0
"""Neighbours that are none of ours: FRR and GoBGP at the top of the rack; BFD, MD5, ECMP."""

import ipaddress
import json

import pytest

from lab import wait_until
from lab.steady import SteadyPing
from lab.strangers import Frr, GoBgp

WORD = "s3cret#word"
PASSWORD = "/etc/roost/tor.key"


@pytest.fixture
def site(dual_site):
    dual_site.put("config", mesh=False)
    return dual_site


def tor(site, name="tor"):
    """A router on the switch of the nodes: (node, IPv4 address, IPv6 address)."""
    node = site.lab.node(name)
    site.etcd.join(node)
    node.sysctl("net.ipv4.ip_forward", 1)
    node.sysctl("net.ipv6.conf.all.forwarding", 1)
    return node, site.etcd.switch.address(node), site.etcd.switch.address(node, 6)


def frr_config(members, asn, extra="", six=True, hold=60):
    """eBGP with every member, per family; the way leads through the router."""
    lines = [f"router bgp {asn}", " no bgp ebgp-requires-policy", " no bgp default ipv4-unicast",
             f" timers bgp 3 {hold}"]
    for is_six, family in [(False, "ipv4"), (True, "ipv6")][:1 + six]:
        for m in members:
            a = m.address(is_six)
            lines += [f" neighbor {a} remote-as 64512",
                      f" neighbor {a} timers connect 1"]
            lines += [f" neighbor {a} {e}" for e in extra.splitlines()]
        lines += [f" address-family {family} unicast"]
        for m in members:
            lines += [f"  neighbor {m.address(is_six)} {w}" for w in ("activate", "next-hop-self")]
        lines += [" exit-address-family"]
    return "\n".join(lines) + "\n"


def through(router):
    """For settle(): the way leads there; IPv6 by the router's address or its link-local one."""
    return lambda other, six: ["via " if six else f"via {router} "]


def assert_only_blocks(seen, members):
    """A stranger's table: every block, and no address of a pod."""
    blocks = {b for m in members for b in m.blocks()}
    assert seen == blocks, f"{seen ^ blocks}"


def test_frr_at_the_top_of_the_rack(site):
    """eBGP with a password, every node in the same AS, no way between nodes but by the ToR."""
    node, four, six = tor(site)
    members = [site.member() for _ in range(3)]
    for name, address in (("tor4", four), ("tor6", six)):
        site.put(f"peer/{name}", address=address, asn=64700, passwordFile=PASSWORD,
                 allowLocalAs=1)
    for m in members:
        m.node.write(PASSWORD, WORD + "\n", mode=0o600)
        m.spawn()
    frr = Frr(node, bgpd=frr_config(members, 64700, f"password {WORD}")).start()
    site.etcd.switch.separate(*[m.node for m in members])
    for m in members:
        m.agent.wait_ready(60)
    pods = [m.pod(f"p{i}") for i, m in enumerate(members)]
    site.settle(via=through(four))
    site.all_ping(pods)
    site.assert_kept_apart(pods)
    assert_only_blocks({*frr.prefixes("ipv4"), *frr.prefixes("ipv6")}, members)
    told = [r["dst"] for r in json.loads(node.run(["ip", "-j", "route"]).stdout)]
    assert not {p.address for p in pods} & set(told), told


def test_gobgp_between_nodes_of_different_ases(site):
    """It does not forward; as a route server it leaves the next hops alone."""
    node, four, six = tor(site)
    members = [site.member() for _ in range(3)]
    for name, address in (("tor4", four), ("tor6", six)):
        site.put(f"peer/{name}", address=address, asn=64700)
    config = f'[global.config]\nas = 64700\nrouter-id = "{four}"\n'
    for i, m in enumerate(members):
        site.put(f"spec/{m.node.name}", asn=64601 + i)
        for is_six, family in ((False, "ipv4"), (True, "ipv6")):
            config += f"""
[[neighbors]]
[neighbors.config]
neighbor-address = "{m.address(is_six)}"
peer-as = {64601 + i}
[neighbors.timers.config]
connect-retry = 1
idle-hold-time-after-reset = 1
[neighbors.route-server.config]
route-server-client = true
[[neighbors.afi-safis]]
[neighbors.afi-safis.config]
afi-safi-name = "{family}-unicast"
"""
        m.spawn()
    gobgp = GoBgp(node, config).start()
    for m in members:
        m.agent.wait_ready(60)
    pods = [m.pod(f"p{i}") for i, m in enumerate(members)]
    site.settle()
    site.all_ping(pods)
    site.assert_kept_apart(pods)
    assert_only_blocks(set().union(*[gobgp.told_by(m.address(is_six)) for m in members
                                     for is_six in (False, True)]), members)


def bird_config(members, address, asn):
    """A BIRD of the rack's own: eBGP with BFD to every member."""
    text = f"""
router id {address};
protocol device {{}}
protocol direct {{ ipv4; }}
protocol kernel {{ ipv4 {{ export where source = RTS_BGP; }}; }}
protocol bfd {{ interface "*" {{ interval 200 ms; multiplier 5; }}; }}
"""
    for i, m in enumerate(members):
        text += f"""
protocol bgp m{i} {{
  local {address} as {asn}; neighbor {m.address()} as 64512; bfd on; connect delay time 1;
  ipv4 {{ import all; export where source = RTS_BGP; next hop self; }};
}}
"""
    return text


@pytest.mark.slow(10)
def test_two_uplinks_and_one_dies_silently(site, bird):
    """ECMP over an FRR and a BIRD; BFD takes the dead one out long before the hold time."""
    site.put("config", mesh=False, bfd={"minRx": 200, "minTx": 200, "multiplier": 5})
    (node_a, a, _), (node_b, b, _) = tor(site, "tor-a"), tor(site, "tor-b")
    members = [site.member() for _ in range(2)]
    for name, address, asn in (("tor-a", a, 64701), ("tor-b", b, 64702)):
        site.put(f"peer/{name}", address=address, asn=asn, bfd=True, allowLocalAs=1, holdTime=240)
    bfd = "bfd\n profile quick\n  receive-interval 200\n  transmit-interval 200\n" \
          "  detect-multiplier 5\n"
    Frr(node_a, bfdd=bfd,
        bgpd=frr_config(members, 64701, "bfd profile quick", six=False, hold=240)).start()
    bird(node_b, bird_config(members, b, 64702))
    for m in members:
        m.start()
    pods = [m.pod(f"p{i}") for i, m in enumerate(members)]

    def hops(m, other):
        """The next hops of the other's IPv4 block, by `ip -j`."""
        block = next(x for x in other.blocks() if ":" not in x)
        found = json.loads(m.node.run(["ip", "-j", "route", "show", block]).stdout or "[]")
        return {h.get("gateway") for r in found for h in r.get("nexthops", [r])}
    m, other = members
    for x, y in ((m, other), (other, m)):
        wait_until(lambda: hops(x, y) == {a, b}, 60, "two next hops")
        # One that was never up cannot go down.
        wait_until(lambda: x.bird.birdc("show bfd sessions").count(" Up ") == 2, 60, "BFD")
    site.all_ping(pods, families=(4,))
    site.etcd.switch.isolate(node_a)
    for x, y in ((m, other), (other, m)):
        wait_until(lambda: hops(x, y) == {b}, 60, "one next hop")
    site.all_ping(pods, families=(4,))
    site.etcd.switch.heal()
    wait_until(lambda: hops(m, other) == {a, b}, 60, "two next hops again")
    site.assert_kept_apart(pods)


def test_the_mesh_with_a_password_and_ttl_security(site):
    """No session without the password or with another one; nor with a stranger who knows neither."""
    site.put("config", mesh=True, bgp={"passwordFile": PASSWORD, "ttlSecurity": True})
    a, b = site.start(2)
    for m in (a, b):
        assert "tor.key" in m.agent.wait_health("routing/config", timeout=60)
        assert not m.established()
    for m, word in ((a, "right-word"), (b, "wrong-word")):
        m.node.write(PASSWORD, word, mode=0o600)
        m.agent.reload()
        m.agent.wait_well("routing/config", timeout=60)
        wait_until(lambda: len(m.bird.protocols()) > 4, 60, "the sessions to be there")
    assert not a.established() and not b.established()
    b.node.write(PASSWORD, "right-word", mode=0o600)
    b.agent.reload()
    wait_until(lambda: len(a.established()) == 2, 60, "both sessions with the right password")
    pods = [a.pod("pa"), b.pod("pb")]
    site.settle()
    site.all_ping(pods)
    for m in (a, b):
        shown = m.agent.get("/v1/bird/config").body
        assert "-word" not in m.agent.log and "-word" not in shown
        text = m.node.read("/etc/bird/bird.conf")
        assert "ttl security on" in text and "right-word" in text


def test_a_node_that_announces_the_block_of_another(site, bird):
    """Believed without verifyOwners; with it only what block/ says is the node's own."""
    site.put("config", mesh=True)
    a, b = site.start(2)
    pods = [a.pod("pa"), b.pod("pb")]
    site.settle()
    stolen = next(x for x in a.blocks() if ":" not in x)
    thief, address, _ = tor(site, "thief")
    last = ipaddress.ip_network(stolen).supernet(new_prefix=16).broadcast_address
    own, later = (f"{last - n}/26" for n in (63, 127))
    site.put(f"block/default/{own.replace('/', '-')}", node="thief", pool="web")
    site.put("node/thief", ipv4=f"{address}/24", machine="m", boot="b")
    text = f"""
router id {address};
protocol device {{}}
protocol static {{ ipv4; route {stolen} blackhole; route {own} blackhole; route {later} blackhole; }}
"""
    for i, m in enumerate((a, b)):
        text += f"""
protocol bgp m{i} {{
  local {address} as 64512; neighbor {m.address()} as 64512; connect delay time 1;
  ipv4 {{ import all; export all; next hop self; }};
}}
"""
    bird(thief, text)

    def believed(block):
        return f"via {address} " in b.bird.birdc(f"show route where net = {block}")
    wait_until(lambda: believed(stolen) and believed(own), 60, "the theft to work")
    site.put("config", mesh=True, bgp={"verifyOwners": True})
    wait_until(lambda: not believed(stolen), 60, "the stolen block to be refused")
    wait_until(lambda: believed(own), 60, "the thief's own block to be there")
    assert not believed(later)
    site.put(f"block/default/{later.replace('/', '-')}", node="thief", pool="web")
    wait_until(lambda: believed(later), 60, "a block to be believed when it has its record")
    site.all_ping(pods, families=(4,))
    # A new block is believed once its record is known, an agent's restart loses none.
    ping = SteadyPing(pods[1].pod, pods[0].address, interval=0.01)
    b.agent.kill()
    b.agent.start()
    c = site.start(1)[0]
    pods.append(c.pod("pc"))
    site.all_ping(pods, families=(4,))
    assert not believed(stolen) and ping.stop() == []


def test_a_password_that_cannot_be_read_makes_no_session(site):
    """Nor does a wrong one; the right one does, after a reload."""
    site.put("config", mesh=True)
    site.put("peer/all", peerSelector="all()", passwordFile=PASSWORD)
    a, b = site.start(2)
    assert "tor.key" in a.agent.wait_health("routing/peer/all", timeout=60)
    for m, word in ((a, "right-word"), (b, "wrong-word")):
        m.node.write(PASSWORD, word, mode=0o600)
        m.agent.reload()
        m.agent.wait_well("routing/peer/all", timeout=60)
        wait_until(lambda: len(m.bird.protocols()) > 4, 60, "the sessions to be there")
    assert not a.established() and not b.established()
    b.node.write(PASSWORD, "right-word", mode=0o600)
    b.agent.reload()
    wait_until(lambda: len(a.established()) == 2, 60, "both sessions with the right password")
    pods = [a.pod("pa"), b.pod("pb")]
    site.settle()
    site.all_ping(pods)
    for m in (a, b):
        assert "-word" not in m.agent.log

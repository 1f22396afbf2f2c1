# SPDX-License-Identifier: Apache-2.0
"""Pods of nodes that have no common subnet: VXLAN over a router that knows nothing of them."""

import json
import time

import pytest

from lab import wait_until
from lab.ctl import Ctl
from lab.site import Member, Site
from lab.steady import SteadyPing
from lab.underlay import Underlay

# A vanished record counts on for a sixth of a minute: a second.
FLAGS = ("--bird-config", "none", "--minute", "6000")
# Which MAC follows from this name, before all others.
THIEF = "16:a3:c1:c2:d1:21"
V4, V6 = "10.1.0.0/16", "fd10:1::/108"


class World:
    """Six nodes, two in each of three subnets; n6 has but an IPv6 address for the others."""

    def __init__(self, lab, build):
        self.under = Underlay(lab, 3)
        self.site = Site(lab, build, self.under.etcd())
        self.encapsulate("vxlan")
        self.members = [self.join(f"n{i + 1}", i // 2, families=(1,) if i == 5 else (0, 1))
                        for i in range(6)]
        for m in self.members:
            m.agent.wait_ready(60)
        for m in self.members:  # a pod's MTU follows from who is there
            wait_until(lambda: m.status()["overlay"]["mtu"] == 1430, 30, f"{m} to know n6")
        self.pods = [m.pod(f"p-{m.node.name}") for m in self.members]

    def encapsulate(self, how):
        self.site.put("pool/web", cidr=V4, encapsulation=how)
        self.site.put("pool/web6", cidr=V6, encapsulation=how)

    def join(self, name, subnet, families=(0, 1)):
        node = self.under.node(name, subnet)
        addresses = [self.under.addresses(node)[f] for f in families]
        m = Member(self.site, node, "bird", (*FLAGS, "--address", ",".join(addresses)))
        m.monitor = node.spawn("monitor", "ip monitor route neigh address")
        m.fdb = node.spawn("fdb", "bridge monitor fdb")
        m.agent.spawn()
        return m

    def record(self, key):
        found = self.site.etcd.get(f"/roost/v1/{key}")
        return json.loads(found) if found else None


def ways(member):
    """{block of another node: how the kernel of this one reaches it}"""
    body = json.loads(member.agent.get("/v1/overlay").body)
    return {b["block"]: b["way"] for r in body["remotes"] for b in r["blocks"]}


def reach(pods, others=None, timeout=60):
    """Everybody reaches everybody, in both families, both ways."""
    for a in pods:
        for b in others or pods:
            for address in b.addresses if a is not b else ():
                wait_until(lambda: a.pod.ping(address), timeout,
                           f"{a.name} to reach {b.name}, {address}")


def is_near(member, other, block):
    """n6 tells no IPv4 address that a plain route could lead to."""
    return member.node.subnet is other.node.subnet and (":" in block or other.node.name != "n6")


def deletions(member):
    return [line for log in (member.monitor.log, member.fdb.log) for line in log.splitlines()
            if line.startswith("Deleted") and ("proto 114" in line or "roost.vxlan" in line
                                               or "PERMANENT" in line)]


@pytest.fixture
def world(lab, build):
    return World(lab, build)


def device(member, name="roost.vxlan"):
    said = member.node.run(["ip", "-j", "-d", "link", "show", "dev", name], check=False).stdout
    return json.loads(said)[0] if said.strip() else None


def vni_of(member):
    found = device(member)
    return found and found["linkinfo"]["info_data"]["id"]


@pytest.mark.slow(10)
def test_six_nodes_in_three_subnets(world, record_property):
    reach(world.pods)
    everywhere(world)
    direct_within_a_subnet(world)
    nodes_come_and_go(world)
    what_is_spoilt_comes_back(world, record_property)
    nothing_that_vanishes_is_a_command(world)
    another_tunnel_for_flannels_clients(world)
    without_such_a_pool_all_of_it_goes(world)


def everywhere(world):
    """Who is reached how, and what each node has told of itself."""
    for m, pod in zip(world.members, world.pods):
        own = set(m.blocks())
        assert set(ways(m).values()) == {"tunnel"}
        assert not own & set(ways(m))
        vtep = world.record(f"node/{m.node.name}")["vtep"]
        assert device(m, "roost.vxlan6" if m is world.members[5] else "roost.vxlan")["address"] \
            == vtep["mac"]
        status = m.status()
        assert sorted(status["overlay"]["addresses"]) == sorted((vtep["ipv4"], vtep["ipv6"]))
        assert status["overlay"]["remotes"] == 5 and status["overlay"]["unreachable"] == 0
        # Over IPv6 70 less than the uplink, and some other node is met so.
        link = pod.pod.json("link", "show", "dev", "eth0")[0]
        assert status["overlay"]["mtu"] == link["mtu"] == 1430
        # The node itself sends from its tunnel's address, and is answered.
        far = world.pods[0 if m is not world.members[0] else 4]
        assert all(m.node.ping(a) for a in far.addresses)
    rows = Ctl(world.members[0].node, world.site.build).json("overlay")
    assert {r["node"] for r in rows} == {f"n{i}" for i in range(2, 7)}
    assert {r["way"] for r in rows} == {"tunnel"} and not any("problem" in r for r in rows)
    check = world.members[0].node.run([world.site.build / "roostctl", "ipam", "check",
                                       *world.site.etcd.flags()], check=False)
    assert check.returncode == 0, check.stdout
    for family in ("-4", "-6"):
        said = world.under.router.run(["ip", family, "route"]).stdout
        assert "10.1." not in said and "fd10:1:" not in said


def direct_within_a_subnet(world):
    ping = SteadyPing(world.pods[0].pod, world.pods[1].address, interval=0.01)
    world.encapsulate("vxlan-cross-subnet")
    for m in world.members:
        def settled():
            found = ways(m)
            return all(found[b] == ("direct" if is_near(m, o, b) else "tunnel")
                       for o in world.members if o is not m for b in o.blocks())
        wait_until(settled, 30, f"{m} to reach its neighbours directly")
    reach(world.pods)
    assert ping.stop() == []


def nodes_come_and_go(world):
    """A join and a leave: nobody else's objects are touched, and no packet is lost."""
    a, b = world.pods[0], world.pods[4]
    before = {m: len(deletions(m)) for m in world.members}
    pings = [SteadyPing(a.pod, x, interval=0.01, name=f"ping{i}") for i, x in enumerate(b.addresses)]
    new = world.join("n7", 1)
    new.agent.wait_ready(60)
    pod = new.pod("p-n7")
    reach([pod], world.pods)
    reach(world.pods, [pod])
    blocks = new.blocks()
    mac = world.record("node/n7")["vtep"]["mac"]
    pod.delete()
    world.site.put("removed/n7", by="test")
    wait_until(lambda: not new.blocks(), 30, "n7 to give back all that it has")
    new.agent.stop()
    for key in ("node/n7", "status/node/n7", "removed/n7"):
        world.site.delete(key)
    for m in world.members:
        wait_until(lambda: not set(blocks) & set(ways(m)), 30, f"{m} to forget n7")
    assert [p.stop() for p in pings] == [[], []]
    theirs = [block.split("/")[0] for block in blocks] + [mac]
    for m in world.members:
        for line in deletions(m)[before[m]:]:
            assert any(t in line for t in theirs), f"{m}: {line}"


def what_is_spoilt_comes_back(world, record_property):
    """Link down and up, device deleted, tables and routes flushed: the next pass mends it."""
    m, pod, far = world.members[0], world.pods[0], world.pods[4]
    spoilers = {
        "device deleted": ["link del roost.vxlan"],
        "device down": ["link set roost.vxlan down"],
        "device changed": ["link set roost.vxlan address 02:00:00:00:00:99 mtu 1300"],
        "address deleted": ["addr flush dev roost.vxlan"],
        "neighbours flushed": ["neigh flush dev roost.vxlan nud permanent"],
        "routes flushed": ["route flush proto 114 dev roost.vxlan"],
    }
    for what, lines in spoilers.items():
        told = m.status()["kernel"]["repairs"]
        m.node.ip(*lines)
        began = time.monotonic()
        wait_until(lambda: m.status()["kernel"]["repairs"] > told
                   and all(pod.pod.ping(a) for a in far.addresses), 30, f"repair after: {what}")
        record_property(what, f"{time.monotonic() - began:.3f} s")
    m.node.run(["sh", "-c", "for l in $(bridge fdb show dev roost.vxlan | cut -d' ' -f1); do "
                "bridge fdb del $l dev roost.vxlan; done"])
    began = time.monotonic()
    reach([pod], [far])
    record_property("forwarding table flushed", f"{time.monotonic() - began:.3f} s")
    m.node.ip("link set eth0 down")
    m.node.ip("link set eth0 up")
    world.under.default_routes(m.node)
    began = time.monotonic()
    reach([pod], [far])
    record_property("uplink down and up", f"{time.monotonic() - began:.3f} s")
    m.node.ip("link set eth0 mtu 1400")
    wait_until(lambda: device(m)["mtu"] == 1350, 10, "the tunnel to follow the uplink's MTU")
    m.node.ip("link set eth0 mtu 1500")
    wait_until(lambda: device(m)["mtu"] == 1450, 10, "the tunnel to follow the uplink's MTU")


def nothing_that_vanishes_is_a_command(world):
    """Records of others, pools, the agent itself: what runs goes on."""
    m, pod, far = world.members[0], world.pods[0], world.pods[4]
    key = f"node/{m.node.name}"
    ping = SteadyPing(pod.pod, far.address, interval=0.01)
    vtep = world.record(key)["vtep"]
    before = {m: deletions(m) for m in world.members}
    for name in ("node/n5", *(f"block/default/{b.replace('/', '-')}"
                              for b in world.members[4].blocks())):
        world.site.delete(name)
        wait_until(lambda: world.record(name), 10, f"{name} to be written again")
    world.site.delete("pool/web")
    m.agent.kill()
    m.agent.start()
    assert ways(m) and world.record(key)["vtep"] == vtep
    reach([pod], world.pods[1:])
    assert {m: deletions(m) for m in world.members} == before
    world.encapsulate("vxlan-cross-subnet")
    assert ping.stop() == []
    # The tunnel's address outlives a boot, and others do not hear of one.
    rebooted, before = world.members[2], deletions(m)
    vtep = world.record("node/n3")["vtep"]
    rebooted.node.reboot()
    world.under.default_routes(rebooted.node)
    rebooted.agent.start()
    world.pods[2] = rebooted.pod("p-n3-again")
    reach([world.pods[2]], [pod, far])
    assert world.record("node/n3")["vtep"] == vtep
    assert deletions(m) == before


def another_tunnel_for_flannels_clients(world):
    """config changes VNI and port; a node set up by hand, as a flannel client would, takes part."""
    world.site.put("config", vxlan={"vni": 1, "port": 8472})
    for m in world.members[:5]:
        wait_until(lambda: vni_of(m) == 1, 30, f"the new tunnel of {m}")
    reach(world.pods[:3])
    client, mac = world.under.node("client", 2), "02:00:00:00:0f:01"
    address = world.under.addresses(client)[0]
    holder, block = f"lease-{address}", "10.1.250.0/26"
    world.site.put(f"node/{holder}", ipv4=f"{address}/32", machine="lease", boot="lease",
                   vtep={"mac": mac})
    world.site.put(f"block/default/{block.replace('/', '-')}", node=holder, pool="web")
    world.site.put(f"host/{holder}/ipv4/block/default/{block.replace('/', '-')}", pool="web")
    lines = [f"link add flannel.1 address {mac} type vxlan id 1 dstport 8472 local {address} "
             "nolearning", "addr add 10.1.250.0/32 dev flannel.1", "link set flannel.1 mtu 1450 up"]
    fdb = []
    for m in world.members[:5]:
        record = world.record(f"node/{m.node.name}")
        for b in (b for b in m.blocks() if ":" not in b):
            base = b.split("/")[0]
            lines += [f"neigh replace {base} lladdr {record['vtep']['mac']} dev flannel.1 nud permanent",
                      f"route replace {b} via {base} dev flannel.1 onlink"]
        fdb.append(f"fdb append {record['vtep']['mac']} dev flannel.1 "
                   f"dst {record['ipv4'].split('/')[0]}")
    client.ip(*lines)
    client.run(["bridge", "-batch", "-"], input="\n".join(fdb) + "\n")
    client.sysctl("net.ipv4.ip_forward", 1)
    theirs = client.pod("theirs")
    client.ip("link add veth1 type veth peer name eth0 netns theirs",
              "addr add 10.1.250.1/32 dev veth1", "link set veth1 up",
              "route add 10.1.250.5/32 dev veth1")
    theirs.run(["ip", "-batch", "-"], input="addr add 10.1.250.5/32 dev eth0\nlink set eth0 up\n"
               "route add 10.1.250.1 dev eth0\nroute add default via 10.1.250.1\n")
    for p in world.pods[:5]:
        wait_until(lambda: p.pod.ping("10.1.250.5"), 30, f"{p.name} to reach flannel's pod")
        wait_until(lambda: theirs.ping(p.address), 30, f"flannel's pod to reach {p.name}")


def without_such_a_pool_all_of_it_goes(world):
    world.encapsulate("none")
    for m in world.members:
        wait_until(lambda: not device(m) and not device(m, "roost.vxlan6"), 30, f"{m} untunnelled")
        wait_until(lambda: "vtep" not in world.record(f"node/{m.node.name}"), 30, f"{m} to say so")
        assert not [r for r in (*m.routes().values(), *m.routes("-6").values())
                    if "proto 114" in r and "via" in r]
        wait_until(lambda: '"reserved"' not in world.site.etcd.ctl(
            "get", "--prefix", f"/roost/v1/host/{m.node.name}/address/"), 30, f"{m}'s addresses")


def forwards_to(member, address):
    return address in member.node.run(["bridge", "fdb", "show", "dev", "roost.vxlan"]).stdout


def test_nobody_takes_the_end_of_another(lab, build):
    """A node or a lease that claims the MAC or the tunnel address of n3 gets none of its packets."""
    under = Underlay(lab, 1)
    site = Site(lab, build, under.etcd())
    site.put("pool/web", cidr=V4, encapsulation="vxlan")
    a, victim = members = [Member(site, under.node(n, 0), "bird", FLAGS) for n in ("n2", "n3")]
    for m in members:
        m.agent.spawn()
    for m in members:
        m.agent.wait_ready(60)
    pods = [m.pod(f"p-{m.node.name}") for m in members]
    reach(pods)
    theirs = json.loads(site.etcd.get("/roost/v1/node/n3"))["vtep"]
    thief = under.node("thief", 0)
    address = under.addresses(thief)[0]
    own = {"ipv4": f"{address}/32", "machine": "m", "boot": "b"}
    lease = f"lease-{address}"
    attacks = {  # each name is before n3
        "its MAC": ("a-thief", {**own, "vtep": {"mac": theirs["mac"]}}, "does not follow"),
        "its address": ("a-thief", {**own, "vtep": {
            "mac": THIEF, "ipv4": theirs["ipv4"]}}, "outside its own blocks"),
        "its MAC, by a lease": (lease, {
            "ipv4": f"{address}/32", "machine": "lease", "boot": "lease",
            "vtep": {"mac": theirs["mac"]}}, "another node has"),
        "its address, by a lease": (lease, {
            "ipv4": f"{address}/32", "machine": "lease", "boot": "lease",
            "vtep": {"mac": "02:00:00:00:0f:01", "ipv4": theirs["ipv4"]}}, "outside its own blocks"),
    }
    for what, (name, record, problem) in attacks.items():
        ping = SteadyPing(pods[0].pod, pods[1].address, interval=0.01)
        site.put("block/default/10.1.250.0-26", node=name, pool="web")
        site.put(f"node/{name}", **record)
        said = a.agent.wait_health(f"overlay/{name}", timeout=60)
        assert problem in said, (what, said)
        assert not forwards_to(a, address), what
        rows = {r["node"]: r for r in Ctl(a.node, build).json("overlay")}
        assert problem in rows[name]["problem"] and rows["n3"]["way"] == "tunnel", (what, rows)
        assert ping.stop() == [], what
        for key in (f"node/{name}", "block/default/10.1.250.0-26"):
            site.delete(key)
        a.agent.wait_well(f"overlay/{name}", timeout=60)
    # Who claims nothing of another is believed.
    site.put("block/default/10.1.250.0-26", node="a-thief", pool="web")
    site.put("node/a-thief", **own, vtep={"mac": THIEF, "ipv4": "10.1.250.0"})
    wait_until(lambda: forwards_to(a, address), 30, "an honest node to be reached")


def test_a_node_in_both(lab, etcd, build, bird_program):
    """BGP beside the overlay: nothing of others is announced, and the overlay's ways are used."""
    site = Site(lab, build, etcd, program=bird_program)
    site.put("pool/cross", cidr=V4, encapsulation="vxlan-cross-subnet", namespaces=["none"])
    site.put("pool/one", cidr="10.3.0.0/24", blockSize=32, encapsulation="vxlan-cross-subnet",
             namespaces=["none"])
    site.put("pool/one6", cidr="fd10:3::/120", blockSize=128, encapsulation="vxlan-cross-subnet",
             namespaces=["none"])
    site.put("pool/silent", cidr="10.2.0.0/16", encapsulation="vxlan", namespaces=["none"])
    members = site.start(3)
    # This one has no BIRD: the others know its blocks by the overlay alone.
    alone = site.member(None, "--bird-config", "none").start()
    pods = [m.pod(f"{name}-{m.node.name}", ipam={"type": "roost-ipam", "pool": name})
            for m in (*members, alone) for name in ("cross", "silent", "one", "one6")]
    for name in ("cross", "silent", "one"):
        reach([p for p in pods if p.name.startswith(f"{name}-")])
    sixes = [p for p in pods if p.name.startswith("one6-")]
    reach(sixes)
    blocks = {m: [b for b in m.blocks() if ":" not in b] for m in members}
    silent = {b for m in members for b in blocks[m] if b.startswith("10.2.")}
    for m in members:
        wait_until(lambda: len(m.established()) == 2, 60, f"the sessions of {m}")
    for m in members:
        others = {b for o in members if o is not m for b in blocks[o]}
        # BGP's way stands beside ours, and ours is better: the kernel shows both.
        for block in others - silent:
            wait_until(lambda: "proto bird" in m.node.run(
                ["ip", "route", "show", block, "metric", "32"]).stdout, 60,
                f"{m} to learn {block}")
        assert {b: w for b, w in ways(m).items() if w == "missing"} == {}
        # Without a session for IPv6 the overlay's way is the only one, and counts least.
        for p in (p for p in sixes if p.member is not m):
            assert "(1)" in m.bird.birdc(f"show route {p.address}/128")
        for other in (o for o in members if o is not m):
            session = f"n_{other.address().replace('.', '_')}"
            said = m.bird.birdc(f"show route export {session}")
            told = {line.split()[0] for line in said.splitlines() if "/" in line.split()[0]}
            assert told == set(blocks[m]) - silent, said

# SPDX-License-Identifier: Apache-2.0
"""roostctl ipam: what is in use, and every kind of damage found and mended on a real cluster.

Damage in etcd is planted for nodes that have a record but no agent: a living agent mends its own
keys before anybody could look.
"""

import json
import pathlib
import re

import pytest

from lab import wait_until
from lab.agent import PREFIX, pool, put
from lab.ctl import Ctl

BOOT = "boot-2"
STRAY = "roost0123456789"


@pytest.fixture
def ctl(etcd, node, build):
    """On a machine that is no node."""
    return Ctl(node, build, etcd)


def check(ctl, *flags):
    """Its JSON, whatever it finds; the exit code must fit."""
    done = ctl.run(["ipam", "check", "-o", "json", *flags], timeout=60)
    assert done.returncode in (0, 1), done.stderr
    said = json.loads(done.stdout)
    assert done.returncode == bool(said["findings"]), said
    return said


def findings(ctl):
    """{(kind, thing): finding}."""
    return {(f["kind"], f["thing"]): f for f in check(ctl)["findings"]}


def index(node, block):
    return f"host/{node}/ipv4/block/default/{block}"


def put_block(etcd, block, node, *indexes, of="lab"):
    put(etcd, f"block/default/{block}", node=node, pool=of)
    for name in indexes:
        put(etcd, index(name, block), pool=of)


def put_address(etcd, node, address, boot):
    put(etcd, f"host/{node}/address/default/{address}", container="c1", interface="eth0",
        pool="lab", boot=boot)


def keys(etcd):
    """All of etcd's but what living agents write over and over."""
    return {k[len(PREFIX):]: v for k, v in etcd.dump(PREFIX).items()
            if "/status/node/n1" not in k and "/status/node/n2" not in k}


def routes_of(member):
    """But for the kernel's own: those of IPv6 come when a link has been up for a while."""
    return [r for r in member.ip("route show table all") if r["protocol"] != "kernel"]


def plant(etcd):
    """Every kind of damage that etcd alone shows: what is found, and whether it is mended."""
    for name in "a", "b":
        put(etcd, f"node/{name}", ipv4="192.0.2.7/24", machine="m", boot=BOOT)
    pool(etcd, "lab", "10.7.0.0/16", disabled=True)
    put(etcd, "extent/default/lab", cidr="10.7.0.0/16", blockSize=26)
    put_block(etcd, "10.7.0.0-26", "a")
    put(etcd, index("a", "10.7.1.0-26"), pool="lab")
    put(etcd, index("a", "10.7.2.0-26"), pool="lab")
    put_address(etcd, "a", "10.7.2.9", BOOT)
    put_block(etcd, "10.7.3.0-26", "a", "a", "b")
    put_block(etcd, "10.7.4.0-26", "a", "b")
    put_address(etcd, "a", "10.7.5.9", "boot-1")
    put_address(etcd, "a", "10.7.6.9", BOOT)
    put_block(etcd, "10.6.0.0-26", "a", "a")
    pool(etcd, "cut", "10.8.0.0/16", disabled=True)
    put_block(etcd, "10.8.0.0-26", "a", "a", of="cut")
    put_block(etcd, "10.7.7.0-26", "a", "a")
    put_block(etcd, "10.7.7.32-27", "b", "b")
    put(etcd, "extent/default/wide", cidr="10.7.128.0/17", blockSize=26)
    pool(etcd, "wide", "10.7.128.0/17", disabled=True)
    put(etcd, "extent/default/gone", cidr="10.9.0.0/16", blockSize=26)
    put(etcd, "extent/default/old", cidr="10.10.0.0/16", blockSize=26)
    put_block(etcd, "10.10.0.0-26", "a", "a", of="old")
    put_block(etcd, "10.7.8.0-26", "missing", "missing")
    put_block(etcd, "10.7.9.0-26", "off", "off")
    put_address(etcd, "off", "10.7.9.9", BOOT)
    put(etcd, "removed/off", by="me", when="2026-01-01T00:00:00Z", now=True)
    put(etcd, "status/node/nobody")
    put_block(etcd, "10.7.10.0-26", "a", "a")
    etcd.put(PREFIX + index("a", "10.7.10.0-26"), "no JSON")
    put(etcd, "pool/bad", cidr=7)
    return {
        ("block-without-index", "block/default/10.7.0.0-26"): True,
        ("index-without-block", index("a", "10.7.1.0-26")): True,
        ("index-without-block", index("a", "10.7.2.0-26")): True,
        ("two-indexes", index("b", "10.7.3.0-26")): True,
        ("foreign-index", index("b", "10.7.4.0-26")): True,
        ("block-without-index", "block/default/10.7.4.0-26"): True,
        ("address-outside-blocks", "host/a/address/default/10.7.5.9"): True,
        ("address-outside-blocks", "host/a/address/default/10.7.6.9"): False,
        ("block-outside-extents", "block/default/10.6.0.0-26"): False,
        ("extent-missing", "extent/default/cut"): True,
        ("overlapping-blocks", "block/default/10.7.7.32-27"): False,
        ("block-outside-extents", "block/default/10.7.7.32-27"): False,
        ("overlapping-extents", "extent/default/wide"): False,
        ("unused-extent", "extent/default/gone"): True,
        ("block-of-deleted-pool", "block/default/10.10.0.0-26"): False,
        ("no-node-record", "node/missing"): False,
        ("no-node-record", "node/off"): True,
        ("status-without-node", "status/node/nobody"): True,
        ("undecodable-record", index("a", "10.7.10.0-26")): True,
        ("undecodable-record", "pool/bad"): False,
    }


def mended(before, revision):
    """What the keys should be after --repair."""
    lab = {"pool": "lab"}
    after = {k: v for k, v in before.items()
             if k not in (index("a", "10.7.1.0-26"), index("b", "10.7.3.0-26"),
                          index("b", "10.7.4.0-26"), "host/a/address/default/10.7.5.9",
                          "extent/default/gone", "status/node/nobody",
                          "block/default/10.7.9.0-26", index("off", "10.7.9.0-26"),
                          "host/off/address/default/10.7.9.9")}
    after = {k: json.loads(v) for k, v in after.items()
             if k != index("a", "10.7.10.0-26")}
    for block in "10.7.0.0-26", "10.7.4.0-26", "10.7.10.0-26":
        after[index("a", block)] = lab
    after["block/default/10.7.2.0-26"] = {"node": "a", **lab, "token": f"repaired-{revision}"}
    after["extent/default/cut"] = {"cidr": "10.8.0.0/16", "blockSize": 26}
    return after


def test_planted_damage_is_found_and_mended_and_nothing_else(ctl, etcd, cluster, build):
    n1, n2 = cluster(2)
    here = Ctl(n1.node, build, etcd)
    for n in n1, n2:
        n.add("c1", n.node.pod("c1").netns)
        n.wait_agreed()

    # Nothing: on a node, and anywhere.
    said = check(here)
    assert (said["local"], said["findings"], said.get("leftOut")) == (True, [], None)
    assert here("ipam check").startswith("Nothing found, at revision ")
    told = ctl("ipam check")
    assert "Only etcd was checked, not this node: " in told
    assert "agent.sock" in told

    # In etcd.
    expected = plant(etcd)
    found = findings(here)
    assert {k: f["repairable"] for k, f in found.items()} == expected
    assert set(findings(ctl)) == set(expected), "the same from anywhere"
    two = found["two-indexes", index("b", "10.7.3.0-26")]
    assert two["severity"] == "error"
    assert two["sentence"] == ("node b has an index of block 10.7.3.0/26, which belongs to node a "
                               "and is in its index too")
    assert found["undecodable-record", "pool/bad"]["sentence"].startswith(
        'pool/bad: field "cidr": 7')
    assert found["no-node-record", "node/missing"]["leftAlone"] == (
        "a missing record does not prove that no pod runs there")
    done = ctl.run("ipam check --repair")
    assert done.returncode == 2 and done.stderr.strip().endswith("use --yes")
    assert f"error two-indexes {index('b', '10.7.3.0-26')}\n" in done.stdout
    assert "  --repair deletes the index\n" in done.stdout
    assert "20 found, of which --repair can repair 12\n" in done.stdout

    before, links, routes = keys(etcd), n1.pod_links(), routes_of(n1)
    said = check(here, "--repair", "--yes")
    assert all(r["repaired"] for r in said["repaired"]), said["repaired"]
    assert {(r["kind"], r["thing"]) for r in said["repaired"]} == {
        k for k, repairable in expected.items() if repairable}
    left = {(f["kind"], f["thing"]) for f in said["findings"]}
    assert left == {k for k, repairable in expected.items() if not repairable}
    after = {k: json.loads(v) for k, v in keys(etcd).items()}
    notes = [after.pop(k) for k in [*after] if k.startswith("history/")]
    assert notes and {n["command"] for n in notes} == {"ipam check --yes --repair"}
    after["extent/default/cut"].pop("made")
    token = after["block/default/10.7.2.0-26"]["token"]
    assert after == mended(before, token.removeprefix("repaired-"))
    assert (n1.pod_links(), routes_of(n1)) == (links, routes) and len(routes) == 2
    assert n1.agrees() and n2.agrees()

    # A second time there is nothing to do, and nothing is done.
    again = etcd.revision()
    assert check(here, "--repair", "--yes")["repaired"] == []
    assert [e for e in etcd.history(PREFIX, again + 1) if "/status/" not in e.key] == []


@pytest.mark.slow(20)
def test_what_a_node_holds_is_compared_too(etcd, cluster, build):
    n1, = cluster(1)
    ctl = Ctl(n1.node, build, etcd)
    pods = {c: n1.node.pod(c) for c in ("c1", "c2")}
    for c, p in pods.items():
        n1.add(c, p.netns)
    n1.wait_agreed()
    links = n1.pod_links()

    # A pod whose link is gone, and a link that belongs to nobody.
    leaked = next(x for x in n1.list()["attachments"] if x["container"] == "c2")
    n1.node.ip(f"link delete {leaked['link']}",
               f"link add {STRAY} type veth peer name stranger")
    found = findings(ctl)
    assert set(found) == {("leak", "pods/c2/eth0"), ("stray-link", STRAY)}
    leak = found["leak", "pods/c2/eth0"]
    assert leak["sentence"] == (f"container c2 still holds {leaked['addresses'][0]['address']}, "
                                "but its link is gone")
    assert "twice, 120 s apart" in leak["todo"] and not leak["repairable"]
    assert found["stray-link", STRAY]["repairable"]

    # While a route leads to it, it is left alone.
    n1.node.ip(f"link set {STRAY} up", f"route add 10.99.0.1 dev {STRAY}")
    assert findings(ctl)["stray-link", STRAY]["leftAlone"] == "a route leads to it"
    n1.node.ip("route delete 10.99.0.1")

    before = keys(etcd)
    said = check(ctl, "--repair", "--yes")
    assert [(r["thing"], r["repaired"]) for r in said["repaired"]] == [(STRAY, True)]
    assert [f["kind"] for f in said["findings"]] == ["leak"]
    assert n1.pod_links() == links - {leaked["link"]}
    assert keys(etcd) == before
    assert n1.held()[leaked["addresses"][0]["address"]] == "c2"

    # A block that somebody else took by hand.
    block = next(iter(n1.blocks()))
    key = f"block/default/{block.replace('/', '-')}"
    put(etcd, "node/b", ipv4="192.0.2.7/24", machine="m", boot=BOOT)
    put(etcd, key, node="b", pool="web")
    etcd.delete(PREFIX + index("n1", block.replace("/", "-")))
    wait_until(lambda: n1.blocks()[block] == "lost", 20, "the agent to know")
    lost = findings(ctl)["lost-block", key]
    assert lost["sentence"] == f"pods of this node use block {block}, which belongs to node b now"
    assert lost["severity"] == "error" and not lost["repairable"]

    # Without the agent the rest is still looked at.
    n1.stop()
    said = check(ctl)
    assert not said["local"] and "agent.sock" in said["leftOut"]
    assert ("block-without-index", key) in {(f["kind"], f["thing"]) for f in said["findings"]}


def test_use_is_shown_by_pool_node_and_block(ctl, etcd, agents):
    assert ctl("ipam show").startswith("There are no pools yet")
    pool(etcd, "web", "10.1.0.0/24")
    pool(etcd, "off", "10.2.0.0/24", disabled=True)
    agent = agents().start()
    agent.assign("c1")
    agent.assign("c2")
    agent.wait_agreed()
    pool(etcd, "web", "10.1.0.0/23")
    shown = ctl.json("ipam show")
    rows = {p["name"]: p for p in shown["pools"]}
    assert rows["off"]["state"] == "disabled" and rows["web"]["state"] == "differs"
    assert (rows["web"]["blocks"], rows["web"]["blocksMax"]) == (len(agent.blocks()), 4)
    assert (rows["web"]["used"], rows["web"]["addresses"]) == (2, 256)
    assert shown["nodes"] == [{"name": "n1", "blocks": rows["web"]["blocks"], "used": 2,
                               "inBlocks": rows["web"]["inBlocks"], "state": "alive"}]
    assert sum(b["used"] for b in shown["blocks"]) == 2
    lines = [line.split() for line in ctl("ipam show").splitlines()]
    assert lines[0] == "POOL CIDR STATE BLOCKS OF USED IN BLOCKS IN POOL USE".split()
    assert lines[2][:3] == ["web", "10.1.0.0/24", "differs"] and lines[2][-1] == "0%"
    assert "the edit has no effect" in ctl("ipam show")
    block = next(iter(agent.blocks()))
    assert block not in ctl("ipam show") and block in ctl("ipam show --blocks")
    # Bars and colours only on a terminal.
    assert "#" not in ctl("ipam show") and "\033" not in ctl("ipam show")
    line = " ".join(map(str, [ctl.program, "ipam", "show", *etcd.flags()]))
    seen = ctl.node.run(["script", "-qec", line, "/dev/null"]).stdout
    assert "#................... 0%" in seen and "\033[33mdisabled\033[0m" in seen


def test_every_kind_of_finding_is_explained():
    root = pathlib.Path(__file__).resolve().parent.parent
    kinds = re.findall(r'\[FINDING_\w+\] = \{\s*"([a-z-]+)"', (root / "ipam/audit/audit.c").read_text())
    docs = (root / "docs/TROUBLESHOOTING.md").read_text()
    assert len(kinds) > 20 and [k for k in kinds if f"`{k}`" not in docs] == []

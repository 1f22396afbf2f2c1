# SPDX-License-Identifier: Apache-2.0
"""roostctl route against a real etcd; what nodes would report is written by the tests."""

import json

import pytest

from lab.agent import PREFIX, pool, put
from lab.ctl import Ctl

pytestmark = pytest.mark.quick

VPN = "static-route/vpn"


@pytest.fixture
def ctl(etcd, node, build):
    return Ctl(node, build, etcd)


def records(etcd):
    """All but the notes of who did what."""
    return {key: value for key, value in etcd.dump(PREFIX).items()
            if not key.startswith(PREFIX + "history/")}


def revision(etcd, key):
    return next(kv.mod for kv in etcd.list(PREFIX + key) if kv.key == PREFIX + key)


def report(etcd, node, **fields):
    """As its agent would: on the record as it is now."""
    put(etcd, f"status/{VPN}/{node}", revision=revision(etcd, VPN), since="2026-11-16T02:45:55Z", **fields)


def nodes(etcd, *names):
    for name in names:
        put(etcd, f"node/{name}", ipv4="192.0.2.9/24")
        put(etcd, f"status/node/{name}", version="1")


THERE = {"subnet": "172.20.0.0/16", "gateways": ["192.0.2.1"], "table": 254}


def test_a_route_is_made_shown_and_edited(ctl, etcd):
    assert ctl("route list").startswith("There are no static routes")
    assert ctl.json("route list") == []
    nodes(etcd, "n1", "n2", "n3")
    put(etcd, "spec/n3", labels={"zone": "b"})
    assert ctl("route create vpn subnet=172.20.0.0/16 gateway=192.0.2.1") == "route vpn created\n"
    report(etcd, "n1", **THERE)
    report(etcd, "n2", error="gateway 192.0.2.1 is not on a link of this node", tampered={"count": 2})
    put(etcd, "static-route/bad", subnet="172.21.0.1/16", nodeSelector="zone == 'b'")
    lines = [line.split() for line in ctl("route list").splitlines()]
    assert lines[0] == ["NAME", "SUBNET", "VIA", "TABLE", "STATE", "NODES"]
    assert lines[1] == ["bad", "-", "-", "-", "invalid", "applied", "0/1,", "1", "pending"]
    assert lines[2] == ["vpn", "172.20.0.0/16", "192.0.2.1", "-", "error",
                        *"applied 1/3, 1 error, 1 pending".split()]
    bad, vpn = ctl.json("route list")
    assert bad["problem"].startswith('static-route/bad: field "subnet": "172.21.0.1/16" has host bits')
    assert (vpn["selected"], vpn["applied"], vpn["errors"], vpn["tampered"]) == (3, 1, 1, 2)
    assert "restore" in ctl("route list -o wide")
    shown = ctl("route show vpn").splitlines()
    assert shown[0].split() == ["name:", "vpn"]
    assert [" ".join(line.split()[:2]) for line in shown[-3:]] == ["n1 applied", "n2 error", "n3 pending"]
    row = {n["node"]: n for n in ctl.json("route show vpn")["nodes"]}
    assert row["n1"]["via"] == "192.0.2.1" and row["n2"]["error"].startswith("gateway 192.0.2.1")

    # An edit makes what was said before it old; a selector leaves out who need not report.
    edit = "route edit vpn gateway= gateways=192.0.2.1,192.0.2.2 table=100"
    assert ctl.refuses(edit, 2) == "not done: there is no terminal to ask on; use --yes"
    done = ctl.run(f"{edit} --yes")
    assert done.stdout == "route vpn changed\n"
    assert done.stderr == "removes static route vpn from 3 nodes (n1, n2, n3)\n"
    assert ctl.json("route list")[1]["summary"] == "applied 0/3, 3 pending"
    listed = json.dumps([{"key": "zone", "operator": "In", "values": ["b"]}])
    done = ctl.run(["route", "edit", "vpn", "nodeSelector=" + listed, "--yes"])
    assert (done.stdout, done.stderr) == ("route vpn changed\n",
                                          "removes static route vpn from 2 nodes (n1, n2)\n")
    got = ctl.json("route show vpn")
    assert (got["summary"], got["nodeSelector"]) == ("applied 0/1, 1 pending, 2 withdrawing", "zone in {'b'}")
    assert ctl.json("get route vpn")["kind"] == "route"

    # Overlaps are told, and no reason to refuse.
    pool(etcd, "web", "172.22.0.0/16")
    said = ctl.run("route create a subnet=172.16.0.0/12 table=100")
    assert said.stdout == "route a created\n"
    assert said.stderr.splitlines() == [
        "roostctl: note: route a (172.16.0.0/12) overlaps pool web (172.22.0.0/16): nodes refuse a static "
        "route that overlaps a pool",
        "roostctl: note: route a (172.16.0.0/12) overlaps route vpn (172.20.0.0/16): on a node that has "
        "both, the longer prefix takes precedence"]


def test_a_deletion_waits_for_every_node_or_not(ctl, etcd):
    # Nobody has it: it is gone at once. Neither is a record that nobody can read in the way.
    for broken in ('{"subnet": "172.20.0.0/16"}', '{"nodeSelector": 7}', "{"):
        etcd.put(PREFIX + VPN, broken)
        done = ctl.run("route delete vpn --yes")
        assert (done.stdout, records(etcd)) == ("route vpn deleted\n", {})
        assert done.stderr.startswith("route vpn: 0 nodes report it; each withdraws it")

    ctl("route create vpn subnet=172.20.0.0/16")
    report(etcd, "n1", **THERE)
    report(etcd, "n2", **THERE)
    waiting = ctl.process("route delete vpn --wait --yes")
    waiting.wait_log("waiting for n1, n2")
    marked = json.loads(etcd.dump(PREFIX + VPN)[PREFIX + VPN])
    assert marked.pop("deleting") and marked == {"subnet": "172.20.0.0/16"}
    assert ctl.json("route list")[0]["summary"] == "deleting, 2 withdrawing"
    assert ctl.run("route delete vpn --yes").stdout == "route vpn deleting\n"
    etcd.delete(PREFIX + f"status/{VPN}/n1")
    waiting.wait_log("waiting for n2")
    etcd.delete(PREFIX + f"status/{VPN}/n2")
    assert waiting.wait(20) == 0
    assert "route vpn deleted" in waiting.log and records(etcd) == {}

    # By force, also what is left of a record that somebody deleted by hand.
    ctl("route create vpn subnet=172.20.0.0/16")
    for i in range(120):
        etcd.put(PREFIX + f"status/{VPN}/n{i}", "{}")
    said = ctl.run("route delete vpn --force --yes")
    assert said.stdout == "route vpn deleted\n" and records(etcd) == {}
    assert "the reports of 120 nodes: n0, n1, n10" in said.stderr
    assert "keeps the route in its kernel until the agent starts again" in said.stderr
    etcd.put(PREFIX + f"status/{VPN}/n1", "{}")
    assert ctl.run("route delete vpn --force --yes").stdout == "route vpn deleted\n"


def test_bad_routes_are_refused_with_the_agents_sentence(ctl, etcd):
    ctl("route create vpn subnet=172.20.0.0/16")
    before, wrong = etcd.dump(PREFIX), []
    for line, code, said in (
        ("route create vpn subnet=172.21.0.0/16", 1,
         "route vpn exists already: change it with roostctl route edit vpn FIELD=VALUE"),
        ("route create b subnet=172.21.0.1/16", 1,
         'static-route/b: field "subnet": "172.21.0.1/16" has host bits set: write 172.21.0.0/16'),
        ("route create b subnet=0.0.0.0/0", 1,
         'static-route/b: field "subnet": 0.0.0.0/0 is the default route, which is the node\'s own'),
        ("route edit vpn gateways=fd00::1", 1,
         'static-route/vpn: field "gateways[0]": fd00::1 is not of the family of "subnet"'),
        ("route edit vpn table=255", 1,
         'static-route/vpn: field "table": 255 is the kernel\'s own table (local)'),
        ("route edit vpn gateway=192.0.2.1 gateways=192.0.2.2", 1, 'static-route/vpn: field "gateway": '
         '"gateways" is given too, only one of the two may be'),
        ("route edit vpn subnt=172.21.0.0/16", 1, 'unknown field "subnt": perhaps "subnet"?'),
        ("route show b", 4, "there is no route b: see roostctl route list"),
        ("route edit b table=7", 4, "there is no route b: see roostctl route list"),
        ("route delete b --yes", 4, "there is no route b: see roostctl route list"),
        ("route delete b --force --yes", 4, "there is no route b: see roostctl route list"),
        ("route delete vpn", 2, "not done: there is no terminal to ask on; use --yes"),
        ("route delete vpn --force --wait --yes", 2, "--force does not wait: omit --wait"),
    ):
        got = ctl.refuses(line, code)
        if got != said:
            wrong.append(f"{line}: {got}")
    assert not wrong, "\n".join(wrong)
    assert etcd.dump(PREFIX) == before

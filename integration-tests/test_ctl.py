# SPDX-License-Identifier: Apache-2.0
"""roostctl against a real etcd: what it shows, what it writes, what it refuses."""

import ipaddress
import json
import pathlib
import shlex

import pytest

from lab import wait_until
from lab.agent import PREFIX, Agent, pool, put
from lab.ctl import Ctl

pytestmark = pytest.mark.quick

RULE = {"match": {"cidr": "0.0.0.0/0"}, "action": "reject"}


@pytest.fixture
def ctl(etcd, node, build):
    return Ctl(node, build, etcd)


def records(etcd):
    """All but the notes of who did what."""
    return {key: value for key, value in etcd.dump(PREFIX).items()
            if not key.startswith(PREFIX + "history/")}


def stored(etcd, key):
    return json.loads(etcd.dump(PREFIX + key)[PREFIX + key])


# --- without agents ------------------------------------------------------------------------------


def test_pools_are_listed_and_shown(ctl, etcd):
    assert ctl("pool list").startswith("There are no pools yet")
    assert ctl.json("pool list") == []
    pool(etcd, "web", namespaces=["prod", "dev-*"])
    pool(etcd, "db", "10.2.0.0/24", blockSize=28, disabled=True)
    pool(etcd, "bad", "10.1.128.0/17")
    put(etcd, "pool/worse", cidr=7)
    lines = [line.split() for line in ctl("pool list").splitlines()]
    assert lines[0][:5] == ["NAME", "CIDR", "BLOCKSIZE", "NETWORK", "STATE"]
    assert lines[1][:5] == ["bad", "10.1.128.0/17", "26", "default", "invalid"]
    assert lines[2][:7] == ["db", "10.2.0.0/24", "28", "default", "disabled", "0", "16"]
    assert lines[4][:2] == ["worse", "-"]
    assert "prod,dev-*" in ctl("pool list -o wide")
    rows = {p["name"]: p for p in ctl.json("pool list")}
    assert "overlaps pool web" in rows["bad"]["problem"]
    assert rows["worse"]["problem"].startswith('pool/worse: field "cidr": 7')
    assert ctl("pool show db").splitlines()[0] == "name:              db"
    shown = ctl.json("pool show db")
    assert shown["cidr"] == "10.2.0.0/24" and shown["cooldownSeconds"] == 60
    assert ctl.json("pool show worse")["state"] == "invalid"


def test_records_are_made_edited_and_deleted(ctl, etcd, node):
    assert ctl("pool create web cidr=10.1.0.0/16 blockSize=26") == "pool web created\n"
    assert stored(etcd, "pool/web") == {"cidr": "10.1.0.0/16", "blockSize": 26}
    assert ctl("pool edit web disabled=yes namespaces=a,b") == "pool web changed\n"
    assert ctl("pool edit web disabled=yes") == "pool web unchanged\n"
    assert ctl("pool edit web blockSize= namespaces=") == "pool web changed\n"
    assert stored(etcd, "pool/web") == {"cidr": "10.1.0.0/16", "disabled": True}
    done = ctl.run("pool delete web --yes")
    assert done.stdout == "pool web deleted\n" and done.returncode == 0
    assert done.stderr.startswith("pool web: 0 blocks on 0 nodes, 0 addresses in use; running pods")

    rules = shlex.quote(json.dumps([RULE]))
    assert ctl.json(f"filter create no-default rules={rules}") == {
        "kind": "filter", "name": "no-default", "done": "created"}
    assert ctl("peer create tor address=192.0.2.1 asn=64600 importFilter=no-default") \
        == "peer tor created\n"
    assert ctl("peer edit tor bfd=true holdTime=30") == "peer tor changed\n"
    lines = ctl("peer list").splitlines()
    assert lines[1].split()[:4] == ["tor", "192.0.2.1", "64600", "all"]
    assert "no node has a session of it" in lines[1]
    assert ctl.json("peer list")[0]["holdTime"] == 30
    assert "no-default" in ctl("peer list -o wide")
    assert "holdTime:" in ctl("peer show tor")
    assert ctl.json("peer show tor")["bfd"] is True
    assert ctl("filter list").splitlines()[1].split() == ["no-default", "1", "ok"]
    assert ctl.json("filter list")[0]["rules"][0]["action"] == "reject"
    assert "match" in ctl("filter show no-default")
    assert ctl.json("filter show no-default")["rules"][0]["match"]["cidr"] == "0.0.0.0/0"

    assert ctl.json("config show")["bgp"]["holdTime"] == 90
    assert ctl("config set bgp.holdTime=30 asn=64513") == "config changed\n"
    assert stored(etcd, "config") == {"bgp": {"holdTime": 30}, "asn": 64513}
    assert "  holdTime:             30" in ctl("config show").splitlines()

    # An editor, and one that spoils it: what was written is not lost.
    editor = {"EDITOR": "sed -i s/64600/64601/"}
    assert ctl("peer edit tor", env=editor) == "peer tor changed\n"
    assert stored(etcd, "peer/tor")["asn"] == 64601
    assert ctl("peer edit tor", env={"EDITOR": "true"}) == "peer tor unchanged\n"
    said = ctl.refuses("peer edit tor", env={"EDITOR": "sed -i s/asn/ans/"})
    assert said.startswith('unknown field "ans": perhaps "asn"?; your text is in /run/')
    assert '"ans": 64601' in node.run(["cat", said.split()[-1]]).stdout
    assert "the editor failed" in ctl.refuses("peer edit tor", env={"VISUAL": "false"})
    assert ctl.run("peer delete tor --yes").stdout == "peer tor deleted\n"
    assert ctl.run("filter delete no-default -y").stdout == "filter no-default deleted\n"


def test_what_an_agent_would_refuse_is_refused_with_its_sentence(ctl, etcd):
    ctl("pool create web cidr=10.1.0.0/16")
    put(etcd, "extent/default/old", cidr="10.9.0.0/16", blockSize=26)
    put(etcd, "filter/used", rules=[])
    ctl("peer create tor address=192.0.2.1 asn=1 importFilter=used")
    before, wrong = etcd.dump(PREFIX), []
    for line, code, said in (
        ("pool create web cidr=10.2.0.0/16", 1,
         "pool web exists already: change it with roostctl pool edit web FIELD=VALUE"),
        ("pool edit db disabled=true", 4, "there is no pool db: see roostctl pool list"),
        ("pool show db", 4, "there is no pool db: see roostctl pool list"),
        ("pool delete db --yes", 4, "there is no pool db: see roostctl pool list"),
        ("pool create DB cidr=10.2.0.0/16", 1, 'pool: "DB" is not a name: '
         "1 to 63 of a-z, 0-9, '.', '-', with a letter or digit at both ends"),
        ("pool create db blockSize=26", 1, 'pool/db: field "cidr": is missing'),
        ("pool create db cidr=10.2.0.1/16", 1,
         'pool/db: field "cidr": "10.2.0.1/16" has host bits set: write 10.2.0.0/16'),
        ("pool create db cidr=10.2.0.0/16 blockSize=8", 1,
         'pool/db: field "blockSize": 8 is not between 16 and 32'),
        ("pool create db cidr=10.2.0.0/16 blockSize=x", 1,
         'pool/db: field "blockSize": "x" is a string, not an integer'),
        ("pool create db cidr=10.1.128.0/17", 1,
         "pool db (10.1.128.0/17) overlaps pool web (10.1.0.0/16) on network default"),
        ("pool create db cidr=10.9.128.0/17", 1,
         "pool db (10.9.128.0/17) overlaps extent of pool old (10.9.0.0/16) on network default"),
        ("pool edit web blokSize=26", 1, 'unknown field "blokSize": perhaps "blockSize"?'),
        ("pool create db cidr", 1, '"cidr" is not of the form FIELD=VALUE'),
        ("pool create db", 2, "missing arguments: roostctl pool create NAME FIELD=VALUE..."),
        ("pool delete web", 2, "not done: there is no terminal to ask on; use --yes"),
        ("peer create x address=192.0.2.2 asn=1 exportFilter=none", 1,
         'peer/x: field "exportFilter": there is no valid filter/none'),
        ("peer create x address=192.0.2.2", 1,
         'peer/x: field "asn": is missing, and "address" needs it'),
        ("filter delete used --yes", 1,
         'peer/tor: field "importFilter": there is no valid filter/used'),
        ("config set asn=0", 1, None),
        ("config set protocol=isis", 1, None),
        ("node show n9", 4, "there is no node n9: see roostctl node list"),
        ("address list n9", 4, "there is no node n9: see roostctl node list"),
        ("node label n9 a=b", 4, "there is no node n9: see roostctl node list"),
        ("node delete n9 --yes", 4, "there is no node n9: see roostctl node list"),
        ("block show 10.1.0.0/26", 4, "no node has a block 10.1.0.0/26: see roostctl block list"),
        ("address show 10.1.0.9", 4, "10.1.0.9 is in use nowhere, and no node has a block with it: "
         "see roostctl pool list"),
        ("address show nonsense", 2, '"nonsense" is not an address'),
        ("address release 10.1.0.9 --yes", 3, None),
        ("get pol", 2, 'unknown kind "pol": perhaps "pool"?'),
        ("get pool db", 4, "there is no pool db: see roostctl get pool"),
        ("apply", 2, "apply needs -f FILE (- is standard input), see roostctl apply --help"),
        ("apply -f /nowhere", 1, "/nowhere: No such file or directory"),
        ("completion fish", 2, '"fish" is neither bash nor zsh'),
        ("pool lsit", 2, 'unknown verb "lsit" of pool: perhaps "list"?'),
        ("pool list --wathc", 2, 'unknown flag "--wathc": perhaps --watch? See --help'),
        ("pool list --yes", 2, '--yes is not a flag of "pool list", see roostctl pool list --help'),
        ("pool list -o yaml", 2, '--output: "yaml" is not one of: table, wide, json'),
    ):
        got = ctl.refuses(line, code)
        if said not in (None, got):
            wrong.append(f"{line}: {got}")
    assert not wrong, "\n".join(wrong)
    assert etcd.dump(PREFIX) == before


def test_what_a_change_affects_is_shown_and_asked_first(ctl, etcd):
    pool(etcd, "web")
    for i in (1, 2, 3):
        put(etcd, f"node/n{i}", ipv4=f"192.0.2.{i}/24")
    ctl("peer create tor address=192.0.2.99 asn=64600 nodes=n1")
    put(etcd, "static-route/vpn", subnet="172.20.0.0/16", nodeSelector="zone == 'a'")
    put(etcd, "spec/n1", labels={"zone": "a"})
    before = etcd.dump(PREFIX)
    refusal = "roostctl: not done: there is no terminal to ask on; use --yes"
    ends, peer = "ends 1 session on 1 node (n1)", {"kind": "peer", "name": "tor", "disabled": True,
                                                   "address": "192.0.2.99", "asn": 64600}
    for line, shown, text in (
        ("config set asn=64999", "restarts 6 sessions on 3 nodes (n1, n2, n3): ", None),
        ("config set protocol=none", "ends 7 sessions on 3 nodes (n1, n2, n3)", None),
        ("peer edit tor disabled=true", ends, None),
        ("peer delete tor", ends, None),
        ("pool edit web disabled=true", "new pods use no pool instead of pool web on 3 nodes", None),
        ("pool delete web", "new pods use no pool instead of pool web on 3 nodes", None),
        ("route edit vpn table=100", "removes static route vpn from 1 node (n1)", None),
        ("node label n1 zone-", "removes static route vpn from 1 node (n1)", None),
        ("node delete n3", "ends 2 sessions on 2 nodes (n1, n2)", None),
        ("apply -f -", ends, json.dumps(peer)),
    ):
        refused = ctl.run(line, input=text)
        assert refused.returncode == 2, line
        assert shown in refused.stderr and refused.stderr.endswith(refusal + "\n"), line
        tried = ctl.run(f"{line} --dry-run", input=text)
        assert tried.returncode == 0 and "(dry run)" in tried.stdout, line
        assert shown in tried.stderr and "\nwould " in tried.stderr, line
    # What affects nothing is written without a question; the others only tried.
    for line in ("pool create x cidr=10.9.0.0/16", "filter create f rules=[]", "node drain n1",
                 "route delete vpn", "route delete vpn --force", "config set logLevel=debug"):
        tried = ctl.run(f"{line} --dry-run")
        assert tried.returncode == 0 and tried.stderr.startswith(("would ", "route vpn: ")), line
        assert "(dry run)" in tried.stdout, line
        tried = ctl.run([*shlex.split(line), "--dry-run", "-o", "json"])
        assert json.loads(tried.stdout)["dryRun"] is True
    assert etcd.dump(PREFIX) == before

    # A new pool that is tried first says so; priority decides.
    done = ctl.run("pool create db cidr=10.2.0.0/16")
    assert (done.returncode, done.stderr) == (0, "new pods use pool db instead of pool web on 3 nodes "
                                              "(n1, n2, n3); set priority to choose the order of pools\n")
    assert ctl("pool create cache cidr=10.3.0.0/16 priority=99") == "pool cache created\n"
    assert ctl("pool create six cidr=fd00:6::/64") == "pool six created\n"
    assert ctl.json("pool show six")["blockSize"] == 84
    assert ctl.run("config set asn=64999 --yes").stdout == "config changed\n"
    assert stored(etcd, "config") == {"asn": 64999}

    # What node delete did is undone; a second time there is nothing to undo.
    assert ctl.run("node delete n3 --yes").returncode == 0
    assert PREFIX + "removed/n3" in etcd.dump(PREFIX)
    done = ctl.run("node restore n3")
    assert done.stdout == "node n3 restored\n"
    assert done.stderr == "node n3: its record, 0 blocks and 0 addresses in use are still there\n"
    assert PREFIX + "removed/n3" not in etcd.dump(PREFIX)
    assert ctl("node restore n3") == "node n3 unchanged\n"
    put(etcd, "removed/n4", by="me")
    assert "node n4: its record is gone already" in ctl.run("node restore n4").stderr
    assert ctl.refuses("node restore n9", 4) == "there is no node n9: see roostctl node list"
    assert "perhaps" not in ctl.refuses("node delte n3", 2)


def test_history_says_who_changed_what(ctl, etcd):
    assert ctl("history").startswith("roostctl has changed nothing")
    ctl("pool create web cidr=10.1.0.0/16")
    ctl("pool edit web cooldownSeconds=5", env={"SUDO_USER": "ada"})
    put(etcd, "pool/web", cidr="10.1.0.0/16", cooldownSeconds=6)  # by another program
    ctl.run("pool delete web --yes")
    ctl("filter create f rules=[]")
    rows = ctl.json("history")
    assert [row["command"] for row in rows] == [
        "filter create f rules=[]", "pool delete web --yes", "pool edit web cooldownSeconds=5",
        "pool create web cidr=10.1.0.0/16"]
    assert {row["user"] for row in rows} == {"root"} and all(row["when"] for row in rows)
    assert rows[2]["sudoUser"] == "ada (claimed)" and "sudoUser" not in rows[3]
    assert rows[1]["changes"] == ["pool/web deleted"]
    assert rows[1]["host"] == ctl.node.run(["hostname"]).stdout.strip()
    assert len(ctl.json("history filter")) == 1
    # The versions of one record, also what others wrote; the note is in the same transaction.
    versions = ctl.json("history pool web")
    assert [v.get("done") for v in versions] == ["deleted", None, "changed", "created"]
    assert [json.loads(v["record"]).get("cooldownSeconds") if "record" in v else "-"
            for v in versions] == ["-", 6, 5, None]
    assert [v["revision"] for v in versions[2:]] == [row["revision"] for row in rows[2:]]
    # After a compaction the log remains.
    etcd.call("/v3/kv/compaction", {"revision": versions[0]["revision"], "physical": True})
    assert [v.get("done") for v in ctl.json("history pool web")] == ["deleted", "changed", "created"]
    assert ctl.refuses("history pol", 2) == 'unknown kind "pol": perhaps "pool"?'

    # What is refused leaves no note; the log does not grow without limit.
    ctl.refuses("pool create bad cidr=7")
    ctl.run("pool create y cidr=10.4.0.0/16 --dry-run")
    assert len(ctl.json("history")) == 4
    for i in range(505):
        etcd.put(f"{PREFIX}history/20200101t000000.{i:06}z-0", "{}")
    ctl("filter create g rules=[]")
    left = [key for key in etcd.dump(PREFIX) if key.startswith(PREFIX + "history/")]
    assert len(left) == 500 and not any(key.endswith(".000009z-0") for key in left)


def test_get_and_apply_are_a_round_trip(ctl, etcd):
    pool(etcd, "web", blockSize=26, namespaces=["a"], fromTheFuture=1)
    put(etcd, "filter/f", rules=[RULE])
    put(etcd, "peer/tor", address="192.0.2.1", asn=1, importFilter="f")
    put(etcd, "config", asn=64513, bgp={"bfd": True})
    put(etcd, "spec/n1", labels={"zone": "a"})
    before = etcd.dump(PREFIX)
    kinds = ("config", "pool", "peer", "filter", "spec")
    text = "\n".join(ctl(f"get {kind} -o json") for kind in kinds)
    assert ctl("apply -f -", input=text).splitlines() == [
        "config unchanged", "pool web unchanged", "peer tor unchanged", "filter f unchanged",
        "spec n1 unchanged"]
    assert etcd.dump(PREFIX) == before
    etcd.delete(PREFIX, prefix=True)
    outcomes = ctl.json("apply -f -", input=text.replace('"fromTheFuture": 1', '"origin": ""'))
    assert [o["done"] for o in outcomes] == ["created"] * 5
    after = {k: json.loads(v) for k, v in records(etcd).items()}
    want = {k: json.loads(v) for k, v in before.items()}
    want[PREFIX + "pool/web"].pop("fromTheFuture")
    want[PREFIX + "pool/web"]["origin"] = ""
    assert after == want
    # One record is one object; a table is for people.
    assert ctl.json("get pool web")["kind"] == "pool"
    assert ctl("get pool").splitlines()[0].split() == ["KIND", "NAME", "FIELDS"]
    # All or none.
    bad = [{"kind": "pool", "name": "a", "cidr": "10.7.0.0/16"},
           {"kind": "pool", "name": "b", "cidr": "10.7.0.0/24"}]
    assert ctl.refuses("apply -f -", input=json.dumps(bad)) == \
        "pool a (10.7.0.0/16) overlaps pool b (10.7.0.0/24) on network default"
    for record, said in (
        ({"kind": "pool", "name": "a", "cdir": "10.7.0.0/16"},
         'pool/a: unknown field "cdir": perhaps "cidr"?'),
        ({"kind": "pool", "cidr": "10.7.0.0/16"}, 'record 1: field "name": is missing'),
        ({"kind": "block", "name": "x"},
         'record 1: kind "block" is written by agents only')):
        assert ctl.refuses("apply -f -", input=json.dumps(record)) == said
    assert {k: json.loads(v) for k, v in records(etcd).items()} == want
    # A peer and its filter in either order.
    both = [{"kind": "peer", "name": "b", "address": "192.0.2.2", "asn": 1, "exportFilter": "g"},
            {"kind": "filter", "name": "g", "rules": []}]
    assert ctl("apply -f -", input=json.dumps(both)) == "peer b created\nfilter g created\n"
    # What is no JSON is told and does not hide the others.
    etcd.put(PREFIX + "pool/broken", "{")
    done = ctl.run("get pool -o json")
    assert done.returncode == 1 and "pool/broken: not a whole JSON object" in done.stderr
    assert [p["name"] for p in json.loads(done.stdout)] == ["web"]


def test_two_operators_lose_nothing(ctl, etcd, node):
    """While one has the record in the editor, another changes it."""
    pool(etcd, "web")
    script = (f"{ctl.program} pool edit web cooldownSeconds=5 "
              f"{' '.join(map(str, etcd.flags()))} >&2 && sed -i s/10.1/10.2/")
    node.write("/run/editor", f"#!/bin/sh\n{script} \"$1\"\n")
    node.run(["chmod", "+x", "/run/editor"])
    said = ctl.refuses("pool edit web", env={"EDITOR": "/run/editor"})
    assert "these records have changed meanwhile: try again" in said
    assert stored(etcd, "pool/web") == {"cidr": "10.1.0.0/16", "cooldownSeconds": 5}
    # At the same moment: neither sees the other's pool before it writes, and only one may.
    etcd.delete(PREFIX + "pool/web")
    create = [" ".join(map(str, ctl.command(f"pool create {name} cidr=10.1.0.0/{length}")))
              for name, length in (("a", 16), ("b", 17), ("c", 18))]
    for _ in range(3):
        done = node.run(["sh", "-c", " & ".join(create) + " & wait"])
        assert len(ctl.json("pool list")) == 1, done.stdout
        assert done.stdout.count("created") == 1 and done.stderr.count("overlaps pool") == 2
        etcd.delete(PREFIX + "pool/", prefix=True)


def test_a_watched_list_is_printed_again_when_it_changes(ctl, etcd):
    table, lines = ctl.process("pool list --watch"), ctl.process("pool list -w -o json")
    table.wait_log("There are no pools yet")
    lines.wait_log(r"^\[\]")
    pool(etcd, "web")
    table.wait_log(r"web +10.1.0.0/16")
    lines.wait_log('"name":"web"')
    etcd.delete(PREFIX + "pool/web")
    wait_until(lambda: table.log.count("There are no pools yet") == 2, 20, "an empty list again")
    table.stop()
    lines.stop()


def test_on_a_terminal_it_asks_and_paints(ctl, etcd, node):
    pool(etcd, "web")

    def terminal(line, typed="", **env):
        command = " ".join(map(str, ctl.command(line)))
        return node.run(["script", "-qec", command, "/dev/null"], input=typed, check=False, env=env)
    no = terminal("pool delete web", "n\n")
    assert "Delete it? [y/N]" in no.stdout and "roostctl: not done" in no.stdout
    assert no.returncode == 1 and "web" in ctl("pool list")
    assert "\033[32mok\033[0m" in terminal("pool list").stdout
    assert "\033" not in terminal("pool list", NO_COLOR="1").stdout
    assert "\033" not in terminal("pool list --no-color").stdout
    assert "\033" not in ctl("pool list")
    yes = terminal("pool delete web", "y\n")
    assert "pool web deleted" in yes.stdout and yes.returncode == 0
    assert ctl.json("pool list") == []


def test_without_etcd_it_says_so(node, build):
    ctl = Ctl(node, build)
    assert "check that etcd is running and that --etcd is right" in ctl.refuses("pool list", 3)
    assert ctl("version").startswith("roostctl:  ")
    assert "roostctl" in ctl.json("version")
    # On a node the agent's own file says where etcd is; what else it has is the agent's.
    node.write("/etc/roost/agent.json", '{"etcd": "http://127.0.0.1:9", "logLevel": "debug"}')
    assert "127.0.0.1:9" in ctl.refuses("pool list", 3)
    assert ctl.run("__complete -- pool show ''").stdout == ""


# --- with agents ---------------------------------------------------------------------------------


@pytest.fixture
def agents2(lab, etcd, build):
    pool(etcd, "web", blockSize=28)
    a, b = (Agent(lab.node(name), build, etcd).start() for name in ("n1", "n2"))
    return a, b


@pytest.mark.slow(10)
def test_nodes_blocks_and_addresses(agents2, etcd, build):
    a, b = agents2
    ctl = Ctl(a.node, build, etcd)
    address, other = a.assign("c1", pod="web-1", namespace="prod")[0], b.assign("c2")[0]
    a.wait_agreed()
    b.wait_agreed()
    wait_until(lambda: {n["name"]: n["used"] for n in ctl.json("node list")} == {"n1": 1, "n2": 1},
               20, "both in the status keys")
    lines = [line.split() for line in ctl("node list").splitlines()]
    assert lines[0][:4] == ["NAME", "STATE", "IPV4", "IPV6"]
    assert [line[:2] for line in lines[1:]] == [["n1", "alive"], ["n2", "alive"]]
    assert ctl.json("version")["roostd"] == ctl.json("version")["roostctl"]
    shown = ctl.json("node show n1")
    assert shown["status"]["pools"]["web"]["used"] == 1 and shown["machine"]
    assert [x["pool"] for x in shown["ownedBlocks"]] == ["web"]
    assert "ownedBlocks:" in ctl("node show n1")

    block = next(iter(a.blocks()))
    assert {x["node"] for x in ctl.json("block list")} == {"n1", "n2"}
    assert [x["block"] for x in ctl.json("block list n1")] == [block]
    assert ctl("block list n1").splitlines()[1].split()[:4] == [block, "default", "n1", "web"]
    for name in block, block.replace("/", "-"), address, f"{block} default":
        assert ctl.json(f"block show {name}")["addresses"][0]["address"] == address
    assert "addresses:" in ctl(f"block show {block}")

    assert {x["address"] for x in ctl.json("address list")} == {address, other}
    assert ctl("address list n1").splitlines()[1].split() == [
        address, "default", "n1", "prod", "web-1", "web"]
    shown = ctl.json(f"address show {address}")
    assert (shown["state"], shown["pod"], shown["blockOwner"]) == ("used", "web-1", "n1")
    free = next(x for x in map(str, ipaddress.ip_network(block)) if x != address)
    assert "state:       free" in ctl(f"address show {free}")

    # What would be lost is said before; elsewhere it is refused with the reason.
    said = ctl.run("pool delete web").stderr
    assert said.startswith("pool web: 2 blocks on 2 nodes, 2 addresses in use")
    assert ctl.refuses(f"address release {other} --yes") == (
        f"{other} is in use on node n2: run this command there")
    assert ctl.refuses(f"address release {free} --yes", 4) == f"{free} is not in use"
    assert "no terminal" in ctl.refuses(f"address release {address}", 2)
    done = ctl.run(f"address release {address} --yes")
    assert done.stdout == f"address {address} released\n"
    assert "pod prod/web-1, container c1, interface eth0" in done.stderr
    wait_until(lambda: a.held() == {}, 20, "the address to be free")

    # An edit that has no effect yet is told.
    done = ctl.run("pool edit web blockSize=27")
    assert done.returncode == 0 and "note: pool web says 10.1.0.0/16 in blocks of /27, but blocks" \
        in done.stderr

    assert ctl("node label n1 zone=a example.org/disk=ssd") == "node n1 labelled\n"
    put(etcd, "spec/n1", **{**stored(etcd, "spec/n1"), "kubernetesUid": "u1"})
    assert ctl("node drain n1") == "node n1 drained\n"
    assert ctl("node drain n1") == "node n1 unchanged\n"
    assert ctl("node label n1 example.org/disk-") == "node n1 labelled\n"
    assert stored(etcd, "spec/n1") == {"labels": {"zone": "a"}, "kubernetesUid": "u1",
                                       "drain": True}
    assert ctl.json("node list")[0]["state"] == "drained"
    assert "zone=a" in ctl("node list -o wide")
    assert ctl.json("node undrain n1")["done"] == "undrained"
    assert ctl.refuses("node label n1 zone", 2) == \
        '"zone" is neither KEY=VALUE nor KEY-, which removes a label'
    assert 'field "labels' in ctl.refuses("node label n1 'zone=a b'")

    assert ctl.refuses("node delete n2 --now --yes") == (
        "node n2 is alive, so its machine is not off: stop its agent first, or omit --now")
    done = ctl.run("node delete n2 --yes")
    assert done.stdout == "node n2 removed\n"
    assert "node n2: 1 block, 1 address in use; its agent is alive" in done.stderr
    assert stored(etcd, "removed/n2").keys() == {"by", "when"}
    assert ctl.json("node list")[1]["state"] == "removed"
    b.kill()
    etcd.delete(PREFIX + "status/node/n2")  # as its lease would, a minute later
    assert "in use; its agent is silent\n" in ctl.run("node delete n2 --yes --now").stderr
    assert stored(etcd, "removed/n2")["now"] is True


@pytest.mark.slow(10)
def test_every_example_of_the_help_works(agents2, etcd, build):
    """In the order of the table, in one shell's environment, on n1 of two nodes."""
    a, b = agents2
    ctl = Ctl(a.node, build, etcd)
    a.assign("c1")
    b.assign("c2")
    a.wait_agreed()
    b.wait_agreed()
    env = {"ROOST_ETCD": etcd.endpoints}
    ctl.etcd = None
    etcd.delete(PREFIX + "pool/web")
    etcd.put(f"{PREFIX}block/default/10.5.9.0-24", json.dumps(
        {"node": "lease-192.0.2.9", "pool": "over", "lease": {"publicIP": "192.0.2.9"}}))
    etcd.put(f"{PREFIX}host/lease-192.0.2.9/ipv4/block/default/10.5.9.0-24", "{}")
    put(etcd, "node/lease-192.0.2.9", ipv4="192.0.2.9/32", machine="lease", boot="lease")
    for line in ctl("__examples").splitlines():
        done = a.node.run(["bash", "-ec", f"set -o pipefail; roostctl() {{ {ctl.program} \"$@\"; }}; "
                           f"export -f roostctl; {line}"], check=False, env=env)
        assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"
        assert "roostctl: " not in done.stderr.replace("roostctl: note: ", ""), f"{line}: {done.stderr}"


def test_shells_complete_words_fields_and_names(ctl, etcd, node):
    pool(etcd, "web")
    pool(etcd, "world", "10.2.0.0/16")
    put(etcd, "block/default/10.1.0.64-26", node="n1", pool="web")
    flags = " ".join(map(str, etcd.flags()))
    folder = ctl.program.parent

    def bash(line):
        script = (f"PATH={folder}:$PATH; source <(roostctl completion bash); COMP_LINE=$1; "
                  "COMP_POINT=${#1}; _roostctl; printf '%s\\n' \"${COMPREPLY[@]}\"")
        return node.run(["bash", "-c", script, "bash", line]).stdout.split()

    def zsh(line):
        # What zsh would give to the menu, without a terminal.
        script = (f"PATH={folder}:$PATH; compdef() {{ }}; _files() {{ print files }}; "
                  "_describe() { print -l -- ${(P)2} }; source <(roostctl completion zsh); "
                  "words=(${(z)1}); [[ $1 == *' ' ]] && words+=(''); CURRENT=$#words; _roostctl")
        return node.run(["zsh", "-fc", script, "zsh", line]).stdout.splitlines()

    assert bash("roostctl p") == ["pool", "peer", "pod"]
    assert bash("roostctl pool d") == ["delete"]
    assert bash(f"roostctl {flags} pool show w") == ["web", "world"]
    assert bash(f"roostctl pool show {flags} we") == ["web"]
    assert bash("roostctl pool edit web disabled=") == ["true", "false"]
    assert bash("roostctl pool list -o w") == ["wide"]
    assert bash(f"roostctl {flags} block show 10") == ["10.1.0.64/26"]
    assert bash("roostctl apply -f x") == []
    assert zsh("roostctl pool li")[0].startswith("list:list the address pools")
    assert zsh(f"roostctl {flags} pool show ") == ["web:", "world:"]
    assert zsh("roostctl apply -f ") == ["files"]


def test_the_man_page_has_every_command(ctl, node):
    page = pathlib.Path(__file__).resolve().parent.parent / "docs/man/roostctl.8"
    done = node.run(["man", "--warnings", "-l", str(page)], env={"MANWIDTH": "200", "LANG": "C"})
    assert done.stderr == ""
    text = " ".join(done.stdout.split())
    for line in ctl("--help").splitlines():
        if line.startswith("  ") and line[2] not in "- ":
            command = line[2:].split("  ")[0]
            assert command in text, command
        elif line.startswith("  -"):
            flag = line.split("--")[1].split()[0]
            assert f"--{flag}" in text, flag

# SPDX-License-Identifier: Apache-2.0
"""roostctl status, bgp and render on a real cluster; the lines of faults are in test_faults.py."""

import json

import pytest

from lab import wait_until
from lab.agent import pool
from lab.ctl import Ctl
from lab.site import Site

PARTS = ["agent", "etcd", "kernel", "bird", "addresses"]
SECRET = "tell-nobody-4711"


def rows(text):
    """[{title: cell}] of a table with single words in its cells, the last one apart."""
    title, *lines = text.splitlines()
    names = title.split()
    return [dict(zip(names, line.split(None, len(names) - 1))) for line in lines]


@pytest.fixture
def pair(lab, etcd, build):
    site = Site(lab, build, etcd)
    site.put("pool/web", cidr="10.1.0.0/16")
    members = site.start(2)
    for m in members:
        m.pod(f"p-{m.node.name}")
    site.settle()
    return site, *members


@pytest.mark.slow(25)
def test_status_bgp_and_render_of_a_cluster(pair, build, etcd):
    site, a, b = pair
    ctl = Ctl(a.node, build, etcd)
    wait_until(lambda: ctl.run("status").returncode == 0, 60, "all to be well")
    wait_until(lambda: all(r.get("exported") for r in ctl.json("bgp --all")), 60,
               "both to have told their sessions")

    # --- all is well
    parts, said = ctl("status").split("\n\n")
    assert said == "All is well.\n"
    table = rows(parts)
    assert [(r["PART"], r["STATE"]) for r in table] == [(p, "ok") for p in PARTS]
    about = [r["ABOUT"] for r in table]
    assert about[0].startswith("roostd 0.1.0 since 20")
    assert about[0].endswith(" on node n1; 10.250.0.2: source address towards etcd 10.250.0.1")
    assert about[1:3] == [f"connected to {etcd.endpoints}",
                          "1 pod link, 2 routes; 0 repairs, 0 refused"]
    assert about[3].startswith("BIRD 2") and "; bgp, 1 of 1 sessions up; configuration" in about[3]
    assert about[4] == "1 in use by 1 pod, 63 free, in 1 block"
    tree = ctl.json("status")
    assert (tree["node"], tree["reachable"], tree["state"], tree["problems"]) == \
        ("n1", True, "ok", [])
    assert [p["part"] for p in tree["parts"]] == PARTS
    assert tree["agent"]["total"]["used"] == 1

    row, = rows(ctl("bgp"))
    assert (row["NODE"], row["SESSION"], row["PEER"], row["AS"], row["STATE"], row["IMPORTED"],
            row["EXPORTED"]) == ("n1", "n_10_250_0_3", "10.250.0.3", "64512", "Established", "1",
                                 "1")
    row, = ctl.json("bgp")
    assert row["up"] is True and row["since"] and "error" not in row
    assert " UP " in ctl("bgp -o wide").splitlines()[0]
    assert [(r["NODE"], r["STATE"]) for r in rows(ctl("bgp --all"))] == \
        [("n1", "Established"), ("n2", "Established")]

    text = ctl("render")
    assert text == a.node.read("/etc/bird/bird.conf")
    assert ctl("render --diff") == ""
    tree = ctl.json("render --diff")
    assert (tree["same"], tree["diff"], tree["runningFrom"]) == (True, "", "accepted by BIRD")
    assert ctl.json("render")["wanted"] == text

    # --- a peer with a password, one that is left out; a template that BIRD refuses
    a.node.write("/etc/roost/p.key", SECRET, mode=0o600)
    site.put("peer/away", address="10.250.0.77", asn=64999, nodes=["n1"],
             passwordFile="/etc/roost/p.key")
    site.put("peer/bad", address="10.250.0.78", asn=64999, nodes=["n1"], exportFilter="nowhere")
    wait_until(lambda: len(ctl.json("bgp")) == 2, 60, "another session", poll=0.2)
    first, second = ctl.json("bgp")
    assert (first["peer"], first["up"], second["up"]) == ("10.250.0.77", False, True)
    wait_until(lambda: [r["up"] for r in ctl.json("bgp --all")] == [False, True, True], 60,
               "it to be told to etcd", poll=0.2)
    text = ctl("render")
    assert text.startswith("# left out: peer/bad: ") and "10.250.0.77" in text
    assert SECRET not in text and SECRET in a.node.read("/etc/bird/bird.conf")
    assert ctl("render --diff").startswith("# left out: peer/bad: ")
    a.node.write("/etc/roost/templates/bird-base.mustache",
                 "router id {{routerId}};\nprotocol nonsense { }\n")
    a.agent.reload()
    a.agent.wait_health("bird-config", "syntax error", 60)
    done = ctl.run("render --diff")
    assert done.returncode == 1 and "\n+protocol nonsense { }\n" in done.stdout
    assert "\n--- running\n+++ wanted\n" in done.stdout and SECRET not in done.stdout
    done = ctl.run("render --diff -o json")
    assert done.returncode == 1 and json.loads(done.stdout)["same"] is False
    a.node.write("/etc/roost/templates/bird-base.mustache", "{{> nowhere}}\n")
    a.agent.reload()
    a.agent.wait_health("bird-config", "nowhere", 60)
    assert ctl.refuses("render").startswith("BIRD's configuration cannot be rendered: ")
    done = ctl.run("status -o json")
    tree = json.loads(done.stdout)
    assert (done.returncode, tree["state"]) == (1, "error")
    assert {"bird-config", "routing/peer/bad"} <= {p["part"] for p in tree["problems"]}
    assert {p["part"]: p["state"] for p in tree["parts"]}["bird"] == "error"

    # --- another protocol, and a list that goes on
    watch = ctl.process("bgp --all --watch -o json")
    wait_until(lambda: watch.log.strip(), 30, "the first list")
    a.node.path("/etc/roost/templates/bird-base.mustache").unlink()
    a.agent.reload()
    site.put("config", protocol="rip", rip={"interfaces": ["eth0"]})

    def all_rip():
        lists = [json.loads(line) for line in watch.log.splitlines() if line.endswith("]")]
        return [r["state"] for r in lists[-1]] == ["rip", "rip"]
    wait_until(all_rip, 60, "both to run RIP", poll=0.2)
    watch.kill()
    assert rows(ctl("bgp"))[0]["STATE"] == "rip"
    assert ctl.json("bgp") == [{"node": "n1", "state": "rip", "up": True,
                                "error": "runs RIP, not BGP: see birdc show rip neighbors"}]
    assert "; rip; configuration" in ctl.run("status -o wide").stdout

    # --- without agents
    b.agent.kill()
    etcd.delete("/roost/v1/status/node/n2")  # as its lease would, a minute later
    silent, _ = ctl.json("bgp --all")
    assert silent["node"] == "n2" and silent["state"] == "silent"
    a.agent.kill()
    done = ctl.run("status")
    assert done.returncode == 3 and done.stderr == ""
    parts, problems = done.stdout.split("\n\n")
    assert [(r["PART"], r["STATE"]) for r in rows(parts)] == \
        [("agent", "down"), ("etcd", "ok"), ("kernel", "ok"), ("bird", "ok")]
    assert "2 IPv4 and 0 IPv6 routes of protocol 114 (roost) stay as they are" in parts
    assert "BIRD 2" in parts and "answers on /run/bird/bird.ctl" in parts
    assert "no answer on /run/roost/agent.sock: roostd has stopped" in problems
    assert "see roostctl status" in ctl.refuses("bgp", 3)
    assert "agent.sock" in ctl.refuses("render", 3)


def test_a_node_with_nothing_at_all(node, build):
    ctl = Ctl(node, build)
    done = ctl.run("status")
    assert done.returncode == 3 and done.stderr == ""
    parts, problems = done.stdout.split("\n\n")
    assert [(r["PART"], r["STATE"]) for r in rows(parts)] == \
        [("agent", "down"), ("etcd", "down"), ("kernel", "ok"), ("bird", "down")]
    assert "there is no socket /run/roost/agent.sock: roostd has not been started" in problems
    assert "check that etcd is running and that --etcd is right" in problems
    assert "unless roostd has --bird-config none, see `systemctl status bird`" in problems
    tree = json.loads(ctl.run("status -o json").stdout)
    assert (tree["reachable"], tree["state"], tree["node"]) == (False, "unreachable", node.name)
    assert [p["level"] for p in tree["problems"]] == ["error", "error", "warning"]
    for line, said in {
        "status now": "too many arguments: roostctl status takes none",
        "status --all": '--all is not a flag of "status", see roostctl status --help',
        "render --watch": '--watch is not a flag of "render", see roostctl render --help',
        "bgp n1": "too many arguments: roostctl bgp takes none",
        "bgp --diff": '--diff is not a flag of "bgp", see roostctl bgp --help',
        "render --all": '--all is not a flag of "render", see roostctl render --help',
        "render x": "too many arguments: roostctl render takes none",
    }.items():
        assert ctl.refuses(line, 2) == said


def test_bird_left_alone_and_a_socket_that_is_not_ours_to_use(agent, etcd, build):
    pool(etcd)
    ctl = Ctl(agent.node, build, etcd)
    wait_until(lambda: ctl.run("status").returncode == 0, 30, "all to be well")
    assert "not managed: --bird-config is none" in ctl("status")
    said = "# the agent does not manage BIRD: --bird-config is none\n"
    assert ctl("render") == said and ctl("render --diff") == said
    assert ctl.json("render") == {"managed": False}
    assert ctl.json("bgp")[0]["state"] == "unmanaged"
    nobody = ["setpriv", "--reuid", "65534", "--clear-groups", "--", *ctl.command("status")]
    done = agent.node.run(nobody, check=False)
    assert done.returncode == 1
    assert done.stderr == \
        "roostctl: /run/roost/agent.sock belongs to root: try again as root\n", done.stderr


def test_a_watched_status_is_printed_again_when_it_changes(agent, etcd, build):
    pool(etcd, "web")
    ctl = Ctl(agent.node, build, etcd)
    wait_until(lambda: ctl.run("status").returncode == 0, 60, "all to be well")
    text = ctl.process("status --watch")
    lines = ctl.node.spawn("lines", ctl.command("status -w -o json"))
    command = " ".join(map(str, ctl.command("status --watch")))
    terminal = ctl.node.spawn("terminal", ["script", "-qfec", command, "/dev/null"])
    text.wait_log("^addresses +ok +0 in use")
    lines.wait_log('^{"node":"n1","reachable":true,"state":"ok".*"pools":{"web"')
    terminal.wait_log(r"\033\[H\033\[2J.*PART")
    agent.assign("c1")
    text.wait_log(r"\n\nPART(.*\n)*addresses +ok +1 in use by 1 pod")
    lines.wait_log('1 in use by 1 pod')
    terminal.wait_log("1 in use by 1 pod")
    agent.kill()
    text.wait_log("^agent +down")
    agent.start()
    wait_until(lambda: text.log.rstrip().endswith("All is well."), 60, "the agent to be back")
    for process in text, lines, terminal:
        process.stop()

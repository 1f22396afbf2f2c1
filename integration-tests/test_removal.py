# SPDX-License-Identifier: Apache-2.0
"""Installation, drain, upgrade and removal of a node, with what a real runtime does meanwhile.

After the removal the node is as it was before the installation: routes of all tables, links, rules,
nftables, settings, files.
"""

import hashlib
import json
import pathlib
import re

import grpc
import pytest
import yaml

from lab import cni, containerd, systemd, wait_until
from lab.agent import RUN, Agent, put
from lab.bird import Bird
from lab.cluster import BIN, DEBIAN
from lab.containerd import Containerd, Cri
from lab.site import Site

ROOT = pathlib.Path(__file__).resolve().parent.parent
INSTALL = ROOT / "cni/roost-install"
CONF = "/etc/cni/net.d"
AWAY_S = 120
needs_containerd = pytest.mark.skipif(bool(containerd.missing()), reason=containerd.missing() or "")
needs_systemd = pytest.mark.skipif(systemd.why_not() is not None, reason=str(systemd.why_not()))


# --- the node as it is --------------------------------------------------------------------------

def contents(node, folder):
    """{path below the folder: what it is}; of /run without what others keep there."""
    found = {}
    top = node.path(folder)
    for p in sorted(top.rglob("*")) if top.exists() else ():
        name = str(p.relative_to(top))
        if folder == "/run" and name.split("/")[0] not in ("roost", "roost-bird"):
            continue
        found[name] = hashlib.sha256(p.read_bytes()).hexdigest() if p.is_file() else p.lstat().st_mode
    return found


def snapshot(node):
    """All that a removal must leave as it was."""
    def said(*cmd):
        # Times, counters and the numbers of links come and go.
        text = node.run([*cmd]).stdout
        text = re.sub(r"(?m)^\d+: |@\S+|link-netnsid \d+| expires \S+|state \S+", "", text)
        return sorted(line for line in text.splitlines() if "fe80::" not in line and "ff00::" not in line)
    return {
        "routes": said("ip", "route", "show", "table", "all"),
        "routes6": said("ip", "-6", "route", "show", "table", "all"),
        "links": said("ip", "-o", "link"),
        "addresses": said("ip", "-o", "addr"),
        "rules": said("ip", "rule") + said("ip", "-6", "rule"),
        "neighbours": said("ip", "neigh", "show", "nud", "permanent"),
        "nftables": said("nft", "-s", "list", "ruleset"),
        "forwarding": [node.sysctl("net.ipv4.ip_forward"), node.sysctl("net.ipv6.conf.all.forwarding")],
        "run": contents(node, "/run"),
        "run folders": [p.name for p in sorted(node.path("/run").glob("roost*"))],
        "bin": contents(node, BIN),
        "net.d": contents(node, CONF),
        "bird": contents(node, "/etc/bird"),
    }


def same(before, after):
    assert {k: v for k, v in after.items() if v != before[k]} == {}, before


class Host:
    """roost-install on a node, as an operator runs it."""

    def __init__(self, node, plugins, program=INSTALL, conflist=ROOT / "systemd/10-roost.conflist",
                 roostd=None):
        self.node, self.program = node, program
        self.flags = ["--from", plugins, "--conflist", conflist,
                      "--also", f"{DEBIAN}/portmap", "--also", f"{DEBIAN}/loopback"]
        self.roostd = roostd or plugins / "roostd"

    def __call__(self, verb, *args, code=0):
        done = self.node.run(self.command(verb, *args), check=False, timeout=90)
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        return done.stdout + done.stderr

    def command(self, verb, *args):
        flags = self.flags if verb in ("install", "check") else []
        flags = ["--roostd", self.roostd] if verb == "clean" else flags
        # Named, because the machine's own containerd would say where it looks.
        return [self.program, verb, *args, *flags, "--bin-dir", BIN, "--conf-dir", CONF]


@pytest.fixture
def bare(lab, etcd):
    """A node on etcd's switch that has never seen us."""
    node = lab.node("n1")
    etcd.join(node)
    node.run("rmdir /run/roost")
    return node


def status_verb(node, version="1.1.0"):
    """STATUS of both plugins as the runtime asks it: raises what they say."""
    conf = {"cniVersion": version, "name": "pods", "type": "roost", "ipam": {"type": "roost-ipam"}}
    for plugin in "roost", "roost-ipam":
        cni.call(node, f"{BIN}/{plugin}", "STATUS", conf, container="", netns="", ifname="", path=BIN)


def pods_of(cri, n):
    return [cri.start(f"p{i}") for i in range(n)]


# --- the whole life of a node -------------------------------------------------------------------

@needs_containerd
@pytest.mark.slow(10)
def test_containerd_install_drain_upgrade_remove(bare, etcd, build):
    """20 pods by the CRI; etcd is away for the whole removal, which is killed and repeated."""
    node = bare
    node.run(f"ln -s {DEBIAN}/loopback {BIN}/loopback")
    put(etcd, "pool/web", cidr="10.1.0.0/16", natOutgoing=True, encapsulation="vxlan")
    before = snapshot(node)

    host = Host(node, build)
    host("install")
    agent = Agent(node, build, etcd).start()
    there = Containerd(node).start()
    cri = Cri(there)
    pods = pods_of(cri, 20)
    held = agent.held()
    assert {p.address for p in pods} <= set(held)
    assert any("roost.vxlan" in line for line in snapshot(node)["links"]), "the overlay is part of it"
    assert any("table inet roost" in line for line in snapshot(node)["nftables"])

    # A drain: nothing new, what runs stays, and the node stays Ready.
    put(etcd, "spec/n1", drain=True)
    agent.wait_health("drain", "20 pods are left", 30)
    with pytest.raises(grpc.RpcError, match="node n1 is drained and gives no new addresses"):
        cri.start("no")
    status_verb(node)
    assert cri.network_ready() and agent.held() == held
    put(etcd, "spec/n1")
    agent.wait_well("drain", 30)

    # An upgrade: while the agent is away the node stays Ready, too.
    agent.stop()
    status_verb(node)
    status_verb(node)
    assert cri.network_ready()
    agent.start()
    status_verb(node)
    assert agent.held() == held and not node.path(f"{RUN}/away").exists()

    # Removal, without etcd. Nothing goes while pods are there, and each of them can end.
    etcd.kill()
    said = host("uninstall", code=3)
    assert "pod interfaces left: 20 (default/p" in said and "and 15 more" in said
    assert node.path(f"{CONF}/10-roost.conflist").exists() and node.path(f"{BIN}/roost").exists()
    with pytest.raises(grpc.RpcError, match="it is being removed"):
        cri.start("no")
    status_verb(node)
    waiting = node.spawn("uninstall", [*host.command("uninstall", "--wait", "600")])
    waiting.wait_log("waiting, pod interfaces left: 20 ", 60)
    for pod in pods[:10]:
        pod.remove()
    waiting.wait_log("waiting, pod interfaces left: 10 ", 60)
    waiting.kill()
    waiting = node.spawn("uninstall2", [*host.command("uninstall", "--wait", "600")])
    for pod in pods[10:]:
        pod.remove()
    assert waiting.wait(60) == 0
    assert not node.path(f"{CONF}/10-roost.conflist").exists()
    assert contents(node, BIN) == before["bin"]

    # The rest goes when nobody keeps it any more.
    said = host("clean", code=4)
    assert f"another agent, process {agent.process.pid}" in said
    agent.stop()
    host("clean")
    wait_until(lambda: not list(node.path("/run/netns").iterdir()), 20, "the pods' namespaces to go")
    same(before, snapshot(node))
    # Again: nothing to do is no mistake.
    assert host("uninstall") == host("clean") == ""
    same(before, snapshot(node))


def test_a_removal_that_is_taken_back(bare, etcd, build):
    node = bare
    put(etcd, "pool/web", cidr="10.1.0.0/16")
    host = Host(node, build)
    host("install")
    agent = Agent(node, build, etcd).start()
    agent.assign("c1")
    host("uninstall", code=3)
    assert "it is being removed" in agent.refuses("c2").text
    assert "removing the file /run/roost/drain" in agent.wait_health("drain")
    # Over a restart, too.
    agent.restart()
    assert "it is being removed" in agent.refuses("c2").text
    assert agent.assign("c1") and agent.api("GET", "/v1/ready").status == 200
    host("install")
    agent.wait_well("drain")
    assert agent.assign("c2")


def test_pods_that_ended_without_an_agent_do_not_block(bare, etcd, build):
    """The agent is gone too early: what its pods noted when they ended is believed."""
    node = bare
    put(etcd, "pool/web", cidr="10.1.0.0/16")
    before = snapshot(node)
    host = Host(node, build)
    host("install")
    agent = Agent(node, build, etcd).start()
    conf = {"cniVersion": "1.0.0", "name": "pods", "type": "roost", "ipam": {"type": "roost-ipam"}}
    pods = [node.pod(f"p{i}") for i in range(3)]
    for pod in pods:
        cni.call(node, f"{BIN}/roost", "ADD", conf, container=pod.name, netns=pod.netns, path=BIN,
                 args=f"K8S_POD_NAMESPACE=prod;K8S_POD_NAME=web-{pod.name}")
    agent.kill()
    said = host("uninstall", code=3)
    assert "pod interfaces left: 3 (prod/web-p" in said and "The agent is not running" in said
    for i, pod in enumerate(pods):
        cni.call(node, f"{BIN}/roost", "DEL", conf, container=pod.name, netns=pod.netns, path=BIN)
        if i < 2:
            assert f"pod interfaces left: {2 - i} " in host("uninstall", code=3)
    # Interrupted: between configuration and plugins, between plugins, between kernel and files.
    for path in f"{CONF}/10-roost.conflist", f"{BIN}/roost":
        node.path(path).unlink()
    host("uninstall")
    node.run([build / "roostd", "--clean"])
    node.run("rm -r /run/roost/attachments /run/roost/node")
    host("clean")
    same(before, snapshot(node))


def test_force_leaves_nothing_of_live_pods(bare, etcd, build):
    node = bare
    put(etcd, "pool/web", cidr="10.1.0.0/16")
    before = snapshot(node)
    host = Host(node, build)
    host("install")
    agent = Agent(node, build, etcd).start()
    conf = {"cniVersion": "1.0.0", "name": "pods", "type": "roost", "ipam": {"type": "roost-ipam"}}
    pod = node.pod("p1")
    cni.call(node, f"{BIN}/roost", "ADD", conf, container="p1", netns=pod.netns, path=BIN)
    host("uninstall", "--force")
    agent.stop()
    assert "pod interfaces left: 1 " in host("clean", code=3)
    host("clean", "--force")
    same(before, snapshot(node))


def test_strangers_stay(bare, etcd, build):
    """What is not ours is there afterwards, beside ours or on our prefix."""
    node = bare
    put(etcd, "pool/web", cidr="10.1.0.0/16")
    node.run("ip route add blackhole 10.1.99.0/24 proto static")
    node.run("ip route add blackhole 10.99.0.0/24 proto bird")
    node.run("nft add table inet other")
    node.run("ip link add roostly type veth peer name stranger")
    node.write(f"{BIN}/portmap", "#!/bin/sh\necho '{\"supportedVersions\": [\"1.0.0\"]}'\n", 0o755)
    node.write("/etc/bird/bird.conf", "router id 192.0.2.1;\n")
    before = snapshot(node)
    host = Host(node, build)
    host("install")
    agent = Agent(node, build, etcd).start()
    agent.assign("c1")
    wait_until(lambda: "proto 114" in node.run("ip -N route").stdout, 20, "a blackhole")
    agent.release("c1")
    agent.stop()
    host("uninstall")
    host("clean")
    same(before, snapshot(node))


# --- STATUS -------------------------------------------------------------------------------------

def test_an_agent_that_stays_away_is_reported(bare, etcd, build):
    node = bare
    put(etcd, "pool/web", cidr="10.1.0.0/16")
    Host(node, build)("install")
    with pytest.raises(AssertionError, match="the roost agent is not running"):
        status_verb(node)  # it was never there
    agent = Agent(node, build, etcd).start()
    wait_until(lambda: agent.api("GET", "/v1/ready").status == 200, 20, "the kernel's first compare")
    status_verb(node)
    agent.kill()
    status_verb(node)
    note = node.path(f"{RUN}/away")
    since = int(note.read_text())
    status_verb(node)
    assert int(note.read_text()) == since, "the first one counts"
    note.write_text(str(since - (AWAY_S - 60) * 10**9))
    status_verb(node)
    note.write_text(str(since - AWAY_S * 10**9))
    with pytest.raises(AssertionError, match="the roost agent is not running"):
        status_verb(node)
    agent.start()
    assert not note.exists()
    status_verb(node)


def test_a_restarted_agent_that_waits_for_etcd_is_no_reason_for_not_ready(bare, etcd, build):
    """From the first moment of its socket on; here etcd takes the connection and is silent."""
    node = bare
    put(etcd, "pool/web", cidr="10.1.0.0/16")
    Host(node, build)("install")
    agent = Agent(node, build, etcd).start()
    agent.assign("c1")
    member = etcd.leader()
    member.pause()
    agent.kill()
    agent.spawn()
    reply = wait_until(lambda: agent.api("GET", "/v1/ready"), 20, "the socket", errors=OSError)
    assert reply.status == 200, reply
    status_verb(node)
    member.resume()


# --- BIRD ---------------------------------------------------------------------------------------

def test_what_bird_learned_goes_too(lab, etcd, build):
    """BIRD keeps its routes in the kernel when it ends; they go with the rest, and its former
    configuration is back."""
    site = Site(lab, build, etcd)
    a, b = site.member("n1"), site.member("n2")
    put(etcd, "pool/web", cidr="10.1.0.0/16")
    a.node.run("rmdir /run/roost")
    before = snapshot(a.node)
    a.start(), b.start()
    pa, pb = a.pod("pa"), b.pod("pb")
    wait_until(lambda: pa.pings(pb), 60, "the way from pa to pb")
    assert a.by_bird()
    host = Host(a.node, build)
    pa.delete()
    wait_until(lambda: not a.agent.list()["attachments"], 20, "the pod's end")
    host("uninstall")
    a.agent.stop()
    assert "birdc -s /run/bird/bird.ctl down" in host("clean", code=4)
    waiting = a.node.spawn("clean", host.command("clean", "--wait", "60"))
    waiting.wait_log("waiting: ", 60)
    a.bird.birdc("down")
    a.bird.process.wait(20)
    assert waiting.wait(60) == 0
    assert a.by_bird() == {}
    same(before, snapshot(a.node))


# --- systemd ------------------------------------------------------------------------------------

@needs_systemd
def test_removal_under_systemd(lab, etcd, build):
    machine = lab.machine("n1")
    etcd.join(machine)
    machine.run("rmdir /run/roost")
    machine.write("/etc/bird/envvars", "BIRD_RUN_USER=bird\nBIRD_RUN_GROUP=bird\n")
    machine.write("/etc/bird/bird.conf", "router id 192.0.2.1;\nprotocol device {}\n", 0o640)
    machine.run("chown -R bird:bird /etc/bird")
    put(etcd, "pool/web", cidr="10.1.0.0/16", natOutgoing=True)
    before = snapshot(machine)
    machine.install(build)
    # The machine has a /tmp of its own, and this tree may lie in ours.
    plugins = f"{systemd.PREFIX}/plugins"
    machine.run(["mkdir", plugins])
    machine.run(["mv", f"{BIN}/roost", f"{BIN}/roost-ipam", plugins])
    machine.write("/etc/roost/agent.json", json.dumps({
        "etcd": etcd.endpoints, "etcdInsecure": True, "templateDir": f"{systemd.PREFIX}/share/roost/templates"}))
    host = Host(machine, plugins, f"{systemd.PREFIX}/sbin/roost-install",
                f"{systemd.PREFIX}/share/roost/10-roost.conflist", f"{systemd.PREFIX}/sbin/roostd")
    host("install")
    machine.systemctl("start", "bird", "roostd")
    conf = {"cniVersion": "1.0.0", "name": "pods", "type": "roost", "ipam": {"type": "roost-ipam"}}
    pod = machine.pod("p1")

    def call(verb):
        return cni.call(machine, f"{BIN}/roost", verb, conf, container="p1", netns=pod.netns, path=BIN)
    wait_until(lambda: call("ADD"), 60, "the agent to serve", errors=AssertionError)
    host("uninstall", code=3)
    call("DEL")
    host("uninstall", "--wait", "60")
    assert "another agent" in host("clean", code=4)
    machine.systemctl("disable", "--now", "roostd")
    machine.run("birdc down")
    wait_until(lambda: machine.systemctl("is-active", "bird", check=False) != "active", 30, "BIRD's end")
    host("clean", "--wait", "60")
    pod.delete()
    same(before, snapshot(machine))


# --- the DaemonSet ------------------------------------------------------------------------------

def test_the_manifests_steps(bare, etcd, build):
    """The commands of roost.yaml and remove.yaml on a node, in the order of docs/INSTALL.md."""
    node = bare
    before = snapshot(node)
    put(etcd, "pool/web", cidr="10.1.0.0/16")
    names = {"/host/opt/cni/bin": BIN, "/host/etc/cni/net.d": CONF, "/host/run": "/run",
             "/etc/roost-config/10-roost.conflist": ROOT / "systemd/10-roost.conflist",
             "/usr/lib/cni": DEBIAN}
    node.write("/etc/roost-config/agent.json", json.dumps({"birdConfig": "/run/roost-bird/bird.conf"}))

    def spec(name):
        return next(d for d in yaml.safe_load_all((ROOT / "docs/kubernetes" / name).read_text())
                    if d["kind"] == "DaemonSet")["spec"]["template"]["spec"]

    def replaced(word):
        for a, b in names.items():
            word = word.replace(a, str(b))
        return word

    def container(kind, which, name):
        return next(c for c in spec(name)[kind] if c["name"] == which)
    # The image's programs, by name.
    node.write("/opt/image/roost-install", f'#!/bin/sh\nexec {INSTALL} "$@"\n', 0o755)
    node.write("/opt/image/roostd", f'#!/bin/sh\nexec {build}/roostd "$@"\n', 0o755)
    node.run(["mkdir", "-p", "/run/roost-bird"])
    env = {"PATH": "/opt/image:/usr/sbin:/usr/bin:/sbin:/bin"}

    install = [replaced(w) for w in container("initContainers", "install", "roost.yaml")["command"]]
    node.run([*install, "--from", build], env=env)
    bird = Bird(node, "router id 192.0.2.1;\nprotocol device {}\n")
    node.run("mv /etc/bird/bird.conf /run/roost-bird/bird.conf")
    node.run("ln -s /run/roost-bird/bird.conf /etc/bird/bird.conf")
    bird.start("-R")
    agent = Agent(node, build, etcd, "--bird-config", "/run/roost-bird/bird.conf",
                  "--template-dir", ROOT / "templates").start()
    agent.assign("c1")
    wait_until(lambda: "Rendered by roost" in node.read("/run/roost-bird/bird.conf"), 30, "bird.conf")

    pods = container("initContainers", "pods", "remove.yaml")
    first = node.spawn("pods", ["sh", "-c", replaced(pods["command"][2])], env=env)
    first.wait_log("waiting, pod interfaces left: 1 ", 60)
    assert "it is being removed" in agent.refuses("c2").text
    agent.release("c1")
    assert first.wait(60) == 0
    clean = container("containers", "clean", "remove.yaml")
    line = replaced(clean["command"][2]).replace("/tmp/clean", "/run/clean").replace("exec sleep infinity", "exit 0")
    more = {e["name"]: replaced(e["value"]) for e in clean["env"]}
    # A pod of roost was started again meanwhile.
    node.run([*install, "--from", build], env=env)
    second = node.spawn("clean", ["sh", "-c", line], env={**env, **more})
    second.wait_log("waiting: ", 60)
    assert contents(node, CONF) == before["net.d"]
    agent.stop()
    stop = container("containers", "bird", "roost.yaml")["lifecycle"]["preStop"]["exec"]["command"]
    assert node.path(f"{RUN}/drain").exists()
    node.run(stop, env=env)
    bird.process.wait(20)
    assert second.wait(60) == 0 and node.path("/run/clean").exists()
    node.run("rm /etc/bird/bird.conf")
    same(before, snapshot(node))

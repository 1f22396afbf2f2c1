# SPDX-License-Identifier: Apache-2.0
"""What CNI's specification and its runtimes ask of a plugin: one row for each demand.

The rows run against roost with roost-ipam, roost-ipam on its own, and, for comparison,
Debian's ptp with host-local. docs/CNI-CONFORMANCE.md has what comes of it, and the test
insists that it is true: of ours every row that applies must hold.
"""

import itertools
import json
import pathlib
import re
import subprocess

import pytest

from lab import cni, wait_until
from lab.agent import pool

DEBIAN = pathlib.Path("/usr/lib/cni")
DOCUMENT = pathlib.Path(__file__).resolve().parent.parent / "docs" / "CNI-CONFORMANCE.md"
VERSIONS = ["0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"]
NOBODY = {"container": "", "ifname": "", "netns": ""}
VALID = "cni.dev/valid-attachments"
GIVEN = '{"cniVersion":"1.0.0","ips":[{"address":"10.8.0.7/24","gateway":"10.8.0.1"}]}'


class DoesNotApply(Exception):
    """The row asks for something that is not this plugin's business."""


class Subject:
    """A plugin under test on a node of its own."""

    newest, is_main, patience = "1.1.0", True, 30

    def __init__(self, agent, build):
        self.agent, self.node, self.build = agent, agent.node, build
        self.path = f"{build}:{DEBIAN}"
        self.ids, self.used = itertools.count(1), []

    # --- calls ----------------------------------------------------------------------------------

    def conf(self, version="1.0.0", ipam=None, **fields):
        return {"cniVersion": version, "name": "pods", "type": self.program.name,
                "ipam": {**self.ipam, **(ipam or {})}, **fields}

    def run(self, verb, conf=None, env=None, **more):
        """A plain exec. env: of environment() but for what is None; conf: object or text."""
        env = {k: v for k, v in {**cni.environment(verb, path=self.path, **more),
                                 **(env or {})}.items() if v is not None}
        text = conf if isinstance(conf, str) else json.dumps(conf or self.conf())
        done = self.node.run([self.program], input=text, env=env, check=False)
        if verb == "ADD" and done.returncode == 0:
            self.used.append((conf, env))
        return done

    def ok(self, verb, conf=None, **more):
        """It succeeds: one JSON value or nothing on stdout, silence on stderr."""
        done = self.run(verb, conf, **more)
        assert (done.returncode, done.stderr) == (0, ""), f"{verb}: {done.stdout}{done.stderr}"
        assert bool(done.stdout) == (verb in ("ADD", "VERSION")), done.stdout
        return json.loads(done.stdout) if done.stdout else None

    def error(self, verb, conf=None, code=None, **more):
        """It fails by the rules, with this code."""
        done = self.run(verb, conf, **more)
        assert done.returncode != 0, f"{verb} succeeded: {done.stdout}"
        error = json.loads(done.stdout)
        assert isinstance(error["code"], int) and error["msg"]
        assert code is None or error["code"] == code, error
        return error

    # --- pods -----------------------------------------------------------------------------------

    def pod(self):
        """A fresh pod: its Pod, and the environment of its attachment."""
        name = f"c{next(self.ids)}"
        pod = self.node.pod(name)
        return pod, {"container": name, "netns": pod.netns}

    def added(self, version="1.0.0", **fields):
        """A pod that is attached: Pod, environment, configuration, result."""
        pod, env = self.pod()
        conf = self.conf(version, **fields)
        return pod, env, conf, self.ok("ADD", conf, **env)

    def clean(self):
        """After a row: whatever it added is taken away."""
        for conf, env in self.used:
            conf = json.loads(conf) if isinstance(conf, str) else conf
            for ipam in ({}, {"ipam": self.ipam}):
                self.node.run([self.program], input=json.dumps({**(conf or self.conf()), **ipam}),
                              env={**env, "CNI_COMMAND": "DEL"}, check=False)
        self.used = []

    def wait_held(self, n, *pods):
        """Until so many addresses are held and these pods have no interface: links are destroyed
        behind a DEL's back, and their addresses come free when they are gone."""
        wait_until(lambda: len(self.held()) == n and not any(p.links() for p in pods if
                                                             self.is_main),
                   self.patience, f"{n} addresses to be held, and {pods} to be empty")

    def shim(self, text):
        """An IPAM plugin that is a shell script: what to put into the configuration, and its
        folder."""
        self.node.write("/opt/shim/shim", f"#!/bin/sh\n{text}\n", 0o755)
        return {"type": "shim"}, "/opt/shim"

    def main_only(self):
        if not self.is_main:
            raise DoesNotApply

    def versions(self, first="0.1.0"):
        return [v for v in VERSIONS if first <= v <= self.newest]


class RoostIpam(Subject):
    """roost-ipam, run as a main plugin runs it."""

    is_main, ipam = False, {"type": "roost-ipam"}

    @property
    def program(self):
        return self.build / "roost-ipam"

    def held(self):
        return sorted(self.agent.held())

    def forget(self, env):
        """Its address is given back behind its back."""
        self.agent.release(env["container"])

    def later_failure(self):
        raise DoesNotApply


class Roost(RoostIpam):
    """roost over roost-ipam."""

    is_main = True

    @property
    def program(self):
        return self.build / "roost"

    def later_failure(self):
        """An IPAM plugin whose address another pod has: the agent refuses to attach it."""
        taken = self.added()[3]["ips"][0]["address"]
        return GIVEN.replace("10.8.0.7/24", taken)


class Ptp(Subject):
    """Debian's ptp over its host-local."""

    patience = 0.1  # what it does is done when it returns
    newest = "1.0.0"  # of the version that the document speaks of
    program = DEBIAN / "ptp"
    ipam = {"type": "host-local", "ranges": [[{"subnet": "10.9.0.0/24"}]]}

    def held(self):
        folder = self.node.path("/var/lib/cni/networks/pods")
        return sorted(p.name for p in folder.glob("10.*")) if folder.exists() else []

    def forget(self, env):
        for p in self.node.path("/var/lib/cni/networks/pods").glob("10.*"):
            if p.read_text().startswith(env["container"]):
                p.unlink()

    def later_failure(self):
        """A route through a gateway that nobody reaches."""
        return json.dumps({**json.loads(GIVEN), "routes": [{"dst": "10.0.0.0/8", "gw": "9.9.9.9"}]})


ROWS = {}


def row(number):
    """Makes a function the row of that number; its docstring is what the row says."""
    def take(fn):
        assert number not in ROWS
        ROWS[number] = fn
        return fn
    return take


# --- input ---------------------------------------------------------------------------------------


@row(1)
def _(s):
    """An empty variable counts as missing; other variables of the runtime do not matter"""
    _, env = s.pod()
    s.error("ADD", code=4, **{**env, "netns": ""})
    s.ok("ADD", **env, env={f"VARIABLE_{i}": "x" * 100 for i in range(44)})


@row(2)
def _(s):
    """CONTAINERID and IFNAME are needed for ADD, CHECK, DEL; NETNS for ADD, CHECK"""
    _, env, conf, result = s.added()
    conf = {**conf, "prevResult": result}
    for verb, names in (("ADD", "CONTAINERID IFNAME NETNS"), ("CHECK", "CONTAINERID IFNAME NETNS"),
                        ("DEL", "CONTAINERID IFNAME")):
        for name in names.split():
            for value in None, "":
                assert f"CNI_{name}" in s.error(verb, conf, 4, env={f"CNI_{name}": value},
                                                **env)["msg"]
    s.ok("DEL", conf, env={"CNI_NETNS": None}, **env)


@row(3)
def _(s):
    """One error names everything that is missing"""
    msg = s.error("ADD", code=4, netns="", ifname="")["msg"]
    assert "CNI_NETNS" in msg and "CNI_IFNAME" in msg and "CNI_CONTAINERID" not in msg


@row(4)
def _(s):
    """An invalid container id is code 4 with the value in the details, an invalid network name 7"""
    _, env = s.pod()
    for wrong in "a/b", "-a", ".a", "a b":
        assert wrong in s.error("ADD", code=4, **{**env, "container": wrong})["details"]
        s.error("ADD", {**s.conf(), "name": wrong}, 7, **env)
    s.ok("DEL", container="A0_.-")


@row(5)
def _(s):
    """An invalid interface name is code 4"""
    _, env = s.pod()
    for wrong in ".", "..", "a/b", "a:b", "a b", "0123456789abcdef":
        s.error("ADD", code=4, ifname=wrong, **env)
    s.ok("DEL", ifname="0123456789abcde", **env)


@row(6)
def _(s):
    """Without CNI_COMMAND it describes itself on stderr and exits 0; an unknown one is code 4"""
    for value in None, "":
        done = s.run("ADD", env={"CNI_COMMAND": value})
        assert (done.returncode, done.stdout) == (0, "") and "0.1.0" in done.stderr
    for wrong in "add", "LIST":
        s.error(wrong, code=4)


@row(7)
def _(s):
    """stdin: unreadable or endless 5; no JSON object, or more than one, 6; no name 7"""
    _, env = s.pod()
    good = json.dumps(s.conf())
    for text in " ", good[:-1], "[]", '"x"', good + "x", '{"name": 5}':
        s.error("ADD", text, 6, **env)
    for text in "null", "{}", '{"cniVersion":"1.0.0","name":""}':
        s.error("ADD", text, 7, **env)
    done = s.node.run(["sh", "-c", f"exec {s.program} 0> /run/.lab/write-only"], check=False,
                      env=cni.environment("ADD", path=s.path, **env))
    assert json.loads(done.stdout)["code"] == 5


@row(8)
def _(s):
    """No cniVersion means 0.1.0; an unknown one is code 1 and named; one that is no string is 6"""
    _, env = s.pod()
    conf = s.conf()
    del conf["cniVersion"]
    result = s.ok("ADD", conf, **env)
    assert "ip4" in result and "ips" not in result
    for wrong in "abc", "9.9.9":
        e = s.error("ADD", s.conf(wrong), 1, **env)
        assert wrong in e["details"] and "0.4.0" in e["details"]
    s.error("ADD", {**s.conf(), "cniVersion": 1}, 6, **env)


@row(9)
def _(s):
    """CHECK exists since 0.4.0, GC and STATUS since 1.1.0: code 1 before; no version is 6"""
    _, env = s.pod()
    for version in "0.1.0", "0.3.1":
        s.error("CHECK", s.conf(version), 1, **env)
    for verb in "GC", "STATUS":
        s.error(verb, s.conf("1.0.0"), 1, **NOBODY)
        s.error(verb, s.conf("abc"), 6, **NOBODY)


@row(10)
def _(s):
    """The order of errors: invalid id, missing variable, JSON, name, version"""
    _, env = s.pod()
    s.error("ADD", "junk", 4, **{**env, "netns": ""})
    assert "missing" not in s.error("ADD", "junk", 4, container="a/b", netns="")["msg"]
    s.error("ADD", "junk", 6, **env)
    s.error("ADD", '{"cniVersion":"abc","name":"a/b"}', 7, **env)
    s.error("ADD", '{"cniVersion":"abc","name":"x"}', 1, **env)


@row(11)
def _(s):
    """Unknown fields are ignored, also capabilities and cni.dev/*"""
    s.added(capabilities={"portMappings": True, "x": True}, unknown=[{"x": None}],
            **{"cni.dev/x": 5, "io.example": {}})


@row(12)
def _(s):
    """Success is exit 0 with one JSON value or nothing, and nothing on stderr"""
    for version in s.versions():
        _, env, conf, result = s.added(version)
        if version >= "0.4.0":
            s.ok("CHECK", {**conf, "prevResult": result}, **env)
        s.ok("DEL", conf, **env)
    s.ok("VERSION", conf)


@row(13)
def _(s):
    """Failure is another exit code and an error object on stdout"""
    for verb in "ADD", "CHECK", "DEL":
        s.error(verb, "junk", **s.pod()[1])


@row(14)
def _(s):
    """The error object has cniVersion, code, msg, details; msg is complete without details"""
    e = s.error("ADD", s.conf("9.9.9"), **s.pod()[1])
    assert {"cniVersion", "code", "msg", "details"} <= set(e) and len(e["msg"].split()) > 3


@row(15)
def _(s):
    """Codes are the specification's (1 to 7, 11, 50, 51; 8 is the library's) or from 100 on"""
    _, env = s.pod()
    codes = {s.error(verb, text, **more)["code"] for verb, text, more in (
        ("ADD", "junk", env), ("ADD", s.conf("9.9.9"), env), ("add", None, env),
        ("ADD", s.conf(ipam={"type": ""}), env if s.is_main else {**env, "ifname": ""}),
        ("CHECK", None, env))}
    assert all(c in (1, 2, 3, 4, 5, 6, 7, 8, 11, 50, 51) or c >= 100 for c in codes), codes
    assert len(codes) >= 3


# --- VERSION -------------------------------------------------------------------------------------


@row(16)
def _(s):
    """VERSION needs nothing but CNI_COMMAND and does not wait for stdin"""
    p = s.node.popen([s.program], env={"CNI_COMMAND": "VERSION"}, stdin=subprocess.PIPE,
                     stdout=subprocess.PIPE)
    said = json.loads(p.stdout.read())
    assert p.wait(30) == 0 and said["cniVersion"] and said["supportedVersions"]
    p.stdin.close()
    p.stdout.close()
    s.ok("VERSION", {"cniVersion": "1.0.0"}, container="", netns="dummy", ifname="dummy",
         env={"CNI_PATH": "dummy"})


@row(17)
def _(s):
    """All versions from 0.1.0 to 1.1.0 are supported"""
    assert s.ok("VERSION")["supportedVersions"] == VERSIONS


# --- ADD -----------------------------------------------------------------------------------------


def family_shape(result):
    return set(result) >= {"ip4"} and not set(result) & {"ips", "interfaces", "routes"} and \
        "ip" in result["ip4"]


@row(18)
def _(s):
    """The result has the configuration's version and that version's shape"""
    for version in s.versions():
        _, env, conf, result = s.added(version)
        assert result["cniVersion"] == version
        if version < "0.3":
            assert family_shape(result)
        else:
            assert not {"ip4", "ip6"} & set(result)
            assert ("version" in result["ips"][0]) == (version < "1"), result
            assert "mtu" not in str(result) or version >= "1.1.0"
            assert bool(result.get("interfaces")) == s.is_main
        s.ok("DEL", conf, **env)


@row(19)
def _(s):
    """An existing interface is an error and does not change; nothing is left behind"""
    s.main_only()
    pod, env = s.pod()
    pod.run("ip link add eth0 type veth peer name other")
    before, held = pod.run("ip -br link").stdout, s.held()
    s.error("ADD", **env)
    assert pod.run("ip -br link").stdout == before and s.held() == held
    assert no_links(s) == []


def no_links(s):
    """Ends of pods' links on the node."""
    return [n for n in (link["ifname"] for link in json.loads(s.node.run("ip -j link").stdout))
            if n.startswith(("roost", "veth"))]


@row(20)
def _(s):
    """A repeated ADD takes nothing from the running pod"""
    pod, env, conf, result = s.added()
    held = s.held()
    if s.is_main:
        s.error("ADD", conf, **env)
        assert pod.json("addr", "show", "dev", "eth0")[0]["addr_info"]
    else:
        assert s.ok("ADD", conf, **env) == result
    assert s.held() == held and len(held) == 1


@row(21)
def _(s):
    """An invalid namespace, or the node's own, is an error; nothing is left behind"""
    s.main_only()
    held = s.held()
    for netns in "/run/netns/absent", "/etc/hosts", "/proc/self/ns/mnt":
        s.error("ADD", container="bad", netns=netns)
        assert s.held() == held
    for netns in "/proc/self/ns/net", f"/proc/{s.node.pid}/ns/net":
        s.error("ADD", container="own", ifname="own0", netns=netns)
    assert s.held() == held and no_links(s) == []


@row(22)
def _(s):
    """A prevResult is kept; the pod's interface has CNI_NETNS as its sandbox, the node's has none"""
    s.main_only()
    pod, env = s.pod()
    before = {"name": "before", "mac": "02:00:00:00:00:01"}
    prev = {"cniVersion": "1.0.0", "interfaces": [before],
            "ips": [{"interface": 0, "address": "10.7.0.1/24"}]}
    result = s.ok("ADD", s.conf(prevResult=prev), **{**env, "netns": f"/run/netns/../netns/{pod.name}"})
    assert before in result["interfaces"] and "10.7.0.1/24" in [i["address"] for i in result["ips"]]
    assert [i.get("sandbox") for i in result["interfaces"]] == \
        [None, None, f"/run/netns/../netns/{pod.name}"]


@row(23)
def _(s):
    """The pod's interface has its MAC address, and each address the index of its interface"""
    s.main_only()
    for version in s.versions("0.3.0"):
        pod, env, conf, result = s.added(version)
        end = result["interfaces"][result["ips"][0]["interface"]]
        seen = pod.json("link", "show", "dev", "eth0")[0]
        assert (end["name"], end["mac"], end["sandbox"]) == ("eth0", seen["address"], pod.netns)
        s.ok("DEL", conf, **env)


# --- DEL -----------------------------------------------------------------------------------------


@row(24)
def _(s):
    """DEL succeeds without namespace, with one that is gone or invalid, repeated, and unknown"""
    for netns in "", "/run/netns/absent", "/etc/hosts":
        _, env, conf, _ = s.added()
        for _ in range(2):
            s.ok("DEL", conf, **{**env, "netns": netns})
        s.wait_held(0)
    s.ok("DEL", container="unknown")


@row(25)
def _(s):
    """DEL needs no prevResult"""
    for version in s.versions():
        pod, env, conf, result = s.added(version)
        s.ok("DEL", {**conf, "prevResult": result} if version == "0.4.0" else conf, **env)
        s.wait_held(0, pod)


@row(26)
def _(s):
    """DEL always removes the link and calls the IPAM plugin, then reports the first error"""
    s.main_only()
    ipam, path = s.shim(f"cat > /dev/null; echo $CNI_COMMAND >> /run/verbs; "
                        f"[ $CNI_COMMAND = DEL ] && exit 5; echo '{GIVEN}'")
    pod, env = s.pod()
    conf = {**s.conf(), "ipam": ipam}
    s.ok("ADD", conf, **env, env={"CNI_PATH": path})
    for _ in range(2):
        done = s.run("DEL", conf, **env, env={"CNI_PATH": path})
        assert done.returncode != 0
    assert s.node.read("/run/verbs").split() == ["ADD", "DEL", "DEL"]
    s.wait_held(0, pod)


@row(27)
def _(s):
    """What is absent counts as deleted; no failure says that something is not found"""
    pod, env, conf, _ = s.added()
    if s.is_main:
        pod.run("ip link delete eth0")
    s.ok("DEL", conf, **env)
    s.ok("DEL", conf, **env)
    for text in "junk", json.dumps(s.conf("9.9.9")):
        assert "not found" not in s.error("DEL", text, **env)["msg"]


# --- CHECK, STATUS, GC ---------------------------------------------------------------------------


@row(28)
def _(s):
    """CHECK succeeds right after ADD, needs prevResult, and detects what is missing"""
    for version in s.versions("0.4.0"):
        pod, env, conf, result = s.added(version)
        s.error("CHECK", conf, **env)
        conf = {**conf, "prevResult": result}
        s.ok("CHECK", conf, **env)
        if s.is_main:
            address = result["ips"][0]["address"]
            for undo, again in (("addr del {a} dev eth0", "addr add {a} dev eth0"),
                                ("link delete eth0", None)):
                pod.run("ip " + undo.format(a=address))
                s.error("CHECK", conf, **env)
                if again:
                    pod.run("ip " + again.format(a=address))
        s.ok("DEL", conf, **env)
        pod, env, conf, result = s.added(version)
        s.forget(env)
        s.error("CHECK", {**conf, "prevResult": result}, **env)
        s.ok("DEL", conf, **env)


@row(29)
def _(s):
    """STATUS is 0 when ready; if no agent ever ran, or it stays down, it is code 50"""
    s.ok("STATUS", s.conf("1.1.0"), **NOBODY)
    s.error("STATUS", s.conf("1.1.0", socket="/run/roost/nobody.sock"), 50, **NOBODY)


def attachments(*envs):
    return [{"containerID": e["container"], "ifname": "eth0"} for e in envs]


@row(30)
def _(s):
    """GC keeps exactly the listed attachments of this network; the draft's field name works too"""
    keep, lose = s.added("1.1.0"), s.added("1.1.0")
    other = s.pod()
    s.ok("ADD", {**s.conf("1.1.0"), "name": "other"}, **other[1])
    for name in VALID, "cni.dev/attachments":
        s.ok("GC", s.conf("1.1.0", **{name: attachments(keep[1])}), **NOBODY)
        s.wait_held(2, lose[0])
    if s.is_main:
        assert keep[0].links() == other[0].links() == ["eth0"]


@row(31)
def _(s):
    """GC without a list is code 7 and changes nothing; null and [] mean that none is valid"""
    for nothing in None, []:
        s.added("1.1.0")
        s.error("GC", s.conf("1.1.0"), 7, **NOBODY)
        assert len(s.held()) == 1
        s.ok("GC", s.conf("1.1.0", **{VALID: nothing}), **NOBODY)
        s.wait_held(0)


@row(32)
def _(s):
    """GC succeeds with nothing to do after the runtime's own DELs of everything stale"""
    stale, live = s.added("1.1.0"), s.added("1.1.0")
    s.ok("DEL", stale[2], **stale[1])
    s.ok("GC", s.conf("1.1.0", **{VALID: attachments(live[1])}), **NOBODY)
    s.wait_held(1, stale[0])


# --- delegation ----------------------------------------------------------------------------------


@row(33)
def _(s):
    """The IPAM plugin is found in CNI_PATH and gets environment and stdin unchanged"""
    s.main_only()
    ipam, path = s.shim(f"env > /run/env; cat > /run/stdin; echo noise >&2; echo '{GIVEN}'")
    _, env = s.pod()
    text = json.dumps({**s.conf(prevResult={"cniVersion": "1.0.0"}), "ipam": ipam})
    done = s.run("ADD", text, **env, env={"CNI_PATH": f"/nowhere:{path}", "SOME": "thing"})
    assert done.returncode == 0 and "noise" in done.stderr
    assert json.loads(s.node.read("/run/stdin")) == json.loads(text)
    said = s.node.read("/run/env").splitlines()
    assert {"CNI_COMMAND=ADD", "SOME=thing", f"CNI_NETNS={env['netns']}"} <= set(said)
    for wrong in "../shim/shim", "absent":
        s.error("ADD", {**s.conf(), "ipam": {"type": wrong}}, **s.pod()[1],
                env={"CNI_PATH": path})


@row(34)
def _(s):
    """An IPAM result has no interfaces; if a later step fails the address is released"""
    if not s.is_main:
        result = s.added()[3]
        assert "interfaces" not in result and "interface" not in result["ips"][0]
        return
    ipam, path = s.shim(f"cat > /dev/null; echo $CNI_COMMAND >> /run/later; "
                        f"[ $CNI_COMMAND = DEL ] || echo '{s.later_failure()}'")
    links = no_links(s)
    pod, env = s.pod()
    s.error("ADD", {**s.conf(), "ipam": ipam}, **env, env={"CNI_PATH": path})
    assert s.node.read("/run/later").split() == ["ADD", "DEL"]
    assert pod.links() == [] and no_links(s) == links


# --- args and capabilities -----------------------------------------------------------------------


@row(35)
def _(s):
    """CNI_ARGS is read leniently: invalid pairs and unknown keys are ignored"""
    for args in "A=B", "A;B=C=D;;=", "IgnoreUnknown=0;X=Y":
        _, env = s.pod()
        s.ok("ADD", args=args, **env)


@row(36)
def _(s):
    """What containerd, CRI-O, podman and ctr pass in CNI_ARGS is understood, in any order"""
    given = ["IgnoreUnknown=1", "K8S_POD_NAMESPACE=prod", "K8S_POD_NAME=web-1",
             "K8S_POD_INFRA_CONTAINER_ID=abc", "K8S_POD_UID=1f-2e"]
    for args in ";".join(given), ";".join(reversed(given)), "IgnoreUnknown=1;K8S_POD_NAME=box", "":
        s.ok("ADD", args=args, **s.pod()[1])


@row(37)
def _(s):
    """A fixed address: runtimeConfig.ips before args.cni.ips before IP in CNI_ARGS; and the MAC"""
    net = "10.9.0." if isinstance(s, Ptp) else "10.77.0."
    everything = {"runtimeConfig": {"ips": [f"{net}41"], "mac": "02:00:00:00:00:41"},
                  "args": {"cni": {"ips": [f"{net}42"], "mac": "02:00:00:00:00:42"}}}
    args = f"IgnoreUnknown=1;IP={net}43;MAC=02:00:00:00:00:43"
    for fields, n in ((everything, 41), ({"args": everything["args"]}, 42), ({}, 43)):
        pod, env = s.pod()
        result = s.ok("ADD", s.conf(**fields), args=args, **env)
        assert [i["address"].partition("/")[0] for i in result["ips"]] == [f"{net}{n}"]
        if s.is_main:
            assert pod.json("link", "show", "dev", "eth0")[0]["address"] == f"02:00:00:00:00:{n}"
    s.added(args={"cni": {"ips": "junk", "mac": 5}})


@row(38)
def _(s):
    """Capabilities in containerd's spelling are understood or ignored"""
    net = "10.9.0." if isinstance(s, Ptp) else "10.77.0."
    result = s.added(runtimeConfig={
        "portMappings": [{"HostPort": 80, "ContainerPort": 80, "Protocol": "tcp", "HostIP": ""}],
        "bandwidth": {"IngressRate": 1, "IngressBurst": 4294967295}, "IPs": [f"{net}51/24"],
        "dns": {"Servers": ["10.0.0.53"], "Searches": [], "Options": []},
        "io.kubernetes.cri.pod-annotations": {"a": "b"}, "cgroupPath": "/x"})[3]
    assert result["ips"][0]["address"].startswith(f"{net}51/")


@row(39)
def _(s):
    """The configuration and result that libcni caches are enough for CHECK and DEL later"""
    for version in s.versions("0.4.0"):
        pod, env, conf, result = s.added(version)
        cached = json.loads(json.dumps({"config": conf, "result": result}))
        conf = {**cached["config"], "prevResult": cached["result"]}
        s.ok("CHECK", conf, **env)
        pod.delete()
        s.ok("DEL", conf, **env)
        s.wait_held(0)


# --- the document --------------------------------------------------------------------------------


def documented():
    """{row: [text, outcome of roost, of roost-ipam, of ptp]}."""
    rows = re.findall(r"^\| (\d+) \| (.*?) \| ([a-z-]+) \| ([a-z-]+) \| ([a-z-]+)(?:: .*)? \|$",
                      DOCUMENT.read_text(), re.M)
    return {int(n): rest for n, *rest in rows}


def test_the_document_has_every_row():
    assert sorted(ROWS) == list(range(1, 40))
    said = documented()
    assert {n: said[n][0] for n in said} == \
        {n: " ".join(fn.__doc__.split()) for n, fn in ROWS.items()}


@pytest.mark.limit(300)
@pytest.mark.parametrize("column, make", enumerate([Roost, RoostIpam, Ptp], 1),
                         ids=["roost", "roost-ipam", "ptp"])
@pytest.mark.slow(10)
def test_the_rows_hold(agent, etcd, build, column, make):
    pool(etcd, cidr="10.77.0.0/24", cooldownSeconds=0)
    wait_until(lambda: agent.api("GET", "/v1/ready?network=pods").status == 200, 20, "a pool")
    agent.node.write("/run/.lab/write-only", "")
    outcomes, reasons = {}, {}
    subject = make(agent, build)
    if subject.ok("VERSION")["supportedVersions"][-1] != subject.newest:
        pytest.skip("another version than the one that was compared with")
    for number, check in sorted(ROWS.items()):
        try:
            check(subject)
            outcomes[number] = "yes"
        except DoesNotApply:
            outcomes[number] = "-"
        except (AssertionError, ValueError, KeyError) as e:
            outcomes[number], reasons[number] = "no", str(e)[:300]
        subject.clean()
        subject.wait_held(0)
    said = {n: text[column] for n, text in documented().items()}
    wrong = {n: reasons.get(n, outcomes[n]) for n in ROWS if outcomes[n] != said.get(n)}
    assert not wrong, f"other than documented: {json.dumps(wrong, indent=1)}"
    assert make is Ptp or "no" not in outcomes.values()

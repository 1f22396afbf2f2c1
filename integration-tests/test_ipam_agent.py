# SPDX-License-Identifier: Apache-2.0
"""roost-ipam and its agent: refusals, garbage, silence, absence; CHECK, STATUS and GC."""

import json
import stat
import subprocess
import time

import pytest

from lab import cni
from lab.cni import failure

SOCKET, SPOOL = "/run/roost/agent.sock", "/run/roost/spool"


def conf(version="1.1.0", ipam=None, **fields):
    return cni.conf(version, "bridge", ipam, **fields)


def notes(node):
    """name -> object of every note in the spool."""
    folder = node.path(SPOOL)
    return {p.name: json.loads(p.read_text()) for p in folder.iterdir()} if folder.exists() else {}


# --- the agent's errors --------------------------------------------------------------------------


@pytest.mark.parametrize("status, code", [(507, 100), (409, 102), (503, 11), (500, 5), (400, 7)])
def test_what_the_agent_refuses_is_passed_on(fake_agent, ipam, status, code):
    fake_agent(lambda path, body: (status, {"code": code, "error": "pool web is full", "details": "256"}))
    e = failure(ipam, "ADD", conf("0.4.0"))
    assert (e.code, e.msg, e.details, e.version) == (code, "pool web is full", "256", "0.4.0")


GARBAGE = {
    "not HTTP": b"hello\r\n\r\n",
    "nothing": b"",
    "half an answer": b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{",
    "not JSON": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    "no object": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]",
    "no addresses": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
    "no body": b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    "an error without words": b"HTTP/1.1 500 x\r\nContent-Length: 2\r\n\r\n{}",
    "an error without body": b"HTTP/1.1 404 x\r\nContent-Length: 0\r\n\r\n",
}


@pytest.mark.parametrize("what", GARBAGE)
def test_garbage_from_the_agent_is_an_error(fake_agent, ipam, what):
    fake_agent(lambda path, body: GARBAGE[what])
    assert failure(ipam, "ADD", conf()).code in (5, 11)
    if what != "no addresses":
        assert failure(ipam, "CHECK", conf(prevResult={"ips": []})).code in (5, 11)
        # A connection that breaks off may be the agent's end, which STATUS forgives for a while.
        if what in ("nothing", "half an answer"):
            ipam("STATUS", conf())
        else:
            assert failure(ipam, "STATUS", conf()).code == 50
    ipam("DEL", conf())


# --- no agent ------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["never started", "stopped", "killed"])
def test_without_an_agent_each_verb_says_so_at_once(fake_agent, ipam, node, how):
    if how != "never started":
        a = fake_agent()
        a.remove() if how == "stopped" else a.close()
    start = time.monotonic()
    if how == "killed":  # away for a short time only: see test_removal.py
        ipam("STATUS", conf())
        node.write("/run/roost/away", "1")
    for verb, code in ("ADD", 11), ("CHECK", 11), ("GC", 11), ("STATUS", 50):
        e = failure(ipam, verb, conf(**{"prevResult": {"ips": []}, "cni.dev/attachments": []}))
        assert (e.code, "start roostd" in e.msg, SOCKET in e.msg) == (code, True, True), verb
    ipam("DEL", conf())
    assert time.monotonic() - start < 5


def test_a_del_without_an_agent_leaves_a_note(ipam, node):
    before = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    ipam("DEL", conf(), container="c1", netns="")
    ipam("DEL", conf(), container="c2", netns="")
    after = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    found = notes(node)
    assert sorted(n["container"] for n in found.values()) == ["c1", "c2"]
    for name, note in found.items():
        boottime, pid = name.removesuffix(".json").split("-")
        assert note == {"network": "pods", "container": note["container"], "interface": "eth0",
                        "boottime": int(boottime)}
        assert before <= int(boottime) <= after and int(pid) > 1
        assert stat.S_IMODE(node.path(f"{SPOOL}/{name}").stat().st_mode) == 0o600
    assert stat.S_IMODE(node.path(SPOOL).stat().st_mode) == 0o700


def test_the_spool_lies_beside_the_socket(ipam, node):
    node.write("/run/other/agent.lock", "")  # an agent ran there
    ipam("DEL", conf(socket="/run/other/agent.sock"))
    assert len(list(node.path("/run/other/spool").iterdir())) == 1 and notes(node) == {}


def test_a_configuration_does_not_choose_where_root_writes_or_who_answers(ipam, node):
    """As whoever writes a NetworkAttachmentDefinition would: a folder of root's, and a pod's volume."""
    volume = "/var/lib/kubelet/pods/1/volumes/kubernetes.io~empty-dir/a"
    node.write(f"{volume}/agent.lock", "")
    for folder in ("/etc/cron.d", "/etc/made-by-root", volume, "/run/roost/../../etc/cron.d"):
        e = failure(ipam, "ADD", conf(socket=f"{folder}/agent.sock"))
        assert e.code == 7 and f"{folder}/agent.sock is no socket of this node's agent" in e.msg
        ipam("DEL", conf(socket=f"{folder}/agent.sock"), quiet=False)
        assert not node.path(f"{folder}/spool").exists()
    assert not node.path("/etc/made-by-root").exists()


def test_a_del_succeeds_even_without_a_spool(node, build, ipam):
    node.write(SPOOL, "a file where the folder should be")
    done = node.run([build / "roost-ipam"], env=cni.environment("DEL"), input=json.dumps(conf()))
    assert done.stdout == "" and SPOOL in done.stderr and done.stderr.count("\n") == 1


def test_an_agent_that_comes_up_meanwhile_gets_the_del(fake_agent, ipam, node):
    seen = []

    def answer(path, body):
        seen.append(len(notes(node)))
        return (503, {"code": 11, "error": "starting"}) if len(seen) == 1 else (200, {})
    fake_agent(answer)
    ipam("DEL", conf())
    assert seen == [0, 1]  # asked, wrote the note, asked again
    assert notes(node) == {}


def test_a_del_that_is_refused_leaves_a_note(fake_agent, ipam, node):
    a = fake_agent(lambda path, body: (500, {"code": 5, "error": "disk full"}))
    ipam("DEL", conf())
    assert len(a.requests) == 2 and len(notes(node)) == 1


@pytest.mark.slow(10)
def test_an_agent_that_hangs_holds_nobody_for_ever(fake_agent, node, build):
    """All at once: the slowest is ADD with 10 s."""
    a = fake_agent(lambda path, body: None)
    config = json.dumps(conf(**{"prevResult": {"ips": []}, "cni.dev/valid-attachments": []}))
    started, took = time.monotonic(), {}
    running = {}
    for verb in "ADD", "DEL", "CHECK", "GC", "STATUS":
        p = node.popen([build / "roost-ipam"], env=cni.environment(verb), stdin=subprocess.PIPE,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        p.stdin.write(config)
        p.stdin.close()
        running[verb] = p
    for verb in "STATUS", "DEL", "CHECK", "GC", "ADD":
        code = running[verb].wait(60)
        took[verb] = time.monotonic() - started
        out, err = running[verb].stdout.read(), running[verb].stderr.read()
        if verb == "DEL":
            assert (code, out, err) == (0, "", "") and len(notes(node)) == 1
        elif verb == "STATUS":
            assert (code, out, err) == (0, "", ""), "silent for a short time only"
        else:
            said = json.loads(out)
            assert said["code"] == 11 and " within " in said["msg"]
    assert 1 <= took["STATUS"] < 4.5 and 5 <= took["DEL"] < 9 and 10 <= took["ADD"] < 30, took
    # One each; DEL asks a second time when its note is written, for an agent that just came up.
    asked = sorted(path.split("?")[0].rsplit("/", 1)[1] for path, _ in a.requests)
    assert asked == ["assign", "check", "gc", "release", "release", "status"], asked


# --- CHECK, STATUS, GC ---------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["0.4.0", "1.0.0", "1.1.0"])
def test_check_holds_right_after_add_and_not_after_del(fake_agent, ipam, version):
    fake_agent(addresses=["10.77.0.5", "fd00:77::5"])
    done = {**conf(version), "prevResult": ipam("ADD", conf(version))}
    ipam("CHECK", done)
    other = json.loads(json.dumps(done).replace("10.77.0.5", "10.77.0.6"))
    assert failure(ipam, "CHECK", other).code == 103
    assert failure(ipam, "CHECK", conf(version)).code == 7  # no prevResult
    ipam("DEL", done)
    assert failure(ipam, "CHECK", done).code == 3
    ipam("DEL", done)


def test_check_looks_at_its_own_interface_alone(fake_agent, ipam):
    a = fake_agent()
    ipam("ADD", conf())
    ipam("CHECK", conf(prevResult={
        "cniVersion": "1.0.0",
        "interfaces": [{"name": "veth1"}, {"name": "eth0", "sandbox": "/x"}, {"name": "net1"}],
        "ips": [{"address": "10.77.0.5/24", "interface": 1}, {"address": "10.9.0.5/24",
                                                              "interface": 2}]}))
    assert a.requests[-1][1]["addresses"] == ["10.77.0.5"]


def test_status_asks_for_its_network(fake_agent, ipam):
    a = fake_agent()
    assert ipam("STATUS", conf(), container="", netns="", ifname="") is None
    assert a.requests == [("/v1/ipam/status?network=pods", None)]


@pytest.mark.parametrize("code, want", [(50, 50), (51, 51), (11, 50)])
def test_status_tells_why_not(fake_agent, ipam, code, want):
    fake_agent(lambda path, body: (503, {"code": code, "error": "no pool has a free address"}))
    e = failure(ipam, "STATUS", conf(), container="", netns="", ifname="")
    assert (e.code, e.msg) == (want, "no pool has a free address")


def test_gc_without_a_list_touches_nothing(fake_agent, ipam):
    a = fake_agent()
    assert failure(ipam, "GC", conf(), container="", netns="", ifname="").code == 7
    bad = conf(**{"cni.dev/valid-attachments": [{"containerID": "c1", "ifname": "eth0"}, {}]})
    assert failure(ipam, "GC", bad, container="", netns="", ifname="").code == 7
    assert a.requests == []


@pytest.mark.parametrize("key", ["cni.dev/valid-attachments", "cni.dev/attachments"])
@pytest.mark.parametrize("value, valid", [
    (None, []), ([], []),
    ([{"containerID": "c1", "ifname": "eth0"}], [{"container": "c1", "interface": "eth0"}])])
def test_gc_sends_what_is_valid(fake_agent, ipam, key, value, valid):
    a = fake_agent()
    assert ipam("GC", conf(**{key: value}), container="", netns="", ifname="") is None
    assert a.requests == [("/v1/ipam/gc", {"network": "pods", "valid": valid})]

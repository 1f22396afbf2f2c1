# SPDX-License-Identifier: Apache-2.0
"""roostd's start and end: flags and file, lock, pinned identity, registration, signals."""

import json
import signal
import stat
import subprocess
import time

import pytest

from lab import wait_until
from lab.agent import PREFIX, Agent, pool, put
from lab.cni import failure
from lab.ctl import Ctl
from lab.process import sanitizer_errors
from lab.statics import FAR, StaticScene

pytestmark = pytest.mark.quick


def refused(agent, *flags):
    """What a start says that must fail at once."""
    done = agent.node.run([agent.build / "roostd", *agent.etcd.flags(), *agent.flags, *flags],
                          check=False)
    assert done.returncode not in (0, -signal.SIGSEGV, -signal.SIGABRT), done
    return done.stderr


# --- what it is told -----------------------------------------------------------------------------


def test_help_and_version(build):
    said = subprocess.run([build / "roostd", "--help"], capture_output=True, text=True)
    assert said.returncode == 0 and said.stderr == ""
    for word in "--etcd", "--node", "--run-dir", "ROOST_", "/etc/roost/agent.json", "--machine-id":
        assert word in said.stdout, word
    said = subprocess.run([build / "roostd", "--version"], capture_output=True, text=True)
    assert said.returncode == 0 and said.stdout.startswith("roostd ")


@pytest.mark.parametrize("flags, file, env, words", [
    (["--etcd"], None, {}, ["--etcd"]),
    (["--nod", "x"], None, {}, ["--nod", "--node"]),
    (["--node", "UPPER"], None, {}, ["--node", "UPPER"]),
    (["--etcd", "ftp://x"], None, {}, ["etcd endpoint", "ftp"]),
    (["--run-dir", "run"], None, {}, ["--run-dir", "begins with '/'"]),
    (["--log-level", "loud"], None, {}, ["--log-level", "debug"]),
    (["--config", "/none"], None, {}, ["/none"]),
    (["--address", "10.0.0"], None, {}, ["--address"]),
    (["--etcd-cert", "/x"], None, {}, ["--etcd-cert", "--etcd-key"]),
    ([], '{"node": 5}', {}, ["agent.json", "node"]),
    ([], '{"nodeName": "x"}', {}, ["agent.json", "nodeName"]),
    ([], '{"node": "x"', {}, ["agent.json"]),
    ([], "[]", {}, ["agent.json"]),
    ([], '{"logLevel": "debug"} // and a comment', {"ROOST_NODE": "a b"}, ["ROOST_NODE"]),
])
def test_a_bad_configuration_is_refused_with_its_place(node, build, flags, file, env, words):
    if file is not None:
        node.write("/etc/roost/agent.json", file)
    done = node.run([build / "roostd", *flags], env=env, check=False, timeout=5)
    assert done.returncode in (1, 2) and done.stdout == ""
    for word in words:
        assert word in done.stderr, done.stderr


def test_the_file_is_read_with_comments_and_the_flag_goes_first(etcd, agents):
    agent = agents("--log-level", "debug")
    agent.node.write("/etc/roost/agent.json", """{
        // who we are
        "node": "from-file", "logLevel": "error" }""")
    agent.start()
    assert agent.status()["node"] == "from-file"
    assert etcd.get(PREFIX + "node/from-file") and " info " in agent.log


def test_sighup_changes_the_log_level_and_says_what_needs_a_restart(agents):
    agent = agents()
    agent.node.write("/etc/roost/agent.json", '{"logLevel": "info"}')
    agent.start()
    agent.node.write("/etc/roost/agent.json", '{"logLevel": "warning", "node": "other"}')
    agent.reload()
    agent.process.wait_log("--log-level is taken over")
    agent.process.wait_log("--node cannot change while the agent runs")
    assert agent.status()["node"] == "n1"
    agent.node.write("/etc/roost/agent.json", '{"logLevel": ')
    agent.reload()
    agent.process.wait_log("reload: .*agent.json.*stays as it was")
    assert agent.status()["ready"]


def test_the_clusters_log_level_goes_before_the_agents_own(etcd, agents):
    agent = agents("--log-level", "error")
    agent.start()
    put(etcd, "pool/Not-a-Name", cidr="10.9.0.0/16")
    put(etcd, "config", logLevel="debug")
    # Told once a listing meets it again, or at once: that key is only worth a debug line.
    wait_until(lambda: (put(etcd, "pool/Not-a-Name", cidr="10.9.0.0/16"),
                        "pool/Not-a-Name is none of ours" in agent.log)[1], 20, "the debug line")
    etcd.delete(PREFIX + "config")
    agent.stop()


# --- lock, socket, pinned node file --------------------------------------------------------------


def test_one_agent_per_namespace(agent):
    said = refused(agent, "--run-dir", "/run/other", "--node", "n9")
    assert f"process {agent.process.pid}," in said and "/run/roost/agent-net-" in said
    said = refused(agent, "--clean")
    assert f"process {agent.process.pid}," in said and "/run/roost/agent.lock" in said
    assert agent.status()["ready"]
    agent.kill()
    agent.start()  # the lock dies with its holder


def test_no_local_user_can_keep_the_agent_from_starting(agent):
    """What any user can take: the name that was the lock, and whatever file it can open."""
    agent.stop()
    take = """
import fcntl, os, socket, sys, time
os.setgid(65534); os.setuid(65534)
s = socket.socket(socket.AF_UNIX); s.bind("\\0roost-agent"); s.listen()
held = []
for name in os.popen("ls -d /run/roost/agent* /run/roost 2>/dev/null").read().split():
    try:
        f = os.open(name, os.O_RDONLY); fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB); held.append(name)
    except OSError:
        pass
print("held", held, flush=True)
time.sleep(60)
"""
    user = agent.node.spawn("user", ["python3", "-c", take])
    user.wait_log("held ")
    try:
        agent.start()
        assert agent.status()["ready"]
    finally:
        user.kill()


def test_the_socket_answers_before_the_agent_serves(etcd, agents):
    pool(etcd)
    agent = agents()
    etcd.stop()
    agent.spawn()
    wait_until(lambda: agent.node.path("/run/roost/agent.sock").exists(), 5)
    reply = wait_until(lambda: agent.api("GET", "/v1/status"), 5, errors=OSError)
    assert reply.status == 503 and reply.body["ready"] is False
    assert "etcd has not answered yet" in reply.body["reason"]
    e = agent.refuses()
    assert (e.status, e.code) == (503, 11) and "etcd has not answered yet" in e.text
    assert agent.release() == []  # DEL always succeeds
    reply = agent.api("GET", "/v1/ipam/status?network=pods")
    assert reply.status == 503 and reply.body["code"] == 50
    mode = agent.node.path("/run/roost/agent.sock").stat().st_mode
    assert stat.S_ISSOCK(mode) and stat.S_IMODE(mode) == 0o600
    etcd.start()
    agent.wait_ready()
    assert agent.assign()


def test_identity_is_chosen_once_per_boot(lab, agents):
    agent = agents().start()
    pinned = json.loads(agent.node.read("/run/roost/node"))
    assert pinned["boot"] == agent.node.boot_id
    assert "source address towards etcd" in agent.status()["address"]
    agent.stop()
    # Another source address from now on: reported, not followed.
    agent.node.ip("addr add 10.250.0.77/24 dev eth0",
                  "route change 10.250.0.0/24 dev eth0 src 10.250.0.77")
    agent.start()
    assert agent.status()["address"].startswith("10.250.0.2")
    assert "10.250.0.77" in agent.wait_health("address")
    agent.kill()
    agent.node.write("/run/roost/node", "damaged")
    agent.start()
    assert "node" in agent.log and agent.status()["address"].startswith("10.250.0.77")


# --- registration --------------------------------------------------------------------------------


def test_two_machines_of_one_name(etcd, lab, agents):
    """The living keeps it; the dead gives way, after the time that its record promises."""
    pool(etcd, cidr="10.1.0.0/24", blockSize=28)
    put(etcd, "config", reclaimAfter=900)
    # A minute is 200 ms: fifteen of them are 3 s.
    first = agents("--minute", "200", node=lab.node("same")).start()
    address = first.assign("a")[0]
    wait_until(lambda: etcd.get(PREFIX + "status/node/same"), 10, "its status")
    wait_until(lambda: json.loads(etcd.get(PREFIX + "node/same")).get("reclaimAfter") == 900, 10,
               "its promise")
    second = agents("--minute", "200", node=lab.node("same")).spawn()
    reason = second.wait_health("registration", "10.250.0.2")
    assert "10.250.0.3" in reason and second.status()["ready"] is False
    assert second.refuses("b").code == 11
    assert first.assign("b") and first.assign("a") == [address]
    first.wait_agreed()
    second.stop()
    first.kill()
    first.node.run("ip link set eth0 down")
    # Its lease would live for another minute.
    etcd.delete(PREFIX + "status/node/same")
    before = json.loads(etcd.get(PREFIX + "node/same"))
    began = time.monotonic()
    second.spawn()
    assert "roostctl node delete same --now" in second.wait_health("registration", "takes the name")
    wait_until(lambda: second.status()["ready"], 30, "the second to take the name over")
    assert time.monotonic() - began > 3
    after = json.loads(etcd.get(PREFIX + "node/same"))
    assert after["machine"] == second.node.machine_id != before["machine"]
    # The blocks are the name's; what the other held on its own boot does not count.
    assert second.assign("x")


def test_the_node_record_says_who_we_are(etcd, agent):
    record = json.loads(etcd.get(PREFIX + "node/n1"))
    assert record["machine"] == agent.node.machine_id and record["boot"] == agent.node.boot_id
    assert record["ipv4"] == "10.250.0.2/24" and record["agent"]["version"]
    wait_until(lambda: etcd.get(PREFIX + "status/node/n1"), 10, "its status")
    (status,) = etcd.list(PREFIX + "status/node/n1")
    assert status.lease and json.loads(status.value)["health"] == "ok"


# --- life ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_restart_keeps_everything(etcd, agents, how):
    pool(etcd, cidr="10.1.0.0/24", blockSize=28)
    pool(etcd, "six", "fd00:1::/112")
    agent = agents().start()
    given = {f"c{i}": agent.assign(f"c{i}", namespace="prod", pod=f"web-{i}") for i in range(20)}
    agent.wait_agreed()
    blocks = agent.blocks()
    agent.restart(how)
    assert all(len(a) == 2 for a in given.values())
    assert {c: agent.assign(c) for c in given} == given
    assert agent.blocks() == blocks
    agent.wait_agreed()
    assert all(a["namespace"] == "prod" for a in agent.list()["attachments"])


@pytest.mark.parametrize("away", [False, True], ids=["with etcd", "without an answer of etcd"])
def test_sigterm_is_quick_and_clean(etcd, agent, away):
    """A plugin that comes later is told at once, and the node's record stays."""
    if away:
        etcd.members[0].pause()
    start = time.monotonic()
    agent.stop()
    assert time.monotonic() - start < 8
    assert failure(agent.plugin, "ADD").code == 11
    etcd.members[0].resume()
    assert etcd.get(PREFIX + "node/n1")


def test_a_stop_frees_nothing_that_is_still_used(lab, etcd, sanitized):
    """Its end takes a block from the addresses' part, which informs the others, static routes too."""
    scene = StaticScene(lab, etcd, sanitized, 1)
    agent = scene.agents[0]
    assert agent.assign("c1")
    scene.route("far", subnet=FAR[4], gateway=scene.gw(1))
    scene.wait_status("far", "n1", lambda s: s.get("subnet"))
    agent.stop()
    assert not sanitizer_errors(agent.log), agent.log


def waits(agent):
    """Whether a connection to its socket stands."""
    return any("ESTAB" in line and "agent.sock" in line
               for line in agent.node.run("ss -x").stdout.splitlines())


def test_every_start_is_quick(agents):
    """Go's HTTP server may drop the tail of a request that it begins to answer: etcd then follows
    only the first few of our watches, and the start takes 5 s. Without care that is one in six."""
    agent = agents()
    for _ in range(20):
        agent.start().stop()
    assert "not every watch was confirmed" not in agent.log


def test_sigterm_answers_who_waits(etcd, agents):
    pool(etcd, cidr="10.1.0.0/30", blockSize=32)
    agent = agents().start()
    etcd.members[0].pause()
    p = agent.node.popen([agent.build / "roost-ipam"], stdin=subprocess.PIPE, text=True,
                         stdout=subprocess.PIPE, env={
                             "CNI_COMMAND": "ADD", "CNI_CONTAINERID": "c", "CNI_IFNAME": "eth0",
                             "CNI_NETNS": "/x", "CNI_PATH": "/"})
    p.stdin.write('{"cniVersion":"1.0.0","name":"pods","type":"x","ipam":{"type":"roost-ipam"}}')
    p.stdin.close()
    wait_until(lambda: waits(agent), 5, "the request to wait")
    agent.stop()
    assert p.wait(10) == 1 and json.loads(p.stdout.read())["code"] == 11
    etcd.members[0].resume()


def test_a_removed_node_drains(etcd, agents):
    """No new addresses; what no pod uses is given up; back when the key is deleted."""
    pool(etcd, cidr="10.1.0.0/24", blockSize=28, preallocate=3)
    agent = agents().start()
    held = agent.assign("a")
    wait_until(lambda: len(agent.blocks()) >= 3, 10, "the preallocated blocks")
    put(etcd, "removed/n1", by="test", when="2026-11-16T02:45:55Z")
    agent.wait_health("removed", "by test")
    assert agent.refuses("b").code == 11
    wait_until(lambda: len(agent.blocks()) == 1, 10, "the empty blocks to be given up")
    assert agent.held() == {held[0]: "a"}
    agent.wait_agreed()
    assert agent.release("a") == held
    wait_until(lambda: agent.blocks() == {}, 10, "the last block to be given up")
    agent.wait_agreed()
    etcd.delete(PREFIX + "removed/n1")
    agent.wait_ready()
    assert agent.assign("b")


# --- IPv6 ----------------------------------------------------------------------------------------


def test_ipv6_is_found_without_a_default_route(lab, dual_etcd, build):
    """etcd is asked by IPv4, and there is no default route: the address beside the IPv4 one counts."""
    agent = Agent(lab.node(), build, dual_etcd).start()
    record = json.loads(dual_etcd.get(f"{PREFIX}node/{agent.node.name}"))
    assert record["ipv6"].startswith("fd50::") and record["ipv4"], record
    # Not one that is going away.
    other = Agent(lab.node(), build, dual_etcd)
    other.node.run("ip -6 addr change " + next(
        w for w in other.node.run("ip -6 -o addr show scope global").stdout.split() if "fd50" in w)
        + " dev " + other.node.run("ip -6 -o addr show scope global").stdout.split()[1]
        + " preferred_lft 0")
    other.start()
    assert "ipv6" not in json.loads(dual_etcd.get(f"{PREFIX}node/{other.node.name}"))


def test_an_ipv6_pool_on_a_node_without_ipv6_is_reported(agent, etcd, build):
    pool(etcd, "six", "fd77::/112")
    told = wait_until(lambda: [h for h in agent.status()["health"] if h != "ok" and
                               h["part"] == "pool/six"], 10, "health", errors=(TypeError,))
    assert "this node has no IPv6 address" in told[0]["reason"], told
    said = Ctl(agent.node, build, etcd).run("status").stdout
    assert "All is well" not in said and "this node has no IPv6 address" in said, said
    # For other nodes only: nothing to report here.
    pool(etcd, "six", "fd77::/112", nodeSelector="has(six)")
    wait_until(lambda: agent.status()["health"] == "ok", 10, "health")

# SPDX-License-Identifier: Apache-2.0
"""The lab keeps its promises. A lie here would be a lie in every other test."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading

import pytest

from lab import CommandError, EtcdError, process, steady, wait_until
from lab.bird import BirdError
from lab.etcd import PASSWORD, USER
from lab.gateway import b64
from lab.session import Session, sweep
from lab.steady import SteadyPing

HERE = pathlib.Path(__file__).resolve().parent


# --- nodes ---------------------------------------------------------------------------------------


def test_nodes_are_different_machines(lab):
    a, b = lab.nodes(2)
    for file in "/etc/machine-id", "/proc/sys/kernel/random/boot_id", "/proc/sys/kernel/hostname":
        seen = {n.run(["cat", file]).stdout.strip() for n in (a, b)}
        assert len(seen) == 2, file
        if os.path.exists(file):  # a host may lack a machine id
            assert pathlib.Path(file).read_text().strip() not in seen, file
    assert a.run("cat /etc/machine-id").stdout.strip() == a.machine_id
    assert a.run("cat /proc/sys/kernel/random/boot_id").stdout.strip() == a.boot_id
    assert a.run("hostname").stdout == "n1\n"
    assert [x["ifname"] for x in json.loads(a.run("ip -j link").stdout)] == ["lo"]


def test_what_a_node_writes_stays_there(lab):
    a, b = lab.nodes(2)
    for folder in ("/run/netns", "/run/roost", "/run/bird", "/etc/roost", "/etc/bird",
                   "/var/lib/cni"):
        assert a.run(["ls", "-A", folder]).stdout == "", f"{folder} starts empty"
        a.write(f"{folder}/lab-probe", "x")
        assert a.run(["cat", f"{folder}/lab-probe"]).stdout == "x"
        assert not b.path(f"{folder}/lab-probe").exists()
        assert not pathlib.Path(f"{folder}/lab-probe").exists()


def test_a_setting_is_set_on_the_node_alone(lab):
    a, b = lab.nodes(2)
    host = pathlib.Path("/proc/sys/net/ipv4/ip_forward").read_text()
    assert a.sysctl("net.ipv4.ip_forward", 1) == "1"
    assert b.sysctl("net.ipv4.ip_forward") == "0"
    assert pathlib.Path("/proc/sys/net/ipv4/ip_forward").read_text() == host
    for path in "/proc/sys/net/ipv4/ip_forward", "/sys/class/net", "/var/run/roost":
        with pytest.raises(AssertionError):
            a.path(path)
    assert a.run("ls /sys/class/net").stdout.split() == ["lo"]


def test_a_reboot_keeps_machine_configuration_and_cables(lab):
    a, b = lab.nodes(2)
    switch = lab.switch([a, b])
    lab.link(a, b, ["10.0.0.1/30"], ["10.0.0.2/30"])
    a.write("/etc/roost/agent.json", "{}")
    a.write("/run/roost/node", "x")
    a.pod("p1")
    sleeper = a.spawn("sleeper", "sleep 1000")
    boot, machine = a.boot_id, a.machine_id
    a.reboot()
    assert sleeper.wait() == -signal.SIGKILL
    assert a.run("cat /etc/machine-id").stdout.strip() == machine
    assert a.run("cat /proc/sys/kernel/random/boot_id").stdout.strip() == a.boot_id != boot
    assert a.read("/etc/roost/agent.json") == "{}"
    assert a.run("ls -A /run/roost /run/netns").stdout.split() == ["/run/netns:", "/run/roost:"]
    assert b.ping(switch.address(a)) and b.ping("10.0.0.1")


def test_a_pod_has_a_path_on_its_node_only(lab):
    a, b = lab.nodes(2)
    pod = a.pod("p1")
    assert [x["ifname"] for x in json.loads(pod.run("ip -j link").stdout)] == ["lo"]
    assert not b.path(pod.netns).exists() and not pathlib.Path(pod.netns).exists()
    pod.delete()
    assert not a.path(pod.netns).exists()


# --- processes -----------------------------------------------------------------------------------


def test_a_failing_command_says_what_it_said(lab):
    node = lab.node()
    with pytest.raises(CommandError, match="exit 3(.|\n)*out(.|\n)*err"):
        node.run(["sh", "-c", "echo out; echo err >&2; exit 3"])
    assert node.run("false", check=False).returncode == 1
    assert node.run("cat", input="fed").stdout == "fed"
    with pytest.raises(CommandError, match="still running"):
        node.run("sleep 1000", timeout=0.1)


def test_a_spawned_process_can_be_watched_and_ended(lab):
    node = lab.node()
    p = node.spawn("talker", ["sh", "-c", "trap 'echo bye; exit 4' TERM; echo 'hello 42'; "
                              "sleep 1000 & wait"])
    assert p.wait_log(r"hello (\d+)")[1] == "42"
    p.pause()
    p.resume()
    assert p.stop() == 4
    assert p.log == "hello 42\nbye\n"


def test_a_process_outlives_the_thread_that_started_it(lab):
    """The kernel's parent-death signal is about threads; see process.popen."""
    node, made = lab.node(), []
    thread = threading.Thread(target=lambda: made.append(node.spawn("sleeper", "sleep 1000")))
    thread.start()
    thread.join()
    with pytest.raises(AssertionError, match="still runs"):
        made[0].wait(0.2)


def test_grandchildren_end_with_the_lab(make_lab):
    lab = make_lab()
    node = lab.node()
    node.run(["sh", "-c", "setsid sleep 1000 >&- 2>&- <&- & echo started"])
    assert len(process.marked(lab.id)) == 2  # the holder and the sleeper
    lab.close()
    assert process.marked(lab.id) == []


def test_an_unclean_end_is_noticed(make_lab):
    lab = make_lab()
    lab.node().spawn("bad", ["sh", "-c", "trap 'exit 23' TERM; echo up; "
                             "sleep 1000 & wait"],
                     expect_clean=True).wait_log("up")
    with pytest.raises(AssertionError, match="exit 23"):
        lab.close()
    lab.processes.clear()


def test_a_sanitizer_report_is_noticed(make_lab):
    lab = make_lab()
    lab.node().spawn("bad", "echo x.c:1:2: runtime error: signed integer overflow").wait()
    with pytest.raises(AssertionError, match="integer overflow"):
        lab.close()
    lab.remove_files()


def test_a_sanitizer_report_of_a_command_is_noticed(node):
    """Also of one that is expected to fail."""
    with pytest.raises(CommandError, match="heap-use-after-free"):
        node.run(["sh", "-c", "echo ==1==ERROR: AddressSanitizer: heap-use-after-free >&2; exit 1"],
                 check=False)


# --- links ---------------------------------------------------------------------------------------


def test_a_steady_ping_counts_every_loss(lab, monkeypatch):
    """Those between two answers, and those that nothing follows."""
    monkeypatch.setattr(steady, "GRACE", 1)
    a, b = lab.nodes(2)
    fabric = lab.switch([a, b])
    pings = [SteadyPing(a, "192.168.50.2", name=f"ping{i}") for i in range(3)]
    assert pings[0].stop() == []
    before = [max(p.answered()) for p in pings[1:]]
    fabric.cut(b)
    for p in pings[1:]:
        p.process.wait_log(r"no answer yet for icmp_seq=(\d+)\n(.*\n)*.*no answer yet")
    lost = pings[1].stop()
    assert len(lost) >= 2 and lost[0] > before[0] and lost[-1] == lost[0] + len(lost) - 1
    fabric.restore(b)
    pings[2].wait_more()
    lost = pings[2].stop()
    assert len(lost) >= 2 and lost[-1] < max(pings[2].answered())


def test_a_cable_carries_both_families(lab):
    a, b = lab.nodes(2)
    cable = lab.link(a, b, ["10.0.0.1/24", "fd00::1/64"], ["10.0.0.2/24", "fd00::2/64"])
    assert a.ping("10.0.0.2") and b.ping("fd00::1")
    cable.cut()
    assert not b.ping("10.0.0.1", 0.1)
    cable.restore()
    wait_until(lambda: b.ping("10.0.0.1"), 5, "the cable")


def test_a_switch_can_be_cut_and_divided(lab):
    a, b, c = nodes = lab.nodes(3)
    switch = lab.switch(nodes, subnet6="fd00:50::/64")

    def reach():
        """Who reaches whom, as "ab ba ..."."""
        pairs = [(x, y) for x in nodes for y in nodes if x is not y]
        return {"abc"[nodes.index(x)] + "abc"[nodes.index(y)] for x, y in pairs
                if x.ping(switch.address(y), 0.1)}

    everybody = {"ab", "ac", "ba", "bc", "ca", "cb"}
    assert reach() == everybody
    assert a.ping(switch.address(b, family=6))
    switch.cut(a)
    assert reach() == {"bc", "cb"}
    wait_until(lambda: "NO-CARRIER" in a.run("ip link show eth0").stdout, 5, "the carrier to go")
    switch.restore(a)
    wait_until(lambda: reach() == everybody, 5, "all to be back")
    switch.isolate(b)
    assert reach() == {"ac", "ca"}
    assert "NO-CARRIER" not in b.run("ip link show eth0").stdout
    switch.partition([a, b], [c])
    assert reach() == {"ab", "ba"}
    switch.separate(a, b)
    assert reach() == everybody - {"ab", "ba"}
    switch.heal()
    assert reach() == everybody


def test_two_labs_with_the_same_addresses_do_not_meet(make_lab):
    labs = [make_lab(), make_lab()]
    clusters = [lab.etcd() for lab in labs]
    assert clusters[0].endpoints == clusters[1].endpoints
    clusters[0].put("/where", "first")
    assert clusters[1].get("/where") is None
    nodes = [lab.node() for lab in labs]
    switches = [lab.switch([node]) for lab, node in zip(labs, nodes)]
    switches[0].add(labs[0].node())
    assert nodes[0].ping("192.168.50.2") and not nodes[1].ping("192.168.50.2", 0.1)


# --- etcd ----------------------------------------------------------------------------------------


def test_etcd_keeps_and_tells(etcd):
    assert etcd.get("/a") is None and etcd.dump() == {}
    etcd.put("/a", "1")
    revision = etcd.put("/a", "2")
    etcd.put("/b", "ü")
    assert etcd.get("/a", revision=revision - 1) == "1"
    assert etcd.dump("/") == {"/a": "2", "/b": "ü"}
    assert etcd.list("/a")[0].version == 2
    assert etcd.delete("/", prefix=True) == 2
    assert [(e.type, e.value) for e in etcd.history("/a")] == \
        [("PUT", "1"), ("PUT", "2"), ("DELETE", "")]
    etcd.compact()
    etcd.defrag()
    assert etcd.history() == []
    with pytest.raises(EtcdError, match="compacted"):
        etcd.get("/a", revision=revision)
    assert "/a" not in etcd.ctl("get", "--prefix", "/")


def test_etcd_outlives_its_process_and_can_be_wiped(etcd):
    member, = etcd.members
    etcd.put("/a", "1")
    assert member.stop() in (0, -signal.SIGTERM)
    member.start()
    member.restart(how="kill")
    assert etcd.get("/a") == "1"
    first = etcd.cluster_id()
    etcd.wipe()
    assert etcd.dump() == {} and etcd.cluster_id() == first
    etcd.wipe(new_id=True)
    assert etcd.cluster_id() != first


def test_etcd_comes_back_from_a_snapshot(etcd):
    etcd.put("/a", "old")
    first, snapshot = etcd.cluster_id(), etcd.save()
    etcd.put("/a", "new")
    etcd.restore(snapshot)
    assert etcd.get("/a") == "old" and etcd.cluster_id() != first


def test_a_client_on_another_node_reaches_etcd(lab, etcd):
    node = lab.node()
    etcd.join(node)
    version = f"{etcd.members[0].url}/version"
    assert "etcdserver" in node.run(["curl", "-sS", version]).stdout
    etcd.switch.cut(node)
    assert node.run(["curl", "-sS", "-m", "0.2", version], check=False).returncode != 0
    etcd.put("/a", "1")  # the test's own hands are not cut


def test_three_members_survive_what_is_done_to_one(lab):
    etcd = lab.etcd(members=3)
    leader = etcd.leader()
    assert len(etcd.followers()) == 2
    etcd.put("/a", "1")
    leader.kill()
    etcd.put("/a", "2")
    assert etcd.leader() is not leader
    leader.start()

    paused = etcd.followers()[0]
    paused.pause()
    etcd.put("/a", "3")
    paused.resume()
    paused.wait_healthy()

    cut = etcd.leader()
    etcd.switch.cut(cut.node)
    wait_until(lambda: not cut.healthy(), 20, "the cut member to notice")
    etcd.put("/a", "4")
    etcd.switch.restore(cut.node)
    etcd.wait_healthy()
    assert [e.value for e in etcd.history("/a")] == ["1", "2", "3", "4"]


def test_etcd_with_certificates_and_users(lab):
    etcd = lab.etcd(tls=True, auth=True)
    member, = etcd.members
    etcd.put("/roost/a", "1")
    assert etcd.ctl("get", "/roost/a") == "/roost/a\n1\n"

    client = lab.node()
    etcd.join(client)

    def post(path, body, *args, certificate=True):
        own = ["--cert", etcd.client_certificate.cert, "--key", etcd.client_certificate.key]
        return client.run(["curl", "-sS", "--cacert", etcd.authority.cert,
                           *(own if certificate else ()), "-d", json.dumps(body), *args,
                           f"{member.url}{path}"], check=False)
    login = {"name": USER, "password": PASSWORD}
    assert post("/v3/auth/authenticate", login, certificate=False).returncode != 0
    token = json.loads(post("/v3/auth/authenticate", login).stdout)["token"]
    key, other = {"key": b64("/roost/a")}, {"key": b64("/elsewhere")}
    assert "user name is empty" in post("/v3/kv/range", key).stdout
    assert '"count":"1"' in post("/v3/kv/range", key, "-H", f"Authorization: {token}").stdout
    assert "permission denied" in post("/v3/kv/range", other, "-H",
                                       f"Authorization: {token}").stdout
    member.restart()  # tokens die with it; the helpers log in again
    assert etcd.get("/roost/a") == "1"


def test_etcd_on_a_unix_socket(lab):
    etcd = lab.etcd(unix=True)
    reply = lab.run(["curl", "-sS", "--unix-socket", etcd.members[0].socket, "http://x/version"])
    assert "etcdserver" in reply.stdout


# --- BIRD ----------------------------------------------------------------------------------------

CONFIG = """
log stderr all;
router id {me};
protocol device {{ scan time 10; }}
protocol kernel {{ ipv4 {{ export where source = RTS_BGP; }}; }}
protocol static {{ ipv4; {route} }}
protocol bgp peer {{
  local {me} as 64512; neighbor {other} as 64512; direct;
  connect delay time 1; connect retry time 1; error wait time 1, 2;
  ipv4 {{ import all; export where source = RTS_STATIC; }};
}}
"""


def test_two_birds_exchange_a_route(lab, bird):
    a, b = lab.nodes(2)
    switch = lab.switch([a, b])
    me, other = switch.address(a), switch.address(b)
    first = bird(a, CONFIG.format(me=me, other=other, route="route 10.1.0.0/26 blackhole;"))
    second = bird(b, CONFIG.format(me=other, other=me, route=""))
    second.wait_up("peer")

    def learned():
        return f"10.1.0.0/26 via {me}" in b.run("ip route").stdout
    wait_until(learned, 10, "the route on b")
    with pytest.raises(BirdError, match="syntax error"):
        first.birdc("make tea")
    first.stop()
    wait_until(lambda: not learned(), 10, "the route to go")
    first.start()
    wait_until(learned, 10, "the route to be back")
    first.restart(how="kill")
    assert "BIRD" in first.birdc("show status")


# --- the session's check ------------------------------------------------------------------------


def test_a_change_of_the_host_is_noticed():
    session = Session()
    session.host_before.append("link lost")
    with pytest.raises(AssertionError, match="- link lost"):
        session.close()


def test_a_process_that_outlives_its_lab_is_noticed():
    session = Session()
    session.lab().node()
    with pytest.raises(AssertionError, match="outlived"):
        session.close()
    assert nothing_left(session.id)


# --- nothing is left -----------------------------------------------------------------------------

INNER = """
import pathlib

def test_hang(lab, lab_session):
    a = lab.node()
    lab.etcd().join(a)
    a.pod("p1")
    a.run(["sh", "-c", "setsid sleep 1000 >&- 2>&- <&- & echo started"])
    pathlib.Path({told!r}).write_text(f"{{lab_session.id}} {{lab_session._janitor.pid}}")
    a.run("sleep 1000", timeout=1000)
"""


@pytest.fixture
def hanging(tmp_path):
    """A pytest of its own that hangs in a full lab: (Popen, session id, janitor's pid)."""
    told = tmp_path / "told"
    (tmp_path / "conftest.py").write_text(
        f"import sys\nsys.path.insert(0, {str(HERE)!r})\n" + (HERE / "conftest.py").read_text())
    (tmp_path / "test_inner.py").write_text(INNER.format(told=str(told)))
    with subprocess.Popen(
            [sys.executable, "-B", "-m", "pytest", "-q", "-c", HERE / "pytest.ini", "--rootdir",
             tmp_path, tmp_path], cwd=tmp_path, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True,
            # Shells ignore it in what they start in the background, and that is inherited.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)) as inner:
        try:
            wait_until(lambda: told.exists() and told.read_text() or inner.poll() is not None, 30,
                       "the inner test")
            assert inner.poll() is None, inner.stdout.read()
            session, janitor = told.read_text().split()
            wait_until(lambda: len(process.marked(session)) >= 6, 10, "its processes")
            yield inner, session, int(janitor)
        finally:
            inner.kill()


def nothing_left(session):
    return not process.marked(session) and not folder(session).exists()


def folder(session):
    return pathlib.Path(tempfile.gettempdir(), session)


def runs(pid):
    """Not so of a zombie, which waits for a slow init: it has no command line any more."""
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes() != b""
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("sig", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_an_interrupted_run_leaves_nothing(hanging, sig):
    inner, session, janitor = hanging
    inner.send_signal(getattr(signal, sig))
    inner.wait(20)
    wait_until(lambda: nothing_left(session), 10, "all of it to go")
    wait_until(lambda: not runs(janitor), 10, "the janitor to go home")


def test_without_a_janitor_the_kernel_ends_the_processes(hanging):
    """Second line of defence: parent-death signals; the next session sweeps the folder."""
    inner, session, janitor = hanging
    os.kill(janitor, signal.SIGKILL)
    inner.kill()
    inner.wait(20)

    def names():
        return {pathlib.Path(f"/proc/{p}/comm").read_text() for p in process.marked(session)}
    # Not the grandchild that hid in a session of its own: that is what the janitor is for.
    wait_until(lambda: names() <= {"sleep\n"}, 10, "the children to go", errors=OSError)
    assert folder(session).exists()
    sweep()
    assert nothing_left(session)

# SPDX-License-Identifier: Apache-2.0
"""roost's other verbs, and other plugins before, below and behind it."""

import json
import pathlib
import subprocess

import pytest

from lab import cni, wait_until
from lab.cni import failure
from test_cni_plugin import (ATTACH, CHECK, DETACH, DUAL, GW4, HOST_LOCAL, addresses, conf,
                             host_links, leases, shim)

DEBIAN = pathlib.Path("/usr/lib/cni")
GIVEN = '{"cniVersion":"1.0.0","ips":[{"address":"10.9.0.7/24","gateway":"10.9.0.1"}]}'


def spool(node):
    folder = node.path("/run/roost/spool")
    return [json.loads(p.read_text()) for p in folder.iterdir()] if folder.exists() else []


# --- any -----------------------------------------------------------------------------------------


@pytest.mark.slow(10)
def test_a_configuration_without_an_end_ends(node, build, fake_agent):
    """Within the time of the command: 9 s for an ADD, 1 s for STATUS."""
    fake_agent()
    calls = [(verb, node.popen([build / program], stdin=subprocess.PIPE, text=True,
                               stdout=subprocess.PIPE, env={
                                   "CNI_COMMAND": verb, "CNI_CONTAINERID": "c1", "CNI_IFNAME": "eth0",
                                   "CNI_NETNS": "/run/netns/p1", "CNI_PATH": "/usr/lib/cni"}))
             for program in ("roost", "roost-ipam") for verb in ("STATUS", "ADD")]
    for _, p in calls:
        p.stdin.write('{"cniVersion": "1.1.0", ')
        p.stdin.flush()
    for verb, p in calls:
        assert p.wait(30) == 1, verb
        error = json.loads(p.stdout.read())
        assert error["code"] == 5 and "on stdin is incomplete: 24 bytes were read" in error["msg"], error


# --- DEL -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("netns", ["", "/run/netns/gone", "/etc/hosts", "/proc/self/ns/mnt"])
def test_del_needs_no_namespace(node, fake_agent, roost, netns):
    a, pod = fake_agent(), node.pod("p1")
    roost("ADD", conf(), pod)
    for _ in range(2):
        roost("DEL", conf(), netns=netns)
    assert host_links(node) == [] and a.held == {} and a.attached == {}


def test_del_looks_at_nothing_that_only_an_add_needs(fake_agent, roost):
    a = fake_agent()
    roost("DEL", conf(ipam={"range": "junk", "pool": 5}, mtu="x", runtimeConfig=5, prevResult=7),
          netns="", args="IP=junk;MAC=junk")
    roost("DEL", {"cniVersion": "1.0.0", "name": "pods"}, netns="", path="")
    assert [p for p, _ in a.requests] == [DETACH, DETACH]


def test_without_an_agent_the_link_goes_and_a_note_stays(node, fake_agent, roost):
    a, pod = fake_agent(), node.pod("p1")
    roost("ADD", conf(), pod)
    a.remove()
    roost("DEL", conf(), pod)
    assert host_links(node) == [] and pod.links() == []
    note, = spool(node)
    assert note.pop("boottime") > 0
    assert note == {"network": "pods", "container": "c1", "interface": "eth0"}
    roost("DEL", conf(), pod)


def test_an_agent_that_comes_meanwhile_needs_no_note(node, fake_agent, roost):
    def answer(path, body):
        return (503, {"code": 11, "error": "not yet"}) if len(a.requests) == 1 else \
            a.serve(path, body)
    a = fake_agent(answer)
    roost("DEL", conf())
    assert [p for p, _ in a.requests] == [DETACH, DETACH] and spool(node) == []


@pytest.mark.limit(60)
def test_a_silent_agent_holds_up_no_del(node, fake_agent, roost):
    quiet = []
    a = fake_agent(lambda path, body: None if quiet else a.serve(path, body))
    pod = node.pod("p1")
    roost("ADD", conf(), pod)
    quiet.append(True)
    roost("DEL", conf(), pod)
    assert host_links(node) == [] and len(spool(node)) == 1


def test_a_del_that_can_leave_no_note_succeeds_too(node, roost):
    node.write("/run/roost/spool", "a file")
    roost("DEL", conf(), quiet=False)


# --- CHECK ---------------------------------------------------------------------------------------


TAMPERING = {
    "ip link del eth0": "has no interface",
    "ip link set eth0 down": " is down",
    "ip link set eth0 address 02:00:00:00:00:99": "MAC address",
    "ip addr del 10.77.0.5/32 dev eth0": "address 10.77.0.5",
    "ip addr del fd00:77::5/128 dev eth0": "address fd00:77::5",
    "ip route del default": "route to 0.0.0.0/0",
    "ip -6 route del default": "route to ::/0",
    f"ip neigh del {GW4} dev eth0": "neighbour 169.254.1.1",
    f"ip neigh replace {GW4} dev eth0 lladdr 02:00:00:00:00:99 nud permanent": "neighbour",
    "ip -6 neigh flush dev eth0 nud permanent": "neighbour fe80:",
}


@pytest.mark.parametrize("command", TAMPERING)
def test_check_sees_what_is_missing(node, fake_agent, roost, command):
    fake_agent(addresses=DUAL)
    pod = node.pod("p1")
    config = conf()
    config["prevResult"] = roost("ADD", config, pod)
    roost("CHECK", config, pod)
    pod.run(command)
    e = failure(roost, "CHECK", config, pod)
    assert e.code == 103 and TAMPERING[command] in e.msg


def test_check_passes_on_what_others_say(node, fake_agent, roost):
    a, pod = fake_agent(), node.pod("p1")
    config = conf()
    assert "prevResult" in failure(roost, "CHECK", config, pod).msg
    config["prevResult"] = roost("ADD", config, pod)
    body = a.bodies(ATTACH)[0]
    roost("CHECK", config, pod)
    assert a.bodies(CHECK) == [body]
    a.attached.clear()
    assert failure(roost, "CHECK", config, pod).code == 3
    a.held.clear()
    assert failure(roost, "CHECK", config, pod).code == 3
    no_interface = {**config, "prevResult": {"ips": []}}
    assert failure(roost, "CHECK", no_interface, pod).code == 7


def test_check_bears_what_others_added(node, fake_agent, roost):
    fake_agent()
    pod = node.pod("p1")
    config = conf()
    done = roost("ADD", config, pod)
    done["interfaces"].append({"name": "ifb1", "mac": "02:00:00:00:00:01"})
    done["ips"].append({"address": "10.8.0.1/32", "interface": 2})
    done["routes"].append({"dst": "10.8.0.0/16", "gw": "10.8.0.1"})
    pod.run("ip addr add 10.7.0.1/32 dev eth0")
    pod.run("ip link set eth0 mtu 1300")
    roost("CHECK", {**config, "prevResult": done}, pod)


# --- GC and STATUS -------------------------------------------------------------------------------


def test_gc_tells_the_agent_who_lives(fake_agent, roost):
    a = fake_agent()
    config = conf(**{"cni.dev/valid-attachments": [{"containerID": "c1", "ifname": "eth0"}]})
    roost("GC", config, container="", ifname="", netns="")
    assert a.requests == [("/v1/gc", {"network": "pods", "valid": [
        {"container": "c1", "interface": "eth0"}]})]
    assert failure(roost, "GC", conf(), container="", ifname="", netns="").code == 7
    assert len(a.requests) == 1


@pytest.mark.parametrize("reply, code", [
    ((200, {}), None), ((503, {"code": 50, "error": "no address"}), 50),
    ((503, {"code": 51, "error": "no bird"}), 51), ((500, {}), 50), (b"HTTP/1.1 200 OK\r\n\r\njunk", 50),
    (b"junk", None)])  # broken off: perhaps the agent's end
def test_status_is_the_agents(fake_agent, roost, reply, code):
    a = fake_agent(lambda path, body: reply)
    if code:
        assert failure(roost, "STATUS", conf(), container="", ifname="", netns="").code == code
    else:
        roost("STATUS", conf(), container="", ifname="", netns="")
    assert a.requests == [("/v1/ready?network=pods", None)]


def test_status_without_an_agent(roost):
    e = failure(roost, "STATUS", conf(), container="", ifname="", netns="")
    assert e.code == 50 and "not running" in e.msg


# --- another IPAM plugin -------------------------------------------------------------------------


def test_a_delegate_gets_what_we_got(node, fake_agent, roost, build):
    a, pod = fake_agent(), node.pod("p1")
    folder = shim(node, "probe", f"env | sort > /run/env; cat > /run/stdin; echo '{GIVEN}'")
    config = conf("1.0.0", {"type": "probe", "x": [1, 2]}, runtimeConfig={"ips": []})
    text = json.dumps(config) + "\n \n"
    done = roost("ADD", text, pod, path=f"/nowhere:{folder}", args="A=B", SOME="thing")
    assert node.read("/run/stdin") == text
    env = dict(line.split("=", 1) for line in node.read("/run/env").splitlines())
    assert (env["CNI_COMMAND"], env["CNI_NETNS"], env["CNI_ARGS"], env["SOME"]) == \
        ("ADD", pod.netns, "A=B", "thing")
    assert addresses(pod) == [("10.9.0.7", 32)]
    assert a.bodies(ATTACH)[0]["ipam"] == "probe" and done["ips"][0]["address"] == "10.9.0.7/32"
    for verb in "CHECK", "DEL":
        roost(verb, {**config, "prevResult": done}, pod, path=folder)
        assert f"CNI_COMMAND={verb}\n" in node.read("/run/env")
        assert json.loads(node.read("/run/stdin"))["prevResult"] == done


def test_host_local_gives_and_takes(node, fake_agent, roost):
    fake_agent()
    pod = node.pod("p1")
    config = conf("1.0.0", HOST_LOCAL)
    done = roost("ADD", config, pod)
    assert leases(node) == ["10.9.0.2"] and addresses(pod) == [("10.9.0.2", 32)]
    roost("CHECK", {**config, "prevResult": done}, pod)
    roost("DEL", config, pod)
    assert leases(node) == [] and pod.links() == []
    e = failure(roost, "CHECK", {**config, "prevResult": done}, pod)
    assert "no interface" in e.msg


def test_a_second_add_keeps_host_locals_address(node, fake_agent, roost):
    fake_agent()
    pod = node.pod("p1")
    config = conf("1.0.0", HOST_LOCAL)
    roost("ADD", config, pod)
    assert failure(roost, "ADD", config, pod).code == 101
    assert leases(node) == ["10.9.0.2"]


def test_only_the_own_ipam_plugin_beside_us_is_not_run(node, fake_agent, roost, build):
    a, pod = fake_agent(), node.pod("p1")
    folder = shim(node, "roost-ipam", f"echo $CNI_COMMAND >> /run/verbs; exec {build}/roost-ipam")
    for path, verbs in ((f"{folder}:{build}", ["ADD", "DEL"]), (f"{build}:{folder}", []),
                        ("", []), ("/nowhere", [])):
        node.write("/run/verbs", "")
        assert roost("ADD", conf(), pod, path=path)["ips"][0]["address"] == "10.77.0.5/32"
        roost("DEL", conf(), pod, path=path)
        assert node.read("/run/verbs").split() == verbs and a.held == {}


@pytest.mark.parametrize("script, words", [
    ("exit 3", "exit code 3"), ("echo rubbish", "probe"), ("echo '{}'", "no address"),
    ('echo \'{"code":101,"msg":"full"}\'; exit 1', "probe: full"), ("kill -9 $$", "signal 9")])
def test_a_delegate_that_fails_is_told_of(node, fake_agent, roost, script, words):
    a, pod = fake_agent(), node.pod("p1")
    folder = shim(node, "probe", f'echo $CNI_COMMAND >> /run/verbs; cat > /dev/null\n{script}')
    e = failure(roost, "ADD", conf("1.0.0", {"type": "probe"}), pod, path=folder)
    assert words in e.msg and pod.links() == [] and a.attached == {}
    # Only what may hold an address is asked to give it back.
    assert node.read("/run/verbs").split() == ["ADD"] + ["DEL"] * script.startswith("echo r") + \
        ["DEL"] * script.startswith("echo '{}'")


def test_where_delegates_are_looked_for(node, fake_agent, roost):
    fake_agent()
    pod = node.pod("p1")
    node.write("/opt/shim/plain", "no program")
    for name, path, code in (("absent", "/usr/lib/cni", 7), ("plain", "/opt/shim", 7),
                             ("../../bin/sh", "/usr/lib/cni", 7), ("probe", "", 4)):
        assert failure(roost, "ADD", conf(ipam={"type": name}), pod, path=path).code == code
    for ipam in ({}, {"ipam": {}}, {"ipam": {"type": ""}}):
        config = {"cniVersion": "1.0.0", "name": "pods", **ipam}
        assert '"type": "roost-ipam"' in failure(roost, "ADD", config, pod).msg


def test_a_delegates_background_child_delays_nothing(node, fake_agent, roost):
    fake_agent()
    pod = node.pod("p1")
    folder = shim(node, "probe", f"sleep 1000 & echo $! > /run/child; cat > /dev/null; "
                  f"echo '{GIVEN}'")
    roost("ADD", conf("1.0.0", {"type": "probe"}), pod, path=folder, timeout=60)
    wait_until(lambda: not is_alive(node.read("/run/child").strip()), 10, "the child to die")


def is_alive(pid):
    """Whether it runs; what nobody has buried yet does not."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


@pytest.mark.limit(100)
@pytest.mark.slow(10)
def test_a_delegate_that_hangs_is_ended_in_time(node, fake_agent, roost):
    a, pod = fake_agent(), node.pod("p1")
    folder = shim(node, "probe", "[ $CNI_COMMAND = DEL ] || exec sleep 1000")
    config = conf("1.0.0", {"type": "probe"})
    assert "did not finish in time" in failure(roost, "ADD", config, pod, path=folder).msg
    assert pod.links() == [] and a.attached == {}


def test_what_a_delegate_says_on_stderr_is_passed_on(node, fake_agent, build):
    fake_agent()
    pod = node.pod("p1")
    folder = shim(node, "probe", f"echo hello >&2; cat > /dev/null; echo '{GIVEN}'")
    done = node.run([build / "roost"], input=json.dumps(conf("1.0.0", {"type": "probe"})),
                    env=cni.environment("ADD", netns=pod.netns, path=folder))
    assert done.stderr == "hello\n" and json.loads(done.stdout)["ips"]


@pytest.mark.parametrize("verb", ["GC", "STATUS"])
def test_young_verbs_reach_a_delegate_that_knows_them(node, fake_agent, roost, verb):
    fake_agent()
    config = conf("1.1.0", {"type": "probe"}, **{"cni.dev/valid-attachments": []})
    nobody = dict(container="", ifname="", netns="")
    say = "cat > /dev/null; echo $CNI_COMMAND > /run/verb"
    for script, code in (("", None), (("; echo '{\"code\":4,\"msg\":\"unknown\"}'; exit 1"), None),
                         (("; echo '{\"code\":100,\"msg\":\"full\"}'; exit 1"), 100)):
        folder = shim(node, "probe", say + script)
        if code:
            e = failure(roost, verb, config, path=folder, **nobody)
            assert e.code == (50 if verb == "STATUS" else 100) and "full" in e.msg
        else:
            roost(verb, config, path=folder, **nobody)
        assert node.read("/run/verb").strip() == verb


def test_a_del_reports_the_delegates_failure_after_its_own_work(node, fake_agent, roost):
    a, pod = fake_agent(), node.pod("p1")
    folder = shim(node, "probe", f"cat > /dev/null; [ $CNI_COMMAND = DEL ] && exit 5; echo '{GIVEN}'")
    config = conf("1.0.0", {"type": "probe"})
    roost("ADD", config, pod, path=folder)
    assert "exit code 5" in failure(roost, "DEL", config, pod, path=folder).msg
    assert host_links(node) == [] and a.attached == {}


# --- chains --------------------------------------------------------------------------------------


def run_chain(node, pod, roost, verb, name, plugin, prev, **more):
    """One plugin of a chain, as libcni runs it; roost by its fixture, others from Debian."""
    config = {"cniVersion": "1.0.0", "name": name, **plugin, **more}
    if prev:
        config["prevResult"] = prev
    program = {} if plugin["type"] == "roost" else {"program": DEBIAN / plugin["type"]}
    return roost(verb, config, pod, quiet=False, **program)


CHAINS = [
    {"type": "tuning", "mtu": 1300, "promisc": True, "sysctl": {"net.core.somaxconn": "500"}},
    {"type": "portmap", "capabilities": {"portMappings": True}, "snat": True,
     "runtimeConfig": {"portMappings": [{"hostPort": 8080, "containerPort": 80,
                                         "protocol": "tcp"}]}},
]


@pytest.mark.parametrize("behind", CHAINS, ids=lambda c: c["type"])
def test_debians_plugins_work_behind_us(node, fake_agent, roost, behind):
    if behind["type"] == "portmap" and subprocess.run(["which", "iptables"],
                                                      capture_output=True).returncode:
        pytest.skip("portmap needs iptables")
    fake_agent()
    pod = node.pod("p1")
    chain = [{"type": "roost", "ipam": {"type": "roost-ipam"}}, behind]
    result = None
    for plugin in chain:
        result = run_chain(node, pod, roost, "ADD", "pods", plugin, result)
    assert result["ips"][0] == {"interface": 1, "address": "10.77.0.5/32", "gateway": GW4}
    run_chain(node, pod, roost, "CHECK", "pods", chain[0], result)
    for plugin in reversed(chain):
        run_chain(node, pod, roost, "DEL", "pods", plugin, result)
    assert pod.links() == []


SYSTEMD = pathlib.Path(__file__).resolve().parent.parent / "systemd"


@pytest.mark.parametrize("version", json.loads((SYSTEMD / "10-roost.conflist").read_text())
                         ["cniVersions"])
def test_the_configurations_that_are_installed_work(node, fake_agent, roost, version):
    a, pod = fake_agent(), node.pod("p1")
    whole = json.loads((SYSTEMD / "10-roost.conflist").read_text())
    assert whole["cniVersion"] == "1.0.0" and whole["plugins"][1]["type"] == "portmap"
    single = json.loads((SYSTEMD / "10-roost.conf").read_text())
    for plugin in whole["plugins"][0], single:
        config = {**plugin, "name": whole["name"], "cniVersion": version}
        assert roost("ADD", config, pod)["cniVersion"] == version
        roost("DEL", config, pod)
        assert a.held == {}


def test_what_was_before_us_is_kept(node, fake_agent, roost):
    fake_agent()
    pod = node.pod("p1")
    prev = {"cniVersion": "1.0.0", "dns": {"nameservers": ["10.0.0.53"]},
            "interfaces": [{"name": "lo", "mac": "00:00:00:00:00:00", "sandbox": pod.netns}],
            "ips": [{"interface": 0, "address": "127.0.0.1/8"}]}
    config = conf("1.0.0", prevResult=prev)
    done = roost("ADD", config, pod)
    assert [i["name"] for i in done["interfaces"]][::2] == ["lo", "eth0"]
    assert [(ip["address"], ip["interface"]) for ip in done["ips"]] == \
        [("127.0.0.1/8", 0), ("10.77.0.5/32", 2)]
    assert done["dns"] == prev["dns"]
    roost("CHECK", {**config, "prevResult": done}, pod)

# SPDX-License-Identifier: Apache-2.0
"""The units under a real systemd: sandbox, restarts, watchdog, what a stop leaves."""

import json
import os
import pathlib
import re
import subprocess

import pytest

from lab import cni, systemd, wait_until
from lab.agent import RUN, put

UNITS = pathlib.Path(__file__).resolve().parent.parent / "systemd"
CONF = {"cniVersion": "1.0.0", "name": "pods", "type": "roost", "ipam": {"type": "roost-ipam"}}
needs_systemd = pytest.mark.skipif(systemd.why_not() is not None, reason=str(systemd.why_not()))


@pytest.mark.parametrize("unit", sorted(p.name for p in UNITS.glob("*.service")))
def test_the_unit_exposes_little(unit):
    said = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager", UNITS / unit],
                          capture_output=True, text=True, check=True).stdout
    assert float(re.search(r"Overall exposure level.*: ([\d.]+) ", said)[1]) < 4.0, said


@pytest.fixture
def machine(lab, etcd, build):
    """A machine on etcd's switch, with everything installed and the agent configured."""
    machine = lab.machine("n1")
    etcd.join(machine)
    machine.install(build)
    machine.write("/etc/bird/envvars", "BIRD_RUN_USER=bird\nBIRD_RUN_GROUP=bird\n")
    machine.write("/etc/bird/bird.conf", "router id 192.0.2.1;\nprotocol device {}\n", 0o640)
    machine.run("chown -R bird:bird /etc/bird")
    machine.run("chmod 0750 /etc/bird")
    machine.write("/etc/roost/agent.json", json.dumps({
        "etcd": etcd.endpoints, "etcdInsecure": True, "templateDir": f"{systemd.PREFIX}/share/roost/templates"}))
    put(etcd, "pool/web", cidr="10.1.0.0/16")
    return machine


def status(machine):
    said = machine.run(f"curl -s --unix-socket {RUN}/agent.sock http://localhost/v1/status", check=False)
    return json.loads(said.stdout or "{}")


def start(machine, *units):
    """systemd is told that the agent is there; that it gives addresses may take a moment more."""
    machine.systemctl("start", *units)
    wait_until(lambda: status(machine).get("ready"), 60, "the agent to serve")


def call(machine, verb, pod):
    return cni.call(machine, "/opt/cni/bin/roost", verb, CONF, container=pod.name, netns=pod.netns,
                    path="/opt/cni/bin")


def attached(machine):
    folder = machine.path(f"{RUN}/attachments")
    return [json.loads(p.read_text()) for p in folder.iterdir() if p.name[0] != "."]


@needs_systemd
def test_systemd_finds_nothing_to_say_about_the_units(machine):
    for unit in UNITS.glob("*.service"):
        done = machine.run(["systemd-analyze", "verify", "--man=no", unit.name], check=False)
        ours = [x for x in done.stderr.splitlines() if "roost" in x or "bird" in x]
        assert done.returncode == 0 and not ours, done.stderr


@needs_systemd
def test_the_agent_does_all_its_work_in_its_sandbox(machine, etcd):
    start(machine, "bird", "roostd")
    pid = machine.show("roostd", "MainPID")
    cage = machine.run(f"cat /proc/{pid}/status").stdout
    bounding = int(re.search(r"CapBnd:\s+(\S+)", cage)[1], 16)
    assert bounding == 1 << 0 | 1 << 1 | 1 << 12, "chown, dac_override, net_admin and no more"
    assert re.search(r"Seccomp:\s+2", cage) and re.search(r"NoNewPrivs:\s+1", cage)

    pod = machine.pod("p1")
    address = call(machine, "ADD", pod)["ips"][0]["address"].split("/")[0]
    link = re.search(r"roost\w{10}", machine.run(f"ip route get {address}").stdout)[0]
    assert machine.sysctl(f"net.ipv4.conf.{link}.proxy_arp") == "1"
    assert machine.sysctl("net.ipv4.ip_forward") == "1"
    assert machine.run(f"ping -c 1 -W 5 {address}").returncode == 0
    # The pod's mount reached the agent: what it saw is the namespace, not an empty file.
    inode = os.stat(machine.path(pod.netns)).st_ino
    assert [int(a["netnsInode"]) for a in attached(machine)] == [inode], attached(machine)

    # nftables, by a child that loads its library.
    put(etcd, "pool/web", cidr="10.1.0.0/16", natOutgoing=True)
    wait_until(lambda: status(machine).get("firewall", {}).get("natOutgoing") == "set", 30, "NAT")
    assert "masquerade" in machine.run("nft list table inet roost").stdout

    # BIRD, as user bird: its file was checked, written for its group, loaded over its socket.
    wait_until(lambda: status(machine)["bird"]["configuration"] in ("published", "unchanged"), 30,
               "BIRD to run what the agent rendered")
    owner = machine.run("stat -c '%U:%G %a' /etc/bird/bird.conf").stdout.strip()
    assert owner == "root:bird 640"

    call(machine, "DEL", pod)
    wait_until(lambda: attached(machine) == [], 30, "the attachment to go")
    log = machine.unit_log("roostd")
    assert not re.search(r" (error|warning) ", log), log

    # Plugins of others, which it executes to ask for their versions.
    machine.write("/etc/cni/net.d/10-roost.conflist", json.dumps(
        {"cniVersion": "9.9.9", "name": "pods", "plugins": [{"type": "portmap"}]}))
    wait_until(lambda: "offers version 9.9.9, which" in str(status(machine)["health"]), 30,
               "the agent to ask portmap")
    machine.systemctl("stop", "roostd", "bird")


@needs_systemd
@pytest.mark.plain("the unit forbids ptrace, which the leak check needs")
def test_pods_outlive_stop_crash_and_hang_of_the_agent(machine):
    start(machine, "roostd")
    pod = machine.pod("p1")
    address = call(machine, "ADD", pod)["ips"][0]["address"].split("/")[0]
    before = attached(machine), machine.run("ip route show proto 114").stdout

    def unharmed():
        assert (attached(machine), machine.run("ip route show proto 114").stdout) == before
        machine.run(f"ping -c 1 -W 5 {address}")
    machine.systemctl("stop", "roostd")
    assert machine.systemctl("is-active", "roostd", check=False) == "inactive"
    unharmed()
    machine.systemctl("start", "roostd")
    unharmed()

    def another(pid):
        now = machine.show("roostd", "MainPID")
        return now not in ("0", pid) and machine.systemctl("is-active", "roostd", check=False) == "active"
    pid = machine.show("roostd", "MainPID")
    machine.systemctl("kill", "-s", "KILL", "roostd")
    wait_until(lambda: another(pid), 60, "systemd to start it again")
    unharmed()

    machine.drop_in("roostd", "quick", "[Service]\nWatchdogSec=2\n")
    machine.systemctl("restart", "roostd")
    unharmed()
    pid = machine.show("roostd", "MainPID")
    machine.systemctl("kill", "-s", "STOP", "roostd")
    wait_until(lambda: another(pid), 60, "the watchdog to see that it hangs")
    unharmed()
    machine.systemctl("reload", "roostd")
    machine.systemctl("stop", "roostd")


@needs_systemd
def test_confd_works_in_its_sandbox(machine, etcd):
    machine.write("/etc/roost/templates/motd.mustache", "{{#pool}}{{#web}}{{cidr}}{{/web}}{{/pool}}\n")
    machine.write("/etc/roost/confd.d/motd.json", json.dumps({
        "template": "motd", "dest": "/etc/motd.roost", "prefixes": ["pool/"],
        "check": "grep -q 10.1 {}", "reload": "touch /run/reloaded"}))
    machine.drop_in("roost-confd", "etcd", f"[Service]\nEnvironment=ROOST_ETCD={etcd.endpoints}\n")
    machine.systemctl("start", "roost-confd")
    wait_until(lambda: machine.path("/etc/motd.roost").exists(), 30, "the file")
    assert machine.read("/etc/motd.roost") == "10.1.0.0/16\n"
    wait_until(lambda: machine.path("/run/reloaded").exists(), 30, "the reload")
    machine.systemctl("stop", "roost-confd")

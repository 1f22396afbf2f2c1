# SPDX-License-Identifier: Apache-2.0
"""Eight faults, made for real: what `roostctl status` says of each is what stands in
docs/TROUBLESHOOTING.md, word for word but for times and addresses."""

import pathlib
import re

import pytest

from lab import wait_until
from lab.agent import Agent, pool
from lab.ctl import Ctl
from lab.site import EMPTY, Site

DOC = pathlib.Path(__file__).resolve().parent.parent / "docs/TROUBLESHOOTING.md"
TEMPLATE = "/etc/roost/templates/bird-base.mustache"


def normal(line):
    """Without what differs from run to run."""
    line = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME", line)
    line = re.sub(r"\b\d+\.\d+\.\d+\.\d+\b", "ADDRESS", line)
    line = re.sub(r"after \d+ ms", "after N ms", line)
    return re.sub(r"\s+", " ", line).strip()


def documented(fault):
    """The line under <!-- status: FAULT -->."""
    found = re.search(rf"<!-- status: {fault} -->\n```\n(.*)\n```\n", DOC.read_text())
    assert found, f"{DOC.name} has no line for {fault}"
    return normal(found[1])


def wait_told(ctl, fault, timeout=60):
    """Until status says what is documented; its exit code must be that of a problem."""
    want, last = documented(fault), None

    def told():
        nonlocal last
        last = ctl.run("status")
        return last.returncode == 1 and want in map(normal, last.stdout.splitlines())
    try:
        wait_until(told, timeout, poll=0.5)
    except AssertionError:
        raise AssertionError(f"{fault}\nwant: {want}\nsaid: {last.stdout}\n{last.stderr}") from None


def wait_well(ctl, timeout=90):
    wait_until(lambda: ctl.run("status").returncode == 0, timeout,
               "status to say that all is well", poll=0.5)


@pytest.mark.slow(35)
def test_each_fault_says_what_is_documented(lab, etcd, build):
    site = Site(lab, build, etcd)
    # Two blocks of four addresses: one for each node.
    site.put("pool/web", cidr="10.1.0.0/29", blockSize=30)
    a, b = site.start(2)
    ctl, ctl_b = Ctl(a.node, build, etcd), Ctl(b.node, build, etcd)
    pods = [a.pod("p1"), b.pod("p2")]
    site.settle()
    wait_well(ctl)

    # Five that can be together. BIRD of the other node runs another file: its agent finds that, and
    # this node has lost its neighbour.
    b.bird.kill()
    b.node.write("/etc/bird/other.conf", EMPTY)
    b.bird.process = b.node.spawn("bird", ["bird", "-f", "-c", "/etc/bird/other.conf",
                                           "-s", "/run/bird/bird.ctl"])
    pods += [a.pod(name) for name in ("p3", "p4", "p5")]
    assert "full" in a.agent.refuses("p6").text
    # A stranger's route takes the place of a pod's.
    stranger = [pods[0].address, "dev", "lo", "proto", "99"]
    a.node.run(["ip", "route", "replace", *stranger])
    a.node.write(TEMPLATE, "router id {{routerId}};\nprotocol nonsense { }\n")
    a.agent.reload()
    for fault in ("pool-full", "foreign-route", "refused-configuration", "peer-down"):
        wait_told(ctl, fault)
    wait_told(ctl_b, "out-of-sync")

    # All of them are mended, and so is what is said.
    b.bird.kill()
    b.bird.start("-R")
    a.node.path(TEMPLATE).unlink()
    a.agent.reload()
    a.node.run(["ip", "route", "del", *stranger])
    pods[-1].delete()
    # The refused pod counts until it has its address, as its runtime tries again.
    wait_until(lambda: a.agent.api("POST", "/v1/ipam/assign", {
        "network": "pods", "container": "p6", "interface": "eth0"}).status == 200, 30,
        "the refused pod to get an address")
    a.agent.release("p6")
    wait_well(ctl)
    wait_well(ctl_b)

    a.bird.kill()
    etcd.kill()
    wait_told(ctl, "bird-down")
    wait_told(ctl, "etcd-down")


def test_an_expired_certificate_is_named(lab, build):
    etcd = lab.etcd(tls=True)
    agent = Agent(lab.node("n1"), build, etcd).start()
    ctl = Ctl(agent.node, build, etcd)
    pool(etcd)
    wait_well(ctl)
    member, = etcd.members
    member.kill()
    etcd.authority.expire(etcd.server_certificate)
    member.launch()
    wait_told(ctl, "certificate-expired")

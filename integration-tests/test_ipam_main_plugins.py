# SPDX-License-Identifier: Apache-2.0
"""roost-ipam under Debian's main plugins: pods that answer pings, and give back what they had."""

import json
import pathlib

import pytest

from lab import cni, wait_until
from lab.cni import failure

DEBIAN = pathlib.Path("/usr/lib/cni")
RELEASE, CHECK = "/v1/ipam/release", "/v1/ipam/check"
VERSIONS = ["0.3.1", "0.4.0", "1.0.0"]

pytestmark = pytest.mark.skipif(not (DEBIAN / "ptp").exists(),
                                reason="Debian's containernetworking-plugins is not installed")


@pytest.fixture
def main(node, build):
    """main(verb, conf, pod, ...): the main plugin named in conf, with ours in CNI_PATH."""
    def call(verb, conf, pod, **kwargs):
        return cni.call(node, DEBIAN / conf["type"], verb, conf, netns=pod.netns,
                        path=f"{build}:{DEBIAN}", **kwargs)
    return call


def add_ping_del(main, agent, pod, conf, pings):
    """The life of a pod; pings() says whether it is reachable."""
    done = main("ADD", conf, pod)
    assert done["cniVersion"] == conf["cniVersion"]
    assert [ip["address"] for ip in done["ips"]] == ["10.77.0.5/24"]
    assert done["interfaces"][done["ips"][0]["interface"]]["sandbox"] == pod.netns
    wait_until(pings, 5, "the pod to answer")
    if conf["cniVersion"] >= "0.4.0":
        conf = {**conf, "prevResult": done}
        main("CHECK", conf, pod)
        assert agent.bodies(CHECK)[-1]["addresses"] == ["10.77.0.5"]
    main("DEL", conf, pod)
    assert agent.held == {}
    links = [link["ifname"] for link in json.loads(pod.run("ip -j link").stdout)]
    assert "eth0" not in links
    main("DEL", conf, pod)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("type, fields", [
    ("ptp", {}), ("bridge", {"bridge": "cni9", "isGateway": True})])
def test_a_pod_lives_and_dies(node, fake_agent, main, type, fields, version):
    agent = fake_agent(routes=[{"dst": "0.0.0.0/0", "gw": ""}])
    add_ping_del(main, agent, node.pod("p1"), cni.conf(version, type, **fields),
                 lambda: node.ping("10.77.0.5"))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_macvlan_pod_lives_and_dies(lab, node, fake_agent, main, version):
    probe = node.run("ip link add probe link lo type macvlan", check=False)
    if "Unknown device type" in probe.stderr or "not supported" in probe.stderr:
        pytest.skip("this kernel has no macvlan")
    other = lab.node()
    lab.link(node, other, [], ["10.77.0.1/24"])
    conf = cni.conf(version, "macvlan", master="eth0")
    add_ping_del(main, fake_agent(), node.pod("p1"), conf, lambda: other.ping("10.77.0.5"))


def test_a_second_add_takes_nothing_from_a_live_pod(node, fake_agent, main):
    agent, pod = fake_agent(), node.pod("p1")
    conf = cni.conf("1.0.0", "ptp")
    main("ADD", conf, pod)
    e = failure(main, "ADD", conf, pod)
    assert "already carries" in e.msg
    assert len(agent.held) == 1 and agent.bodies(RELEASE) == []
    assert node.ping("10.77.0.5")
    main("DEL", conf, pod)
    assert agent.held == {}


def test_an_add_that_fails_later_gives_its_address_back(node, fake_agent, main):
    agent, pod = fake_agent(), node.pod("p1")
    pod.run("ip link add eth0 type veth peer name other")
    failure(main, "ADD", cni.conf("1.0.0", "ptp"), pod)
    assert agent.held == {} and len(agent.bodies(RELEASE)) == 1


@pytest.mark.parametrize("version", VERSIONS)
def test_without_an_agent_the_reason_reaches_the_runtime(node, main, version):
    pod, conf = node.pod("p1"), cni.conf(version, "bridge")
    assert "start roostd" in failure(main, "ADD", conf, pod).msg
    main("DEL", conf, pod)
    assert len(list(node.path("/run/roost/spool").iterdir())) == 1

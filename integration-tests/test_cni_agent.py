# SPDX-License-Identifier: Apache-2.0
"""roost and the agent together: pods that answer at once, and leave nothing."""

import json

import pytest

from lab import cni, wait_until
from lab.agent import pool
from lab.cni import failure
from lab.ping import ping
from test_cni_plugin import HOST_LOCAL, conf, host_links, leases, state


@pytest.fixture
def served(agent, etcd):
    """An agent with a pool of each family."""
    pool(etcd, "four", "10.77.0.0/24", cooldownSeconds=0)
    pool(etcd, "six", "fd00:77::/64", cooldownSeconds=0)
    wait_until(lambda: len(agent.api("GET", "/v1/status").body["pools"]) == 2 and
               agent.api("GET", "/v1/ready?network=pods").status == 200, 20, "the pools")
    return agent


@pytest.fixture
def plugin(served, build):
    """plugin(verb, pod, conf=..., program=...): roost on the agent's node."""
    def call(verb, pod, conf=conf(), program=build / "roost", **env):
        return cni.call(served.node, program, verb, conf, netns=pod.netns,
                        path=f"{build}:/usr/lib/cni", **{"container": pod.name, **env})
    return call


def plain(result):
    return [ip["address"].partition("/")[0] for ip in result["ips"]]


def gone(agent, *pods):
    """Until nothing of any pod is left, anywhere."""
    def nothing():
        assert agent.held() == {} and not any(p.links() for p in pods)
        assert [n for n in host_links(agent.node) if n.startswith("roost")] == []
        routes = agent.node.run("ip route show proto 114 scope link").stdout
        return routes == "" and agent.agrees()
    wait_until(nothing, 30, "everything to be gone", errors=AssertionError)


def reaches(pod, address):
    """One echo request from the pod, at once."""
    return pod.run(["ping", "-n", "-c", "1", "-W", "5", address], check=False).returncode == 0


def test_pods_answer_the_moment_they_are_there(served, plugin):
    pods = [served.node.pod(f"p{i}") for i in range(3)]
    results = []
    for pod in pods:
        results.append(plugin("ADD", pod))
        for address in plain(results[-1]):
            assert ping(served.node.socket, address, 5), f"{address} does not answer"
    for address in plain(results[0]):
        assert reaches(pods[1], address) and reaches(pods[2], address)
    for pod, result in zip(pods, results):
        plugin("CHECK", pod, {**conf(), "prevResult": result})
        plugin("DEL", pod)
    gone(served, *pods)


def test_a_del_and_an_add_follow_at_once(served, plugin):
    pod = served.node.pod("p1")
    for i in range(15):
        result = plugin("ADD", pod, container=f"c{i % 2}")
        assert ping(served.node.socket, plain(result)[0], 5)
        plugin("DEL", pod, container=f"c{i % 2}")
    gone(served, pod)


@pytest.mark.parametrize("ipam", [None, HOST_LOCAL])
def test_whatever_fails_the_agent_forgets_it(served, plugin, build, ipam):
    pod, config = served.node.pod("p1"), conf("1.0.0", ipam)
    before = state(pod)
    for n in range(1, 100):
        try:
            result = plugin("ADD", pod, config, build / "roost-faults", ROOST_FAULT=str(n))
            break
        except cni.CniError as e:
            assert e.code == 999
        gone(served, pod)
        assert state(pod) == before and leases(served.node) == []
    assert n > 6 and ping(served.node.socket, plain(result)[0], 5)
    plugin("DEL", pod, config)
    gone(served, pod)
    assert leases(served.node) == []


def test_an_address_that_another_pod_has_is_refused(served, plugin):
    one, two = served.node.pod("p1"), served.node.pod("p2")
    address = plain(plugin("ADD", one, conf()))[0]
    fixed = conf(ipam={"addresses": [{"address": f"{address}/24"}]})
    assert failure(plugin, "ADD", two, fixed).code == 102
    assert two.links() == [] and ping(served.node.socket, address, 5)
    plugin("DEL", one)
    gone(served, one, two)


def test_a_del_without_the_agent_is_made_good_when_it_is_back(served, plugin):
    pod = served.node.pod("p1")
    plugin("ADD", pod)
    served.kill()
    plugin("DEL", pod)
    assert pod.links() == []
    served.start()
    gone(served, pod)
    assert list(served.node.path("/run/roost/spool").iterdir()) == []


def test_several_interfaces_of_a_pod_answer(served, plugin):
    pod = served.node.pod("p1")
    results = {n: plugin("ADD", pod, ifname=n) for n in ("eth0", "net1")}
    for result in results.values():
        for address in plain(result):
            assert ping(served.node.socket, address, 5), f"{address}: {json.dumps(results)}"
    for ifname, result in results.items():
        plugin("CHECK", pod, {**conf(), "prevResult": result}, ifname=ifname)
    for ifname in results:
        plugin("DEL", pod, ifname=ifname)
    gone(served, pod)


def test_a_link_that_no_attach_has_told_of_goes_with_the_del(agents, etcd):
    """The plugin died after it had made the pair: its address is not free while the link is there."""
    pool(etcd)
    agent = agents().start()
    (address,) = agent.assign("3f9c")
    link = "roost96c6b68b65"  # follows from container and interface
    agent.node.ip(f"link add {link} type veth peer name left", f"link set {link} up")
    assert agent.release("3f9c") == [address]
    wait_until(lambda: link not in agent.node.run("ip -o link").stdout, 30, "the link to go")
    wait_until(lambda: not agent.held(), 30, "the address to be free")

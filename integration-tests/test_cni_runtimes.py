# SPDX-License-Identifier: Apache-2.0
"""Real container runtimes run pods through our plugins: podman, containerd's CRI, ctr, a kubelet.

Each pod must reach pods of another node, live through a restart of the agent, publish a
port by the chained portmap, and be gone without trace when it is removed.
"""

import json

import pytest

from lab import containerd, image, podman, wait_until
from lab.cluster import BIN, NETWORK, ROOST, VERSIONS, join
from lab.containerd import Containerd, Cri, Ctr
from lab.podman import Podman
from lab.steady import SteadyPing

RUNTIMES = {
    "podman": Podman,
    "cri": lambda node: Cri(Containerd(node).start()),
    "ctr": lambda node: Ctr(Containerd(node).start()),
}


@pytest.fixture
def runtime():
    """runtime(name, node): a container runtime on a node."""
    def make(name, node):
        missing = podman.missing() if name == "podman" else containerd.missing()
        if missing:
            pytest.skip(missing)
        return RUNTIMES[name](node)
    return make


def fetch(where, address, port=image.PORT):
    """The image's page, from there; None if there is none."""
    done = where.run(["curl", "-sgm", "5", f"http://{address}:{port}/"], check=False)
    return done.stdout if done.returncode == 0 else None


@pytest.mark.parametrize("name", RUNTIMES)
def test_pods_of_two_nodes_reach_each_other(cluster, runtime, name):
    n1, n2 = cluster(2)
    a = runtime(name, n1.node).start("a")
    b = runtime(name, n2.node).start("b")
    join(n1, n2)
    assert n1.held()[a.address] == a.id and n2.held()[b.address] == b.id
    wait_until(lambda: fetch(a, b.address) == fetch(b, a.address) == image.PAGE, 20, "the pages")

    ping = SteadyPing(a, b.address)
    for agent in n1, n2:
        agent.restart()
        ping.wait_more()
    assert ping.stop() == []

    a.remove()
    assert not n2.node.ping(a.address, 0.2)
    b.remove()
    for node in n1, n2:
        node.wait_no_trace()
        node.wait_agreed()


@pytest.mark.parametrize("name", ["podman", "cri"])
def test_a_published_port_leads_to_the_pod(cluster, runtime, name):
    n1, n2 = cluster(2)
    a = runtime(name, n1.node).start("a", publish={18080: image.PORT})
    wait_until(lambda: fetch(n2.node, n1.address, 18080) == image.PAGE, 20, "the page by its port")
    # The host itself comes from its loopback; portmap asks the kernel to allow that.
    assert fetch(n1.node, n1.address, 18080) == image.PAGE
    n1.restart()
    assert fetch(n2.node, n1.address, 18080) == image.PAGE
    a.remove()
    assert fetch(n2.node, n1.address, 18080) is None
    n1.wait_no_trace()


def test_podman_stops_and_starts_the_same_container(cluster, runtime):
    [n1] = cluster()
    c = runtime("podman", n1.node).start("a")
    for _ in range(3):
        c.stop()
        # At once: the link of the same name is being destroyed.
        c.start()
        assert c.run("ip -o -4 addr show dev eth0").stdout.split()[3] == f"{c.address}/32"
        assert n1.held() == {c.address: c.id}
        assert len(n1.pod_links()) == 1 and set(n1.pod_routes()) == {c.address}
        wait_until(lambda: n1.node.ping(c.address), 10, "the container to answer")
    c.restart()
    wait_until(lambda: n1.node.ping(c.address), 10, "the container to answer")
    c.remove()
    n1.wait_no_trace()


def test_pods_come_and_go_while_the_agent_is_away(cluster, runtime):
    """A pod can be removed without an agent; none can be started, and nothing is left of the try."""
    [n1] = cluster()
    there = runtime("podman", n1.node)
    a = there.start("a")
    n1.kill()
    a.remove()
    with pytest.raises(AssertionError, match="start roostd"):
        there.start("b")
    there("rm -f b", check=False)
    n1.start()
    n1.wait_no_trace()
    b = there.start("b")
    wait_until(lambda: n1.node.ping(b.address), 10, "the pod to answer")
    b.remove()
    n1.wait_no_trace()


def test_a_single_plugin_configuration_serves_containerd(cluster, runtime):
    [n1] = cluster()
    n1.node.run("rm /etc/cni/net.d/10-roost.conflist")
    n1.node.write("/etc/cni/net.d/10-roost.conf", json.dumps({**VERSIONS, "name": NETWORK, **ROOST}))
    pod = runtime("cri", n1.node).start("a", namespace="prod")
    [told] = n1.list()["attachments"]
    assert (told["namespace"], told["pod"]) == ("prod", "a")
    wait_until(lambda: fetch(n1.node, pod.address) == image.PAGE, 20, "the page")
    pod.remove()
    n1.wait_no_trace()


def test_the_kubelets_way(cluster):
    """Environment to the letter, the namespace by its process, plugins in two folders; and the
    command by which the kubelet then learns the pod's address."""
    [n1] = cluster()
    node = n1.node
    # The main plugin is in the first folder, its IPAM plugin in the second.
    node.run("mkdir -p /opt/roost/bin")
    node.run(f"mv {BIN}/roost-ipam /opt/roost/bin/")
    pause = node.spawn("pause", "unshare --net sleep 1000")
    wait_until(lambda: node.run(["readlink", f"/proc/{pause.pid}/ns/net"]).stdout !=
               node.run("readlink /proc/self/ns/net").stdout, 10, "the pod's namespace")
    id = "df3c4ad4098f632c764e8d6013b08c37d22d92ca981da45d42ea82bbf6189106"
    env = dict(netns=f"/proc/{pause.pid}/ns/net", path=f"{BIN}:/opt/roost/bin",
               args="IgnoreUnknown=1;K8S_POD_NAMESPACE=default;"
                    f"K8S_POD_NAME=nginx1-137666357-jdgyu;K8S_POD_INFRA_CONTAINER_ID={id}")
    result = n1.cni("ADD", id, **env)
    [ip] = result["ips"]
    said = node.run(["nsenter", f"--net=/proc/{pause.pid}/ns/net", "-F", "--", "ip", "-o", "-4",
                     "addr", "show", "dev", "eth0", "scope", "global"]).stdout.split()
    assert said[1:4] == ["eth0", "inet", ip["address"]]
    [told] = n1.list()["attachments"]
    assert (told["namespace"], told["pod"]) == ("default", "nginx1-137666357-jdgyu")
    assert node.ping(ip["address"].split("/")[0])
    n1.cni("CHECK", id, conf={"prevResult": result}, **env)
    pause.kill()
    n1.cni("DEL", id, **{**env, "netns": ""})
    n1.wait_no_trace()

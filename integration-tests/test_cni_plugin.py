# SPDX-License-Identifier: Apache-2.0
"""roost by itself: what it makes in a pod and asks of the agent. lab/fake_agent.py plays the agent."""

import json
import pathlib
import subprocess

import pytest

from lab import cni, wait_until
from lab.cni import failure

pytestmark = pytest.mark.quick

DEBIAN = pathlib.Path("/usr/lib/cni")
ASSIGN, RELEASE = "/v1/ipam/assign", "/v1/ipam/release"
ATTACH, DETACH, CHECK = "/v1/attach", "/v1/detach", "/v1/check"
HOST_MAC, GW4, GW6 = "ee:ee:ee:ee:ee:ee", "169.254.1.1", "fe80::ecee:eeff:feee:eeee"
DUAL = ["10.77.0.5", "fd00:77::5"]
HOST_LOCAL = {"type": "host-local", "ranges": [[{"subnet": "10.9.0.0/24"}]]}


def conf(version="1.1.0", ipam=None, **fields):
    return cni.conf(version, "roost", ipam, **fields)


def host_links(node):
    return [link["ifname"] for link in json.loads(node.run("ip -j link").stdout)
            if link["ifname"] != "lo"]


def leases(node):
    """Addresses that host-local has given out."""
    folder = node.path("/var/lib/cni/networks/pods")
    return sorted(p.name for p in folder.glob("10.*")) if folder.exists() else []


def shim(node, name, text, folder="/opt/shim"):
    """A plugin that is a shell script on the node; returns its folder."""
    node.write(f"{folder}/{name}", f"#!/bin/sh\n{text}\n", 0o755)
    return folder


def addresses(pod, ifname="eth0"):
    return [(a["local"], a["prefixlen"]) for link in pod.json("addr", "show", "dev", ifname)
            for a in link["addr_info"] if a["scope"] == "global"]


def routes(pod, family="-4", *what):
    return sorted((r["dst"], r.get("gateway"), r["dev"])
                  for r in pod.json(family, "route", "show", *what)
                  if r["dst"] != "fe80::/64" and r.get("protocol") != "kernel")


def state(pod):
    """All of a pod that nobody but a plugin changes."""
    links = [(link["ifname"], link["address"], addresses(pod, link["ifname"]))
             for link in pod.json("addr")]
    return (links, [routes(pod, f, "table", "all") for f in ("-4", "-6")],
            [pod.json(f, "rule") for f in ("-4", "-6")])


# --- the program ---------------------------------------------------------------------------------


@pytest.mark.plain("it is linked dynamically")
def test_it_is_small_and_static(build):
    said = subprocess.run(["file", build / "roost"], capture_output=True, text=True).stdout
    assert "statically linked" in said
    assert (build / "roost").stat().st_size < 2 * 1024 * 1024


def test_the_product_has_no_faults_built_in(build):
    assert b"ROOST_FAULT" not in (build / "roost").read_bytes()
    assert b"ROOST_FAULT" in (build / "roost-faults").read_bytes()


# --- ADD -----------------------------------------------------------------------------------------


def test_the_agent_is_told_all_it_needs(node, fake_agent, roost):
    a, pod = fake_agent(mtu=1400), node.pod("p1")
    done = roost("ADD", conf(routeLocalnet=True), pod, args="IgnoreUnknown=1;K8S_POD_UID=1f-2e;"
                 "K8S_POD_NAMESPACE=prod;K8S_POD_NAME=web-1;K8S_POD_INFRA_CONTAINER_ID=c1")
    link, eth0 = done["interfaces"]
    key = {"network": "pods", "container": "c1", "interface": "eth0"}
    who = {"netns": pod.netns, "namespace": "prod", "pod": "web-1", "uid": "1f-2e"}
    assert a.requests == [(ASSIGN, {**key, **who}), (ATTACH, {
        **key, **who, "link": link["name"], "mac": eth0["mac"], "addresses": ["10.77.0.5"],
        "ipam": "roost-ipam", "routeLocalnet": True})]
    assert host_links(node) == [link["name"]] and len(link["name"]) == 15
    roost("DEL", conf(), pod)
    assert a.requests[2:] == [(DETACH, key)]


@pytest.mark.parametrize("given", [DUAL[:1], DUAL[1:], DUAL])
def test_the_pod_has_what_it_needs_at_once(node, fake_agent, roost, given):
    fake_agent(addresses=given, mtu=1400)
    pod = node.pod("p1")
    # What container runtimes do to a namespace.
    pod.run(["sh", "-c", "echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6"])
    done = roost("ADD", conf(), pod)
    link, eth0 = done["interfaces"]
    seen = pod.json("-d", "link", "show", "dev", "eth0")[0]
    assert (seen["address"], seen["mtu"], "UP" in seen["flags"]) == (eth0["mac"], 1400, True)
    assert (seen["num_tx_queues"], seen["num_rx_queues"]) == (1, 1)
    assert int(eth0["mac"][:2], 16) & 3 == 2, "locally administered, of one device"
    assert addresses(pod) == [(a, 128 if ":" in a else 32) for a in given]
    assert [(ip["address"], ip["interface"]) for ip in done["ips"]] == \
        [(a + ("/128" if ":" in a else "/32"), 1) for a in given]
    if ":" not in given[0]:
        assert routes(pod) == [(GW4, None, "eth0"), ("default", GW4, "eth0")]
    if ":" in given[-1]:
        assert routes(pod, "-6") == [("default", GW6, "eth0"), (GW6, None, "eth0")]
        said = pod.run("cat /proc/sys/net/ipv6/conf/eth0/accept_ra "
                       "/proc/sys/net/ipv6/conf/eth0/accept_dad").stdout
        assert said.split() == ["0", "0"]
    else:
        assert pod.run("cat /proc/sys/net/ipv6/conf/eth0/disable_ipv6").stdout.strip() == "1"
    neighbours = {n["dst"]: (n["lladdr"], n["state"]) for n in pod.json("neigh")}
    gateways = {GW6 if ":" in a else GW4 for a in given}
    assert neighbours == {g: (HOST_MAC, ["PERMANENT"]) for g in gateways}
    host = json.loads(node.run("ip -j -d link show dev " + link["name"]).stdout)[0]
    assert (host["address"], host["mtu"], "UP" in host["flags"]) == (HOST_MAC, 1400, True)
    assert host["num_tx_queues"] == 1
    roost("CHECK", {**conf(), "prevResult": done}, pod)
    roost("DEL", conf(), pod)
    assert pod.links() == [] and host_links(node) == []


def test_kubelets_question_is_answered(node, fake_agent, roost):
    fake_agent()
    pod = node.pod("p1")
    roost("ADD", conf("0.2.0"), pod)
    said = pod.run("ip -o -4 addr show dev eth0 scope global").stdout
    assert "inet 10.77.0.5/32" in said


@pytest.mark.parametrize("fields, agents_mtu, mtu", [
    ({}, 9000, 9000), ({"mtu": 1280}, 9000, 1280), ({"mtu": 0}, 1450, 1450), ({}, 0, 1500)])
@pytest.mark.parametrize("ipam", [None, HOST_LOCAL])
def test_the_mtu_is_the_networks_or_the_nodes(node, fake_agent, roost, ipam, fields, agents_mtu,
                                              mtu):
    fake_agent(mtu=agents_mtu)
    pod = node.pod("p1")
    roost("ADD", conf("1.0.0", ipam, **fields), pod)
    assert pod.json("link", "show", "dev", "eth0")[0]["mtu"] == mtu


@pytest.mark.parametrize("fields, args", [
    ({"runtimeConfig": {"mac": "02:11:22:33:44:55"}}, ""), ({}, "MAC=02:11:22:33:44:55")])
def test_a_requested_mac_is_used(node, fake_agent, roost, fields, args):
    a, pod = fake_agent(), node.pod("p1")
    done = roost("ADD", conf(**fields), pod, args=args)
    assert done["interfaces"][1]["mac"] == "02:11:22:33:44:55"
    assert pod.json("link", "show", "dev", "eth0")[0]["address"] == "02:11:22:33:44:55"
    assert a.bodies(ATTACH)[0]["mac"] == "02:11:22:33:44:55"


def test_routes_of_the_pool_take_the_place_of_the_default(node, fake_agent, roost):
    fake_agent(routes=[{"dst": "10.0.0.0/8", "gw": "10.77.0.1"}])
    pod = node.pod("p1")
    done = roost("ADD", conf(), pod)
    assert routes(pod) == [("10.0.0.0/8", GW4, "eth0"), (GW4, None, "eth0")]
    assert done["routes"] == [{"dst": "10.0.0.0/8", "gw": GW4}]
    roost("CHECK", {**conf(), "prevResult": done}, pod)


def test_a_fixed_address_is_attached_under_its_own_name(node, fake_agent, roost):
    a, pod = fake_agent(), node.pod("p1")
    config = conf(ipam={"addresses": [{"address": "10.9.0.5/24"}]})
    done = roost("ADD", config, pod)
    assert [p for p, _ in a.requests] == ["/v1/node", ATTACH]
    assert a.bodies(ATTACH)[0]["ipam"] == "static" and addresses(pod) == [("10.9.0.5", 32)]
    roost("CHECK", {**config, "prevResult": done}, pod)
    roost("DEL", config, pod)
    e = failure(roost, "ADD", conf(ipam={"addresses": [{"address": "10.9.0.5/24"}], "pool": "x"}),
                pod)
    assert e.code == 7 and a.held == {} and pod.links() == []


# --- several interfaces --------------------------------------------------------------------------


def test_a_further_interface_answers_where_it_was_asked(node, fake_agent, roost):
    a, pod = fake_agent(addresses=DUAL), node.pod("p1")
    node.ip("addr add 10.99.0.1/32 dev lo")
    ends = {}
    for ifname, n in ("eth0", 5), ("net1", 6), ("net2", 7):
        a.addresses = [f"10.77.0.{n}", f"fd00:77::{n}"]
        done = roost("ADD", conf(), pod, ifname=ifname)
        link = done["interfaces"][0]["name"]
        ends[ifname] = done
        # The agent's part. With it, what comes back by another interface is dropped.
        node.run(f"ip route add 10.77.0.{n} dev {link}")
        node.sysctl(f"net.ipv4.conf.{link}.rp_filter", 1)
    for n in 5, 6, 7:
        assert node.ping(f"10.77.0.{n}", 5)
    assert routes(pod) == [(GW4, None, "eth0"), ("default", GW4, "eth0")]
    index = pod.json("link", "show", "dev", "net2")[0]["ifindex"]
    for family in "-4", "-6":
        table = routes(pod, family, "table", str(100 + index))
        assert ("default", GW4 if family == "-4" else GW6, "net2") in table
    for ifname, done in ends.items():
        roost("CHECK", {**conf(), "prevResult": done}, pod, ifname=ifname)
    # A rule outlives its interface, and does no harm to the next one.
    for _ in range(2):
        roost("DEL", conf(), pod, ifname="net2")
        ends["net2"] = roost("ADD", conf(), pod, ifname="net2")
        rules = [r for r in pod.json("rule") if r["src"] == "10.77.0.7"]
        index = pod.json("link", "show", "dev", "net2")[0]["ifindex"]
        assert [r["table"] for r in rules] == [str(100 + index)]


# --- what is in the way --------------------------------------------------------------------------


def test_a_repeated_add_changes_nothing(node, fake_agent, roost):
    a, pod = fake_agent(), node.pod("p1")
    roost("ADD", conf(), pod)
    before = state(pod)
    n = len(a.requests)
    e = failure(roost, "ADD", conf(), pod)
    assert e.code == 101 and "eth0 already exists" in e.msg
    assert len(a.requests) == n, "the agent was asked"
    assert state(pod) == before


def test_a_renamed_interface_is_still_the_pods(node, fake_agent, roost):
    a, pod = fake_agent(), node.pod("p1")
    done = roost("ADD", conf(), pod)
    pod.run(["ip", "link", "set", "eth0", "down"])
    pod.run(["ip", "link", "set", "eth0", "name", "other"])
    e = failure(roost, "ADD", conf(), pod)
    assert e.code == 101 and "under another name" in e.msg
    assert host_links(node) == [done["interfaces"][0]["name"]] and pod.links() == ["other"]
    assert len(a.held) == 1 and a.bodies(RELEASE) == []


def test_a_stale_link_is_removed(node, fake_agent, roost):
    fake_agent()
    old, new = node.pod("old"), node.pod("new")
    link = roost("ADD", conf(), old)["interfaces"][0]["name"]
    roost("ADD", conf(), new)
    assert host_links(node) == [link] and new.links() == ["eth0"] and old.links() == []


@pytest.mark.parametrize("group", [0x726f6f73, 0x726f6f74])
def test_a_doomed_link_is_waited_for(node, fake_agent, roost, build, group):
    a = fake_agent()
    old, new = node.pod("old"), node.pod("new")
    link = roost("ADD", conf(), old)["interfaces"][0]["name"]
    node.run(f"ip link set {link} group {group}")
    env = cni.environment("ADD", netns=new.netns)
    add = node.popen([build / "roost"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    add.stdin.write(json.dumps(conf()).encode())
    add.stdin.close()
    wait_until(lambda: len(a.bodies(ASSIGN)) == 2, 10, "the second ADD to get its address")
    assert add.poll() is None and new.links() == []
    node.run(f"ip link delete {link}")
    assert add.wait(10) == 0 and json.loads(add.stdout.read())["ips"]
    assert new.links() == ["eth0"]


def naps(popen):
    """How often a process went to sleep by itself."""
    status = pathlib.Path(f"/proc/{popen.pid}/status").read_text()
    return int(status.partition("\nvoluntary_ctxt_switches:")[2].split()[0])


@pytest.mark.parametrize("container", ["c1", "c2"])
def test_an_interface_that_goes_is_waited_for(node, fake_agent, roost, build, container):
    """A DEL has left its link to the agent, and another ADD comes for the same namespace."""
    a, pod = fake_agent(), node.pod("p1")
    link = roost("ADD", conf(), pod)["interfaces"][0]["name"]
    node.run(f"ip link set {link} group {0x726f6f73}")
    env = cni.environment("ADD", netns=pod.netns, container=container)
    add = node.popen([build / "roost"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    add.stdin.write(json.dumps(conf()).encode())
    add.stdin.close()
    wait_until(lambda: naps(add) > 50, 30, "it to look again and again")
    assert len(a.bodies(ASSIGN)) == 1
    node.run(f"ip link delete {link}")
    assert add.wait(10) == 0 and json.loads(add.stdout.read())["ips"]
    assert pod.links() == ["eth0"]


# --- roll-back -----------------------------------------------------------------------------------


@pytest.mark.parametrize("ipam, ifname", [(None, "eth0"), (None, "net1"), (HOST_LOCAL, "eth0")])
def test_whatever_fails_nothing_is_left(node, fake_agent, roost, build, ipam, ifname):
    a, pod = fake_agent(addresses=DUAL), node.pod("p1")
    config = conf("1.0.0", ipam)
    before = []
    if ifname != "eth0":
        roost("ADD", config, pod)
        before = host_links(node)
        a.addresses = ["10.77.0.6", "fd00:77::6"]
    was = state(pod)
    held, attached, steps = dict(a.held), dict(a.attached), 0
    for n in range(1, 100):
        try:
            roost("ADD", config, pod, program=build / "roost-faults", ifname=ifname,
                  ROOST_FAULT=str(n))
            break
        except cni.CniError as e:
            assert e.code == 999 and e.msg == f"fault {n}, as the test wanted it"
        steps += 1
        assert host_links(node) == before and a.held == held and a.attached == attached
        assert leases(node) == []
        assert state(pod) == was
    assert steps >= 6 and len(pod.links()) == len(before) + 1
    roost("DEL", config, pod, ifname=ifname)
    assert leases(node) == []


@pytest.mark.parametrize("status, code", [(409, 104), (503, 11), (500, 5)])
def test_an_agent_that_refuses_to_attach_gets_its_address_back(node, fake_agent, roost, status,
                                                               code):
    def answer(path, body):
        if path == ATTACH:
            return status, {"code": code, "error": "a foreign route has the same destination"}
        return a.serve(path, body)
    a, pod = fake_agent(answer), node.pod("p1")
    e = failure(roost, "ADD", conf(), pod)
    assert e.code == code and "foreign route" in e.msg
    assert a.held == {} and pod.links() == [] and host_links(node) == []
    assert [p for p, _ in a.requests] == [ASSIGN, ATTACH, RELEASE]


def test_an_agent_that_dies_while_it_attaches_is_told_later(node, fake_agent, roost):
    def answer(path, body):
        return b"" if path == ATTACH else a.serve(path, body)
    a, pod = fake_agent(answer), node.pod("p1")
    assert failure(roost, "ADD", conf(), pod).code == 11
    assert a.held == {} and pod.links() == [] and host_links(node) == []
    assert [p for p, _ in a.requests] == [ASSIGN, ATTACH, DETACH]


def test_an_address_that_was_there_before_stays(node, fake_agent, roost):
    def answer(path, body):
        return (500, {"code": 5, "error": "x"}) if path == ATTACH else a.serve(path, body)
    a, pod = fake_agent(answer), node.pod("p1")
    a.held["pods", "c1", "eth0"] = ["10.77.0.5"]
    failure(roost, "ADD", conf(), pod)
    assert a.held == {("pods", "c1", "eth0"): ["10.77.0.5"]} and host_links(node) == []


def test_a_result_that_the_version_cannot_say_costs_nothing(node, fake_agent, roost):
    a, pod = fake_agent(addresses=["10.77.0.5", "10.77.0.6"]), node.pod("p1")
    assert failure(roost, "ADD", conf("0.2.0"), pod).code == 7
    assert a.held == {} and a.bodies(ATTACH) == [] and pod.links() == []


@pytest.mark.limit(60)
@pytest.mark.slow(10)
def test_a_silent_agent_costs_an_add_ten_seconds(node, fake_agent, roost):
    a, pod = fake_agent(lambda path, body: None), node.pod("p1")
    e = failure(roost, "ADD", conf(), pod)
    assert e.code == 11 and "did not give the pod its addresses within" in e.msg and pod.links() == []
    a.close()
    assert len(a.bodies(ASSIGN)) == 1

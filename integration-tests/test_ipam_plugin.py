# SPDX-License-Identifier: Apache-2.0
"""roost-ipam by itself: what it makes of its input. lab/fake_agent.py plays the agent."""

import json
import subprocess

import pytest

from lab import cni
from lab.cni import failure

pytestmark = pytest.mark.quick

VERSIONS = ["0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"]
ASSIGN, RELEASE = "/v1/ipam/assign", "/v1/ipam/release"


def conf(version="1.1.0", ipam=None, **fields):
    return cni.conf(version, "bridge", ipam, **fields)


# --- the program ---------------------------------------------------------------------------------


@pytest.mark.plain("it is linked dynamically")
def test_it_is_small_and_static(build):
    program = build / "roost-ipam"
    assert "statically linked" in subprocess.run(["file", program], capture_output=True,
                                                 text=True).stdout
    assert program.stat().st_size < 1.5 * 1024 * 1024


def test_version_needs_no_input(build):
    """Stdin stays open: a plugin that reads it would hang."""
    with subprocess.Popen([build / "roost-ipam"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          env={"CNI_COMMAND": "VERSION"}) as p:
        assert p.wait(10) == 0
        assert json.loads(p.stdout.read()) == {"cniVersion": "1.1.0",
                                               "supportedVersions": VERSIONS}


def test_podmans_probe_is_answered(ipam):
    said = ipam("VERSION", {"cniVersion": "1.0.0"}, container="", ifname="dummy", netns="dummy",
                path="dummy")
    assert said["supportedVersions"] == VERSIONS


@pytest.mark.parametrize("env", [{}, {"CNI_COMMAND": ""}])
def test_typed_by_hand_it_says_what_it_is(build, env):
    done = subprocess.run([build / "roost-ipam"], env=env, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stdout) == (0, "")
    assert "CNI plugin" in done.stderr and "0.1.0, 0.2.0" in done.stderr


# --- ADD -----------------------------------------------------------------------------------------


DUAL = {"addresses": ["10.77.0.5", "fd00:77::5"], "routes": [{"dst": "0.0.0.0/0", "gw": ""}]}
OLD = {"ip4": {"ip": "10.77.0.5/24", "gateway": "10.77.0.1", "routes": [{"dst": "0.0.0.0/0"}]},
       "ip6": {"ip": "fd00:77::5/64"}}
IPS = [{"address": "10.77.0.5/24", "gateway": "10.77.0.1"}, {"address": "fd00:77::5/64"}]
NEW = {"ips": IPS, "routes": [{"dst": "0.0.0.0/0"}]}
MIDDLE = {**NEW, "ips": [{"version": "4", **IPS[0]}, {"version": "6", **IPS[1]}]}


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_gets_its_own_shape(fake_agent, ipam, version):
    fake_agent(**DUAL)
    want = OLD if version < "0.3" else MIDDLE if version < "1" else NEW
    assert ipam("ADD", conf(version)) == {"cniVersion": version, **want}
    assert ipam("DEL", conf(version)) is None


def test_containerds_request_reaches_the_agent(fake_agent, ipam):
    a = fake_agent()
    config = conf(runtimeConfig={
        "IPs": ["10.77.0.9/24"], "dns": {"Servers": ["10.0.0.1"]},
        "portMappings": [{"HostPort": 80, "ContainerPort": 80, "Protocol": "tcp", "HostIP": ""}],
        "bandwidth": {"IngressRate": 1, "IngressBurst": 4294967295},
        "io.kubernetes.cri.pod-annotations": {"roost.io/pool": "web", "a": "b"}},
        capabilities={"ips": True, "io.kubernetes.cri.pod-annotations": True})
    ipam("ADD", config, netns="/run/netns/x",
         args="K8S_POD_UID=1f-2e;IgnoreUnknown=1;K8S_POD_NAMESPACE=prod;"
              "K8S_POD_INFRA_CONTAINER_ID=c1;K8S_POD_NAME=web-1")
    assert a.requests == [(ASSIGN, {
        "network": "pods", "container": "c1", "interface": "eth0", "netns": "/run/netns/x",
        "namespace": "prod", "pod": "web-1", "uid": "1f-2e", "addresses": ["10.77.0.9"],
        "pools": ["web"]})]


def test_podmans_request_reaches_the_agent(fake_agent, ipam):
    a = fake_agent()
    ipam("ADD", conf(), args="IgnoreUnknown=1;K8S_POD_NAME=box;IP=10.77.0.9;MAC=02:00:00:00:00:09")
    assert a.requests == [(ASSIGN, {
        "network": "pods", "container": "c1", "interface": "eth0", "netns": "/run/netns/none",
        "pod": "box", "addresses": ["10.77.0.9"]})]


def test_names_of_fields_may_have_any_case(fake_agent, ipam):
    a = fake_agent()
    done = ipam("ADD", {"CNIVERSION": "1.0.0", "Name": "pods", "IPAM": {
        "Type": "roost-ipam", "Pool": "web", "Gateway": "10.77.0.254",
        "Routes": [{"Dst": "10.0.0.0/8", "GW": "10.77.0.3"}]}})
    assert a.requests[0][1]["pools"] == ["web"]
    assert done["ips"] == [{"address": "10.77.0.5/24", "gateway": "10.77.0.254"}]
    assert done["routes"] == [{"dst": "10.0.0.0/8", "gw": "10.77.0.3"}]


WHEREABOUTS = {
    "range": "10.5.3.225/16", "range_start": "10.5.0.10", "range_end": "10.5.200.0",
    "exclude": ["10.5.1.0/24"], "ipRanges": [{"range": "fd00:5::10-fd00:5::20/64"}],
    "gateway": "10.5.0.1", "routes": [{"dst": "0.0.0.0/0", "gw": "10.5.0.1"}],
    "dns": {"nameservers": ["10.0.0.53"]}, "network_name": "storage", "node_slice_size": "/22",
    "datastore": "etcd", "etcd_host": "h", "etcd_password": "s3cret", "log_file": "/tmp/x",
    "leader_lease_duration": 1500, "enable_overlapping_ranges": False, "sleep_for_race": 0,
    "kubernetes": {"kubeconfig": "/x"}, "configuration_path": "/x"}


def test_a_whereabouts_configuration_is_understood(fake_agent, ipam, node, build):
    a = fake_agent(addresses=["10.5.0.10", "fd00:5::10"], gateway="")
    done = ipam("ADD", conf(ipam=WHEREABOUTS))
    assert a.requests[0][1]["ranges"] == [
        {"range": "10.5.0.0/16", "start": "10.5.0.10", "end": "10.5.200.0",
         "exclude": ["10.5.1.0/24"], "network": "storage", "sliceSize": 22, "gateway": "10.5.0.1"},
        {"range": "fd00:5::/64", "start": "fd00:5::10", "end": "fd00:5::20", "network": "storage"}]
    assert done == {"cniVersion": "1.1.0", "dns": {"nameservers": ["10.0.0.53"]},
                    "ips": [{"address": "10.5.0.10/24", "gateway": "10.5.0.1"},
                            {"address": "fd00:5::10/64"}],
                    "routes": [{"dst": "0.0.0.0/0", "gw": "10.5.0.1"}]}


@pytest.mark.parametrize("env, level, lines", [({}, "info", 0), ({"ROOST_DEBUG": "0"}, "error", 0),
                                               ({"ROOST_DEBUG": "1"}, "", 1), ({}, "debug", 1)])
def test_ignored_fields_are_one_line_and_only_when_asked(fake_agent, node, build, env, level, lines):
    fake_agent()
    done = node.run([build / "roost-ipam"], env={**cni.environment("ADD"), **env},
                    input=json.dumps(conf(ipam={**WHEREABOUTS, "log_level": level})))
    assert done.stderr.count("\n") == lines and "s3cret" not in done.stderr
    assert lines == 0 or "etcd_password" in done.stderr


def test_fixed_addresses_need_no_agent(ipam):
    config = conf(ipam={"addresses": [{"address": "10.9.0.5/24", "gateway": "10.9.0.1"}]})
    done = ipam("ADD", config)
    assert done["ips"] == [{"address": "10.9.0.5/24", "gateway": "10.9.0.1"}]
    ipam("CHECK", {**config, "prevResult": done})


def test_a_result_that_the_version_cannot_say_is_given_back(fake_agent, ipam):
    a = fake_agent(addresses=["10.77.0.5", "10.77.0.6"])
    assert failure(ipam, "ADD", conf("0.2.0")).code == 7
    assert [p for p, _ in a.requests] == [ASSIGN, RELEASE] and a.held == {}
    assert len(ipam("ADD", conf("0.3.0"))["ips"]) == 2


# --- a repeated ADD ------------------------------------------------------------------------------


def test_a_repeated_add_gets_the_same_addresses(fake_agent, ipam, node):
    a, pod = fake_agent(), node.pod("p1")
    first = ipam("ADD", conf(), netns=pod.netns)
    assert ipam("ADD", conf(), netns=pod.netns) == first
    assert ipam("ADD", conf(), netns="/run/netns/gone") == first
    assert ipam("ADD", conf(), netns="/etc/hosts") == first  # a path that is no namespace
    assert a.bodies(RELEASE) == []


def test_a_live_pod_is_not_given_its_addresses_again(fake_agent, ipam, node):
    a, pod = fake_agent(**DUAL), node.pod("p1")
    ipam("ADD", conf(), netns=pod.netns)
    pod.run("ip link add eth0 type veth peer name other")
    pod.run("ip addr add fd00:77::5/64 dev eth0")
    e = failure(ipam, "ADD", conf(), netns=pod.netns)
    assert e.code == 101 and "eth0" in e.msg
    assert a.bodies(RELEASE) == [] and len(a.held) == 1
    # The same addresses on another interface, or others on this one, prove nothing.
    ipam("ADD", conf(), netns=pod.netns, ifname="eth1")
    assert ipam("ADD", conf(), netns=pod.netns, ifname="eth1")
    pod.run("ip addr flush dev eth0")
    pod.run("ip addr add 10.77.0.6/24 dev eth0")
    assert ipam("ADD", conf(), netns=pod.netns)


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize("env, text, code", [
    # in the order of the reference library: wrong id, missing, JSON, name, version
    ({"CNI_CONTAINERID": "a/b", "CNI_NETNS": ""}, "", 4),
    ({"CNI_IFNAME": "0123456789abcdef"}, "", 4),
    ({"CNI_NETNS": "", "CNI_IFNAME": ""}, "", 4),
    ({"CNI_COMMAND": "add"}, "", 4),
    ({}, "", 6),
    ({}, "[]", 6),
    ({}, '{"cniVersion":"1.0.0","name":"x"', 6),
    ({}, '{"cniVersion":"1.0.0","name":"x"} x', 6),
    ({}, '{"cniVersion":1,"name":""}', 6),
    ({}, "null", 7),
    ({}, '{"cniVersion":"abc"}', 7),
    ({}, '{"cniVersion":"1.0.0","name":"a/b"}', 7),
    ({}, '{"cniVersion":"abc","name":"x"}', 1),
    ({}, '{"cniVersion":"1.2.0","name":"x"}', 1),
    ({"CNI_COMMAND": "CHECK"}, '{"cniVersion":"abc","name":"x"}', 6),
    ({"CNI_COMMAND": "CHECK"}, '{"cniVersion":"0.3.1","name":"x"}', 1),
    ({"CNI_COMMAND": "GC"}, '{"cniVersion":"1.0.0","name":"x"}', 1),
    ({"CNI_COMMAND": "STATUS"}, '{"name":"x"}', 1),
    ({}, '{"cniVersion":"1.0.0","name":"x","socket":"run"}', 7),
    ({}, '{"cniVersion":"1.0.0","name":"x","ipam":{"range":"10.5.0.0"}}', 7),
    ({}, '{"cniVersion":"1.0.0","name":"x","ipam":{"range":"10.5.0.0/16","pool":"p"}}', 7),
    ({}, '{"cniVersion":"1.0.0","name":"x","runtimeConfig":{"ips":["x"]}}', 7),
    ({"CNI_ARGS": "IP=x"}, '{"cniVersion":"1.0.0","name":"x"}', 4),
])
def test_bad_input_has_its_code(fake_agent, node, build, env, text, code):
    a = fake_agent()
    done = node.run([build / "roost-ipam"], env={**cni.environment("ADD"), **env}, input=text,
                    check=False)
    error = json.loads(done.stdout)
    assert (done.returncode, error["code"], done.stderr) == (1, code, "")
    assert error["cniVersion"] in VERSIONS and set(error) == {"cniVersion", "code", "msg", "details"}
    assert a.requests == []


def test_stdin_has_an_end(ipam):
    e = failure(ipam, "ADD", '{"name":"x"}' + " " * (1 << 20))
    assert e.code == 6 and "1048576 bytes" in e.msg


def test_stdin_that_cannot_be_read_has_its_code(build, tmp_path):
    with open(tmp_path / "out", "wb") as write_only:
        done = subprocess.run([build / "roost-ipam"], env=cni.environment("ADD"), text=True,
                              stdin=write_only, stdout=subprocess.PIPE)
    assert json.loads(done.stdout)["code"] == 5


def test_a_del_looks_at_nothing_that_only_an_add_needs(fake_agent, ipam):
    a = fake_agent()
    ipam("DEL", conf(ipam={"range": "junk", "pool": 5}, runtimeConfig=5, prevResult="x"), netns="",
         args="IP=junk")
    assert a.requests == [(RELEASE, {"network": "pods", "container": "c1", "interface": "eth0"})]

# SPDX-License-Identifier: Apache-2.0
"""roost-install on folders, and the manifests that call it."""

import json
import os
import pathlib
import re
import subprocess
import threading

import pytest
import yaml

from lab import containerd, wait_until
from lab.agent import Agent, pool

pytestmark = pytest.mark.quick

ROOT = pathlib.Path(__file__).resolve().parent.parent
INSTALL = ROOT / "cni/roost-install"
CONFLIST = ROOT / "systemd/10-roost.conflist"
MANIFESTS = ROOT / "docs/kubernetes"
IMAGE = "localhost/roost:VERSION"


ALL = ["0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"]


def plugin(path, versions=ALL):
    """A stand-in that knows these versions and nothing else."""
    path.parent.mkdir(parents=True, exist_ok=True)
    answer = json.dumps({"cniVersion": versions[-1], "supportedVersions": versions})
    path.with_suffix(".new").write_text(f"#!/bin/sh\n[ \"$CNI_COMMAND\" = VERSION ] && echo '{answer}'\n")
    path.with_suffix(".new").chmod(0o755)
    path.with_suffix(".new").rename(path)
    return path


class Host:
    """Folders as they are on a host."""

    def __init__(self, top, build):
        self.bin, self.conf, self.run = top / "bin", top / "net.d", top / "run"
        self.portmap, self.loopback = plugin(top / "own/portmap"), plugin(top / "own/loopback")
        (self.run / "attachments").mkdir(parents=True)
        self.flags = ["--bin-dir", self.bin, "--conf-dir", self.conf, "--run-dir", self.run,
                      "--from", build, "--conflist", CONFLIST, f"--also={self.loopback}",
                      f"--also={self.portmap}"]

    def start(self, *args):
        return subprocess.Popen([INSTALL, *args, *self.flags], text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT)

    def do(self, *args, code=0):
        p = self.start(*args)
        said = p.communicate(timeout=60)[0]
        assert p.returncode == code, said
        return said

    def files(self):
        return sorted(p.name for d in (self.bin, self.conf) if d.exists() for p in d.iterdir())


@pytest.fixture
def host(tmp_path, build):
    return Host(tmp_path, build)


def test_plugins_come_first_and_the_configuration_last(host, build):
    said = host.do("install").splitlines()
    assert [pathlib.Path(x.split()[-1]).name for x in said] == [
        "roost-ipam", "roost", "loopback", "portmap", "10-roost.conflist"]
    assert host.files() == [".roost-also", "10-roost.conflist", "loopback", "portmap", "roost", "roost-ipam"]
    assert (host.conf / "10-roost.conflist").read_bytes() == CONFLIST.read_bytes()
    assert (host.bin / "roost").read_bytes() == (build / "roost").read_bytes()
    assert oct((host.bin / "roost").stat().st_mode)[-3:] == "755"
    assert oct((host.conf / "10-roost.conflist").stat().st_mode)[-3:] == "644"
    host.do("check")
    # Once more: what is equal is left alone, so that no runtime reads it anew.
    before = {p: p.stat().st_ino for p in host.bin.iterdir()}
    assert host.do("install") == ""
    assert {p: p.stat().st_ino for p in host.bin.iterdir()} == before


def test_a_reader_never_sees_half_of_anything(host, build, tmp_path):
    """Old and new plugins in turn, under eyes that look all the time."""
    old = tmp_path / "old"
    for p in ("roost", "roost-ipam"):
        with plugin(old / p).open("a") as f:
            f.write("#" * 3000000)
    good = {(old / "roost").stat().st_size, (build / "roost").stat().st_size}
    seen, over = set(), threading.Event()

    def look():
        while not over.is_set():
            if (host.conf / "10-roost.conflist").exists():
                seen.add((host.bin / "roost").stat().st_size)
    host.do("install")
    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        for i in range(6):
            host.flags[host.flags.index("--from") + 1] = build if i % 2 else old
            host.do("install")
    finally:
        over.set()
        watcher.join()
    assert seen == good


def test_a_configuration_whose_plugin_is_missing_is_not_installed(host):
    host.flags.pop()
    said = host.do("install", code=1)
    assert f"{CONFLIST} needs the plugin portmap, which is not in {host.bin}" in said
    assert host.files() == [".roost-also", "loopback", "roost", "roost-ipam"]
    host.flags[host.flags.index("--from") + 1] = "/nonexistent"
    assert "there is no plugin /nonexistent/roost-ipam" in host.do("install", code=1)
    assert "unknown argument --bogus" in host.do("--bogus", code=2)
    assert "wants a number of seconds" in host.do("uninstall", "--wait=soon", code=2)


def test_what_the_runtime_needs_is_installed_or_named_with_the_folder(host):
    host.flags.remove(f"--also={host.loopback}")
    said = host.do("install", code=1)
    assert f"the container runtime needs the plugin loopback, which is not in {host.bin}" in said
    assert not (host.conf / "10-roost.conflist").exists()
    plugin(host.bin / "loopback")
    host.do("install")
    (host.bin / "loopback").unlink()
    assert f"loopback, which is not in {host.bin}" in host.do("check", code=1)


# --- versions -------------------------------------------------------------------------------------

DEBIANS = ALL[:-1]


def offered(host):
    conflist = json.loads((host.conf / "10-roost.conflist").read_text())
    return conflist["cniVersion"], conflist["cniVersions"]


def test_only_versions_that_all_plugins_know_are_offered(host):
    """libcni 1.2 and later chooses the highest; Debian's portmap ends at 1.0.0."""
    plugin(host.portmap, DEBIANS)
    said = host.do("install")
    assert f"not 1.1.0, which {host.bin}/portmap does not know" in said
    assert offered(host) == ("1.0.0", ["0.3.1", "0.4.0", "1.0.0"])
    shipped, installed = json.loads(CONFLIST.read_text()), json.loads((host.conf / "10-roost.conflist").read_text())
    assert installed == {**shipped, "cniVersions": shipped["cniVersions"][:-1]}
    host.do("check")
    assert host.do("install") == "", "what is equal is left alone"
    # One that knows more takes its place: what is installed goes on to work, and the next install offers it.
    plugin(host.bin / "portmap")
    host.do("check")
    host.do("install")
    assert (host.conf / "10-roost.conflist").read_bytes() == CONFLIST.read_bytes()
    host.do("check")


def test_check_finds_a_plugin_that_was_exchanged_for_an_older_one(host):
    host.do("install")
    plugin(host.bin / "portmap", DEBIANS)
    assert f"offers 1.1.0, which {host.bin}/portmap does not know: run roost-install" in host.do("check", code=1)
    host.do("install")
    host.do("check")
    # Else it must be the same.
    path = host.conf / "10-roost.conflist"
    path.write_text(path.read_text().replace('"snat": true', '"snat": false'))
    assert "is another than" in host.do("check", code=1)


def test_older_and_silent_plugins(host, tmp_path):
    plugin(host.portmap, ["0.3.0", "0.3.1"])
    host.do("install")
    assert offered(host) == ("0.3.1", ["0.3.1"])
    plugin(host.bin / "portmap", ["0.1.0"])
    assert "have no version in common" in host.do("install", code=1)
    (host.bin / "portmap").write_text("#!/bin/sh\n")
    assert f"{host.bin}/portmap does not say which versions it knows" in host.do("install", code=1)
    assert offered(host) == ("0.3.1", ["0.3.1"])
    # As other tools print it, and with one version only.
    own = tmp_path / "own.conflist"
    host.flags[host.flags.index("--conflist") + 1] = own
    plugin(host.bin / "portmap", DEBIANS)
    own.write_text(json.dumps(json.loads(CONFLIST.read_text()), indent=4))
    host.do("install")
    assert offered(host) == ("1.0.0", ["0.3.1", "0.4.0", "1.0.0"])
    own.write_text('{"cniVersion":"1.1.0","name":"x","plugins":[{"type":"portmap"}]}')
    assert "no version in common: it offers 1.1.0" in host.do("install", code=1)


@pytest.mark.skipif(not os.path.exists("/usr/lib/cni/portmap"), reason="containernetworking-plugins is not installed")
def test_with_debians_own_plugins(host):
    host.flags[-2:] = ["--also=/usr/lib/cni/portmap", "--also=/usr/lib/cni/loopback"]
    host.do("install")
    known = json.loads(subprocess.run([host.bin / "portmap"], env={"CNI_COMMAND": "VERSION"}, check=True,
                                      capture_output=True, text=True).stdout)["supportedVersions"]
    assert set(offered(host)[1]) <= set(known) and "1.0.0" in offered(host)[1]
    host.do("check")


# --- where the runtime looks ----------------------------------------------------------------------

CONTAINERD_1 = """\
[plugins]
  [plugins.cri]
    [plugins.cri.cni]
      bin_dir = "/a/bin"   # theirs
      conf_dir = "/a/net.d/"
"""
CONTAINERD_2 = """\
version = 2
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "/b/bin"
  conf_dir = "/b/net.d"
[plugins."io.containerd.grpc.v1.cri".containerd]
  conf_dir = "/wrong"
"""
CONTAINERD_3 = """\
version = 3
[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dir = ''
  bin_dirs = ['/c/bin', '/c/more']
  conf_dir = '/c/net.d'
"""
CRIO = """\
[crio.runtime]
plugin_dirs = ["/wrong"]
[crio.network]
# network_dir = "/wrong"
network_dir = "/d/net.d/"
plugin_dirs = [
    "/d/bin/",
    "/d/more",
]
"""


class Elsewhere(Host):
    """A host whose root is a folder, as the container of the manifest sees it."""

    def __init__(self, top, build, etc):
        super().__init__(top, build)
        for name, text in etc.items():
            (top / "root/etc" / name).parent.mkdir(parents=True, exist_ok=True)
            (top / "root/etc" / name).write_text(text)
        self.root = top / "root"
        self.flags = ["--root", self.root, *self.flags[4:]]

    def files(self):
        return sorted(str(p.relative_to(self.root)) for p in self.root.rglob("*")
                      if p.is_file() and p.relative_to(self.root).parts[0] != "etc")


@pytest.mark.parametrize("etc, folder", [
    ({"containerd/config.toml": CONTAINERD_1}, "a"), ({"containerd/config.toml": CONTAINERD_2}, "b"),
    ({"containerd/config.toml": CONTAINERD_3}, "c"), ({"crio/crio.conf": CRIO}, "d"),
    ({"crio/crio.conf": "[crio.network]\nplugin_dirs = ['/old']\n", "crio/crio.conf.d/10-x.conf": CRIO}, "d"),
    ({"containerd/config.toml": CONTAINERD_2, "crio/crio.conf": CRIO.replace("/d/", "/b/")}, "b")])
def test_it_finds_where_the_runtime_looks(tmp_path, build, etc, folder):
    host = Elsewhere(tmp_path, build, etc)
    host.do("install")
    assert host.files() == [f"{folder}/bin/{p}" for p in (".roost-also", "loopback", "portmap", "roost", "roost-ipam")] + [
        f"{folder}/net.d/10-roost.conflist"]
    host.do("check")
    host.do("uninstall")
    assert host.files() == []


def test_a_plugin_in_any_folder_of_the_runtime_will_do(tmp_path, build):
    host = Elsewhere(tmp_path, build, {"containerd/config.toml": CONTAINERD_3})
    plugin(host.root / "c/more/portmap", DEBIANS)
    host.do("install")
    assert "c/bin/portmap" not in host.files()
    conflist = json.loads((host.root / "c/net.d/10-roost.conflist").read_text())
    assert conflist["cniVersions"][-1] == "1.0.0"


def test_folders_that_the_runtime_does_not_look_in_are_an_error(tmp_path, build):
    """The manifest mounts /opt/cni/bin; Debian's containerd looks in /usr/lib/cni."""
    host = Elsewhere(tmp_path, build, {"containerd/config.toml": CONTAINERD_2})
    host.flags += ["--bin-dir", host.root / "opt/cni/bin", "--conf-dir", host.root / "b/net.d"]
    for verb in "install", "check":
        said = host.do(verb, code=1)
        assert f"looks in {host.root}/b/bin, not in {host.root}/opt/cni/bin" in said and "--bin-dir" in said
    assert host.files() == []
    both = Elsewhere(tmp_path / "both", build, {"containerd/config.toml": CONTAINERD_2, "crio/crio.conf": CRIO})
    assert "look in different folders: say --bin-dir" in both.do("install", code=1)


@pytest.mark.parametrize("etc", [
    {"crio/crio.conf": CRIO}, {"containerd/config.toml": CONTAINERD_3 + "  use_internal_loopback = true\n"}])
def test_runtimes_that_need_no_loopback(tmp_path, build, etc):
    host = Elsewhere(tmp_path, build, etc)
    host.flags.remove(f"--also={host.loopback}")
    host.do("install")


def test_without_any_configuration_the_usual_folders(tmp_path, build):
    host = Elsewhere(tmp_path, build, {})
    host.do("install", "--bin-dir", host.root / "opt/cni/bin", "--conf-dir", host.root / "net.d")
    assert "net.d/10-roost.conflist" in host.files()


@pytest.mark.skipif(bool(containerd.missing()), reason=containerd.missing())
def test_the_installed_containerd_tells_its_folders(lab, build):
    """Also those of its imports, which only the program itself can tell."""
    node = lab.node("n1")
    node.write("/etc/containerd/config.toml", 'version = 2\nimports = ["/etc/containerd/more.toml"]\n')
    node.write("/etc/containerd/more.toml", CONTAINERD_2.replace("/b/", "/run/b/"))
    command = [INSTALL, "--from", build, "--conflist", CONFLIST, "--also", "/usr/lib/cni/portmap",
               "--also", "/usr/lib/cni/loopback"]
    node.run(command)
    assert {p.name for p in node.path("/run/b/bin").iterdir()} == {
        "roost", "roost-ipam", "portmap", "loopback", ".roost-also"}
    assert node.path("/run/b/net.d/10-roost.conflist").exists()


# --- the agent's look at it -----------------------------------------------------------------------

def test_the_agent_reports_a_plugin_that_does_not_fit(node, etcd, build):
    """Exchanged while it runs: for an older one, for none, for one that does not answer."""
    pool(etcd)
    agent = Agent(node, build, etcd, "--cni-bin-dir", "/opt/cni/bin").start()
    assert "network-config" not in agent.health(), "no configuration, no complaint"
    bin_dir, conf = node.path("/opt/cni/bin"), node.path("/etc/cni/net.d/10-roost.conflist")
    node.run([INSTALL, "--bin-dir", "/opt/cni/bin", "--from", build, "--conflist", CONFLIST,
              "--also", plugin(bin_dir / "portmap"), "--also", plugin(bin_dir / "loopback")])
    assert "1.1.0" in conf.read_text()
    plugin(bin_dir / "portmap", DEBIANS)
    assert agent.wait_health("network-config", "offers version 1.1.0", 30).startswith(
        "/etc/cni/net.d/10-roost.conflist offers version 1.1.0, which the plugin /opt/cni/bin/portmap does not know")
    node.run([INSTALL, "--bin-dir", "/opt/cni/bin", "--from", build, "--conflist", CONFLIST])
    agent.wait_well("network-config", 30)
    (bin_dir / "portmap").unlink()
    agent.wait_health("network-config", "names the plugin portmap, which is not in /opt/cni/bin", 30)
    (bin_dir / "portmap").write_text("#!/bin/sh\n")
    (bin_dir / "portmap").chmod(0o755)
    agent.wait_health("network-config", "does not say which versions it knows", 30)
    conf.unlink()
    agent.wait_well("network-config", 30)
    agent.stop()


# --- removal --------------------------------------------------------------------------------------

def test_a_plugin_of_the_hosts_own_stays_its_own(host):
    theirs = plugin(host.bin / "portmap", DEBIANS).read_text()
    host.do("install")
    host.do("uninstall")
    assert host.files() == ["portmap"] and (host.bin / "portmap").read_text() == theirs


def pod_file(host, name, **more):
    (host.run / "attachments" / name).write_text(json.dumps(
        {"network": "pods", "container": name, "interface": "eth0", **more}, separators=(",", ":")))


def test_removal_waits_for_the_pods_before_anything_goes(host):
    """Runtimes refuse to end a pod without the configuration."""
    host.do("install")
    pod_file(host, "a1", namespace="prod", pod="web-1")
    pod_file(host, "tunnel", reserved=True)  # the node's own
    assert "pod interfaces left: 1 (prod/web-1)" in host.do("uninstall", code=3)
    assert host.files() == [".roost-also", "10-roost.conflist", "loopback", "portmap", "roost", "roost-ipam"]
    assert (host.run / "drain").exists(), "no new pod starts"
    p = host.start("uninstall", "--wait", "60")
    said = iter(p.stdout.readline, "")
    assert "pod interfaces left: 1 (prod/web-1)" in next(said)
    assert "10-roost.conflist" in host.files()
    (host.run / "attachments/a1").unlink()
    assert p.wait(30) == 0
    p.stdout.close()
    assert host.files() == []
    assert host.do("uninstall") == "", "nothing to do is no mistake"
    # Taken back.
    host.do("install")
    assert not (host.run / "drain").exists() and "10-roost.conflist" in host.files()


def test_an_exchanged_plugin_is_not_ours_any_more(host):
    host.do("install")
    (host.bin / "portmap").write_text("another package's")
    host.do("uninstall")
    assert host.files() == ["portmap"]


def test_a_killed_installer_leaves_nothing_that_counts(host):
    """Whatever it had begun lies under a hidden name without an ending that a runtime reads."""
    host.do("install")
    (host.bin / ".roost.AbCdEf").write_text("half")
    (host.conf / ".10-roost.conflist.AbCdEf").write_text("half")
    host.do("uninstall")
    assert host.files() == []


# --- the manifests ------------------------------------------------------------------------------

def documents(name):
    return {(d["kind"], d["metadata"]["name"]): d
            for d in yaml.safe_load_all((MANIFESTS / name).read_text())}


def test_the_manifest_fits_together():
    docs = documents("roost.yaml")
    assert set(docs) == {("Namespace", "roost-system"), ("ServiceAccount", "roost-node"),
                         ("ClusterRole", "roost-node"), ("ClusterRoleBinding", "roost-node"),
                         ("ConfigMap", "roost"), ("DaemonSet", "roost")}
    for (kind, _), d in docs.items():
        assert ("namespace" in d["metadata"]) == (kind in ("ServiceAccount", "ConfigMap", "DaemonSet"))
        assert d["metadata"].get("namespace", "roost-system") == "roost-system"
    binding = docs["ClusterRoleBinding", "roost-node"]
    assert (binding["roleRef"]["kind"], binding["roleRef"]["name"]) in docs
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "roost-node",
                                    "namespace": "roost-system"}]
    assert docs["ClusterRole", "roost-node"]["rules"] == [], "nothing asks the API server for anything"
    for name in ("roost.yaml", "remove.yaml"):
        for (kind, _), d in documents(name).items():
            if kind == "DaemonSet":
                check_daemon_set(d, docs)


def check_daemon_set(d, docs):
    spec = d["spec"]["template"]["spec"]
    assert d["spec"]["selector"]["matchLabels"] == d["spec"]["template"]["metadata"]["labels"]
    assert ("ServiceAccount", spec["serviceAccountName"]) in docs
    assert spec["hostNetwork"] is True
    volumes = {v["name"]: v for v in spec["volumes"]}
    used = set()
    for c in spec.get("initContainers", []) + spec["containers"]:
        assert c["image"] == IMAGE
        names = {m["name"] for m in c["volumeMounts"]}
        assert names <= set(volumes), f"{c['name']} mounts what is not there: {names}"
        used |= names
    assert used == set(volumes), f"mounted nowhere: {set(volumes) - used}"
    for v in volumes.values():
        if "configMap" in v:
            assert ("ConfigMap", v["configMap"]["name"]) in docs


def _count(value, replicas, up):
    """maxSurge is rounded up, maxUnavailable down."""
    if isinstance(value, int):
        return value
    share = int(value.rstrip("%")) * replicas
    return -(-share // 100) if up else share // 100


class Rollout:
    """A Deployment on so many nodes, by the documented rules: never more pods than replicas and
    maxSurge, never fewer available ones than replicas less maxUnavailable (ones that are not
    available may go at any time), and a pod runs where its affinity allows it to."""

    def __init__(self, deployment, nodes):
        self.replicas, self.nodes = deployment["replicas"], nodes
        rolling = deployment.get("strategy", {}).get("rollingUpdate", {})
        self.surge = _count(rolling.get("maxSurge", "25%"), self.replicas, True)
        self.unavailable = _count(rolling.get("maxUnavailable", "25%"), self.replicas, False)
        pod = deployment["template"]["spec"]
        self.required = "requiredDuringSchedulingIgnoredDuringExecution" in \
            pod.get("affinity", {}).get("podAntiAffinity", {})
        self.pods = []  # [version, node or None]
        self.scale("old", self.replicas)

    def load(self, node):
        return sum(p[1] == node for p in self.pods)

    def schedule(self):
        for pod in self.pods:
            free = [n for n in range(self.nodes) if not (self.required and self.load(n))]
            if pod[1] is None and free:
                pod[1] = min(free, key=self.load)

    def scale(self, version, n):
        self.pods += [[version, None] for _ in range(n)]
        self.schedule()

    def step(self):
        new = sum(p[0] == "new" for p in self.pods)
        room = min(self.replicas + self.surge - len(self.pods), self.replicas - new)
        if room > 0:
            self.scale("new", room)
            return True
        available = sum(p[1] is not None for p in self.pods)
        spare = available - (self.replicas - self.unavailable)
        for pod in sorted((p for p in self.pods if p[0] == "old"), key=lambda p: p[1] is not None):
            if pod[1] is None or spare > 0:
                self.pods.remove(pod)
                self.schedule()
                return True
        return False


@pytest.mark.parametrize("nodes", [1, 2, 3])
def test_a_rollout_of_the_controller_ends_on_any_number_of_nodes(nodes):
    rollout = Rollout(documents("controller.yaml")["Deployment", "roost-controller"]["spec"], nodes)
    while rollout.step():
        assert sum(p[1] is not None for p in rollout.pods) >= 1, "nobody would lead"
    assert [p[0] for p in rollout.pods] == ["new", "new"], rollout.pods
    assert None not in (p[1] for p in rollout.pods)
    assert nodes == 1 or len({p[1] for p in rollout.pods}) == 2, "both on one node"


def test_the_controllers_manifest_asks_for_no_more_than_it_needs():
    docs = documents("controller.yaml")
    account = {"kind": "ServiceAccount", "name": "roost-controller", "namespace": "roost-system"}
    assert docs["ClusterRole", "roost-controller"]["rules"] == [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]}]
    binding = docs["ClusterRoleBinding", "roost-controller"]
    assert binding["subjects"] == [account]
    assert (binding["roleRef"]["kind"], binding["roleRef"]["name"]) in docs
    deployment = docs["Deployment", "roost-controller"]["spec"]
    pod = deployment["template"]["spec"]
    labels = deployment["template"]["metadata"]["labels"]
    assert deployment["replicas"] == 2 and deployment["selector"]["matchLabels"] == labels
    apart, = pod["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert apart["podAffinityTerm"]["labelSelector"]["matchLabels"] == labels
    assert ("ServiceAccount", pod["serviceAccountName"]) in docs and "hostNetwork" not in pod
    assert pod["securityContext"]["runAsNonRoot"] is True
    container, = pod["containers"]
    assert container["image"] == IMAGE
    assert container["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]},
                                            "readOnlyRootFilesystem": True}
    assert {m["name"] for m in container["volumeMounts"]} == {v["name"] for v in pod["volumes"]}
    for v in pod["volumes"]:
        assert "configMap" not in v or ("ConfigMap", v["configMap"]["name"]) in docs


def test_the_manifests_configuration_is_ours(build):
    data = documents("roost.yaml")["ConfigMap", "roost"]["data"]
    assert json.loads(data["10-roost.conflist"]) == json.loads(CONFLIST.read_text())
    spec = documents("roost.yaml")["DaemonSet", "roost"]["spec"]["template"]["spec"]
    agent = next(c for c in spec["containers"] if c["name"] == "agent")
    netns = next(m for m in agent["volumeMounts"] if m["name"] == "netns")
    assert netns["mountPropagation"] == "HostToContainer", "pods that come later would not be seen"
    paths = {m["mountPath"] for m in agent["volumeMounts"]}
    assert {"/run/roost", "/run/netns", "/etc/machine-id", "/run/bird", "/etc/bird"} <= paths
    # Its flags are the program's own, with a value that it must refuse by name.
    done = subprocess.run([build / "roostd", *agent["command"][1:], "--log-level", "nonsense"],
                          capture_output=True, text=True)
    assert done.returncode == 2 and "nonsense" in done.stderr, done.stderr


def test_what_the_manifests_run_is_what_the_scripts_take(host, build):
    """The init container's very command, on folders instead of the host's. test_removal.py has the way out."""
    spec = documents("roost.yaml")["DaemonSet", "roost"]["spec"]["template"]["spec"]
    install = next(c for c in spec["initContainers"] if c["name"] == "install")["command"]
    names = {"/host/opt/cni/bin": host.bin, "/host/etc/cni/net.d": host.conf,
             "/etc/roost-config/10-roost.conflist": CONFLIST, "/usr/lib/cni/portmap": host.portmap,
             "/usr/lib/cni/loopback": host.loopback, "/host": host.bin.parent}
    argv = [re.sub("=(.*)", lambda m: f"={names[m[1]]}", w) for w in install[1:]]
    subprocess.run([INSTALL, *argv, "--from", build, "--run-dir", host.run], check=True, timeout=60)
    assert host.files() == [".roost-also", "10-roost.conflist", "loopback", "portmap", "roost", "roost-ipam"]


def test_roostctl_in_the_pod_needs_no_flags(lab, node, build):
    """`kubectl exec ds/roost -c agent -- roostctl ...`: the container's environment and mounts, and nothing else."""
    docs = documents("roost.yaml")
    spec = docs["DaemonSet", "roost"]["spec"]["template"]["spec"]
    agent = next(c for c in spec["containers"] if c["name"] == "agent")
    values = {"spec.nodeName": "the-node"}
    env = {e["name"]: e.get("value") or values[e["valueFrom"]["fieldRef"]["fieldPath"]] for e in agent["env"]}
    config, = [m["mountPath"] for m in agent["volumeMounts"] if m["name"] == "config"]
    secret, = [m["mountPath"] for m in agent["volumeMounts"] if m["name"] == "etcd"]
    etcd = lab.etcd(tls=True)
    etcd.join(node)
    for name, file in (("ca.crt", etcd.authority.cert), ("tls.crt", etcd.client_certificate.cert),
                       ("tls.key", etcd.client_certificate.key)):
        node.write(f"{secret}/{name}", pathlib.Path(file).read_text(), 0o400)
    for name, text in docs["ConfigMap", "roost"]["data"].items():
        text = text.replace("https://10.0.0.1:2379", etcd.endpoints)
        # There is no BIRD beside it here.
        node.write(f"{config}/{name}", text.replace('{\n  "etcd"', '{\n  "birdConfig": "none", "etcd"'))
    pool(etcd)
    node.spawn("roostd", [build / agent["command"][0], *agent["command"][1:]], env=env, expect_clean=True)

    def listed():
        done = node.run([build / "roostctl", "node", "list"], env=env, check=False)
        return "the-node" in done.stdout
    wait_until(listed, 30, "the node in roostctl's list")
    status = node.run([build / "roostctl", "status", "-o", "json"], env=env, check=False)
    assert json.loads(status.stdout)["node"] == "the-node", status.stderr
    assert "web" in node.run([build / "roostctl", "pool", "list"], env=env).stdout


def test_the_image_is_the_one_that_podman_makes():
    """`podman build -t roost:X` makes localhost/roost:X; without the host's name it would be another registry's."""
    for path in MANIFESTS.iterdir():
        images = re.findall(r"^ *(?:- )?(?:image:|FROM) *(\S+)", path.read_text(), re.M)
        assert images
        for image in images:
            assert image == IMAGE if path.suffix == ".yaml" else "/" not in image, (path, image)
    tag, = re.findall(r"podman build -t (\S+):0\.1\.0 ", (ROOT / "docs/INSTALL.md").read_text())
    assert IMAGE == f"localhost/{tag}:VERSION"
    assert os.access(INSTALL, os.X_OK)


def test_the_daemonset_is_confined_where_it_can_be():
    pod = next(d for d in yaml.safe_load_all((MANIFESTS / "roost.yaml").read_text())
               if d["kind"] == "DaemonSet")["spec"]["template"]["spec"]
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    agent, bird = pod["containers"]
    assert agent["resources"]["limits"] == {"memory": "1Gi"}
    assert bird["securityContext"]["capabilities"]["drop"] == ["ALL"]
    assert not bird["securityContext"]["allowPrivilegeEscalation"]

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

from lab import wait_until

ROOT = pathlib.Path(__file__).resolve().parent.parent
INSTALL = ROOT / "cni/roost-install"
CONFLIST = ROOT / "systemd/10-roost.conflist"
MANIFESTS = ROOT / "docs/kubernetes"


class Host:
    """Folders as they are on a host."""

    def __init__(self, top, build):
        self.bin, self.conf, self.run = top / "bin", top / "net.d", top / "run"
        self.portmap = top / "own/portmap"
        self.portmap.parent.mkdir()
        self.portmap.write_text("#!/bin/sh\n")
        self.portmap.chmod(0o755)
        (self.run / "attachments").mkdir(parents=True)
        self.flags = ["--bin-dir", self.bin, "--conf-dir", self.conf, "--run-dir", self.run,
                      "--from", build, "--conflist", CONFLIST, f"--also={self.portmap}"]

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
        "roost-ipam", "roost", "portmap", "10-roost.conflist"]
    assert host.files() == [".roost-also", "10-roost.conflist", "portmap", "roost", "roost-ipam"]
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
    old.mkdir()
    for p in ("roost", "roost-ipam"):
        (old / p).write_bytes(b"#!/bin/sh\n" + b"#" * 3000000)
        (old / p).chmod(0o755)
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
    assert "names the plugin portmap, which is not in" in host.do("install", code=1)
    assert host.files() == ["roost", "roost-ipam"]
    host.flags[host.flags.index("--from") + 1] = "/nonexistent"
    assert "there is no plugin /nonexistent/roost-ipam" in host.do("install", code=1)
    assert "unknown argument --bogus" in host.do("--bogus", code=2)
    assert "wants a number of seconds" in host.do("uninstall", "--wait=soon", code=2)


def test_a_plugin_of_the_hosts_own_stays_its_own(host):
    host.bin.mkdir()
    (host.bin / "portmap").write_text("theirs")
    (host.bin / "portmap").chmod(0o755)
    host.do("install")
    host.do("uninstall")
    assert host.files() == ["portmap"] and (host.bin / "portmap").read_text() == "theirs"


def pod_file(host, name, **more):
    (host.run / "attachments" / name).write_text(json.dumps(
        {"network": "pods", "container": name, "interface": "eth0", **more}, separators=(",", ":")))


def test_removal_waits_for_the_pods_before_anything_goes(host):
    """Runtimes refuse to end a pod without the configuration."""
    host.do("install")
    pod_file(host, "a1", namespace="prod", pod="web-1")
    pod_file(host, "tunnel", reserved=True)  # the node's own
    assert "pod interfaces left: 1 (prod/web-1)" in host.do("uninstall", code=3)
    assert host.files() == [".roost-also", "10-roost.conflist", "portmap", "roost", "roost-ipam"]
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
        assert c["image"] == "roost:VERSION"
        names = {m["name"] for m in c["volumeMounts"]}
        assert names <= set(volumes), f"{c['name']} mounts what is not there: {names}"
        used |= names
    assert used == set(volumes), f"mounted nowhere: {set(volumes) - used}"
    for v in volumes.values():
        if "configMap" in v:
            assert ("ConfigMap", v["configMap"]["name"]) in docs


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
    apart, = pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert apart["labelSelector"]["matchLabels"] == labels
    assert ("ServiceAccount", pod["serviceAccountName"]) in docs and "hostNetwork" not in pod
    assert pod["securityContext"]["runAsNonRoot"] is True
    container, = pod["containers"]
    assert container["image"] == "roost:VERSION"
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
             "/etc/roost-config/10-roost.conflist": CONFLIST, "/usr/lib/cni/portmap": host.portmap}
    argv = [re.sub("=(.*)", lambda m: f"={names[m[1]]}", w) for w in install[1:]]
    subprocess.run([INSTALL, *argv, "--from", build, "--run-dir", host.run], check=True, timeout=60)
    assert host.files() == [".roost-also", "10-roost.conflist", "portmap", "roost", "roost-ipam"]


def test_no_manifest_names_a_registry():
    for path in MANIFESTS.iterdir():
        images = re.findall(r"(?:image:|FROM) *(\S+)", path.read_text())
        assert images and all("/" not in i and "." not in i.split(":")[0] for i in images), (path, images)
    assert os.access(INSTALL, os.X_OK)

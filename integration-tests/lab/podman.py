# SPDX-License-Identifier: Apache-2.0
"""podman with its CNI backend on a node. All that it keeps lies in the node's own /run.

    podman = Podman(node, network="pods")
    c = podman.start("a", publish={8080: image.PORT})     # c.id, c.pid, c.address
    c.run("ip route").stdout; c.stop(); c.restart(); c.remove()
"""

import json
import re
import shutil
import subprocess

from . import cgroups, image, process

# - Locks of podman lie in /dev/shm, which is the host's: a node has its own.
# - runc, because crun refuses a mixture of old and new control groups.
# - No raised limits: a container of the tests' own machine may not raise them.
_CONF = """\
[network]
network_backend = "cni"
cni_plugin_dirs = ["/opt/cni/bin"]
network_config_dir = "/etc/cni/net.d"
default_network = "{network}"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "runc"
tmp_dir = "/run/libpod"
volume_path = "/run/podman/volumes"
static_dir = "/run/podman/static"
image_copy_tmp_dir = "/run/podman/tmp"
conmon_env_vars = ["PATH=/usr/sbin:/usr/bin:/sbin:/bin", "{mark}={lab}"]
[containers]
log_driver = "k8s-file"
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
"""
_STORAGE = """\
[storage]
driver = "overlay"
graphroot = "/run/podman/root"
runroot = "/run/podman/run"
"""


def missing():
    """Why podman cannot be used here; empty if it can."""
    if not shutil.which("podman"):
        return "podman is not installed"
    said = subprocess.run(["podman", "--version"], capture_output=True, text=True, check=False).stdout
    if int(re.search(r"(\d+)\.", said)[1]) >= 5:
        return "from version 5 on podman has no CNI"
    return image.missing()


class Podman:
    name, can_publish = "podman", True

    def __init__(self, node, network="pods"):
        self.node = node
        node.write("/etc/containers/containers.conf",
                   _CONF.format(network=network, mark=process.MARK, lab=node.lab.id))
        node.write("/etc/containers/storage.conf", _STORAGE)
        node.run("mkdir -p /run/podman/tmp")
        node.run("mount -t tmpfs roost-lab /dev/shm")
        image.write(node.path("/run/podman/image.tar"), node.lab.id)
        self("load -q -i /run/podman/image.tar")

    def __call__(self, cmd, **kwargs):
        """podman CMD; a result with .stdout."""
        kwargs.setdefault("timeout", 60)
        return self.node.run(["podman", *process.command(cmd)],
                             env={"TMPDIR": "/run/podman/tmp"}, **kwargs)

    def start(self, name, publish=None, network=None):
        """A running container that serves the image's page."""
        ports = [x for host, inside in (publish or {}).items() for x in ("-p", f"{host}:{inside}")]
        named = ["--network", network] if network else []
        id = self(["run", "-d", "--name", name, "--cgroup-parent", cgroups.parent(self.node.lab.id),
                   *named, *ports, image.NAME]).stdout.strip()
        return Container(self, id, name)

    def inspect(self, name):
        return json.loads(self(["inspect", name]).stdout)[0]


class Container:
    def __init__(self, podman, id, name):
        self.podman, self.id, self.name = podman, id, name
        self._look()

    def _look(self):
        told = self.podman.inspect(self.id)
        self.pid = told["State"]["Pid"]
        networks = told["NetworkSettings"]["Networks"].values()
        self.address = next((n["IPAddress"] for n in networks), "")
        self.netns = told["NetworkSettings"]["SandboxKey"]

    def run(self, cmd, **kwargs):
        """A program of the node in the container's network."""
        return self.podman.node.run(
            ["nsenter", f"--net=/proc/{self.pid}/ns/net", "--", *process.command(cmd)], **kwargs)

    def spawn(self, name, cmd, **kwargs):
        return self.podman.node.spawn(
            name, ["nsenter", f"--net=/proc/{self.pid}/ns/net", "--", *process.command(cmd)],
            **kwargs)

    def stop(self):
        self.podman(["stop", "-t", "0", self.id])

    def restart(self):
        """Stop and start: the same container id, a new namespace."""
        self.podman(["restart", "-t", "0", self.id])
        self._look()

    def start(self):
        self.podman(["start", self.id])
        self._look()

    def remove(self):
        self.podman(["rm", "-f", "-t", "0", self.id])

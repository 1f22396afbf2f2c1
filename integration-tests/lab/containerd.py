# SPDX-License-Identifier: Apache-2.0
"""containerd on a node, driven as the kubelet drives it (CRI) and by `ctr run --cni`.

    containerd = Containerd(node).start()
    pod = Cri(containerd).start("web-1", publish={8080: image.PORT})   # pod.id, .pid, .address
    pod = Ctr(containerd).start("a")
    pod.run("ip route"); pod.remove()
"""

import importlib.util
import os
import shutil

from . import cgroups, image, process
from .protobuf import field, fields, mapping, text
from .wait import wait_until

# Its fork handlers are for children that go on using it; ours exec at once.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

SOCKET = "/run/containerd/containerd.sock"
_CONF = """\
version = 2
root = "/run/containerd/root"
state = "/run/containerd/state"
oom_score = 0
disabled_plugins = [
  "io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs"]
[grpc]
  address = "{socket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{image}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/opt/cni/bin"
    conf_dir = "/etc/cni/net.d"
"""


def missing():
    """Why containerd cannot be used here; empty if it can."""
    if not shutil.which("containerd"):
        return "containerd is not installed"
    if not importlib.util.find_spec("grpc"):
        return "Python's gRPC is not installed (python3-grpcio)"
    return image.missing()


class Containerd:
    def __init__(self, node):
        self.node, self.process = node, None
        node.write("/etc/containerd/config.toml", _CONF.format(socket=SOCKET, image=image.NAME))

    def start(self):
        """Returns when it serves, with the image in both of its name spaces."""
        # Its shims outlive it, unless they die with the lab: by their mark.
        self.process = self.node.spawn("containerd", "containerd -c /etc/containerd/config.toml",
                                       env={"TMPDIR": "/run/containerd"})
        wait_until(lambda: self.ctr("version", check=False).returncode == 0, 60, "containerd")
        archive = "/run/containerd/image.tar"
        image.write(self.node.path(archive), self.node.lab.id)
        for space in "k8s.io", "default":
            self.ctr(["-n", space, "image", "import", archive])
        return self

    def ctr(self, cmd, **kwargs):
        kwargs.setdefault("timeout", 60)
        return self.node.run(["ctr", "-a", SOCKET, *process.command(cmd)], **kwargs)

    def pid(self, space, id):
        """Of a running task; None if there is none."""
        for line in self.ctr(["-n", space, "task", "ls"]).stdout.splitlines()[1:]:
            name, pid, state = line.split()
            if name == id and state == "RUNNING":
                return int(pid)
        return None


class _Pod:
    """What both kinds of pods have in common."""

    def __init__(self, node, id, pid, address):
        self.node, self.id, self.pid, self.address = node, id, pid, address

    def _enter(self, cmd):
        return ["nsenter", f"--net=/proc/{self.pid}/ns/net", "--", *process.command(cmd)]

    def run(self, cmd, **kwargs):
        """A program of the node in the pod's network."""
        return self.node.run(self._enter(cmd), **kwargs)

    def spawn(self, name, cmd, **kwargs):
        return self.node.spawn(name, self._enter(cmd), **kwargs)


class Cri:
    """Pods as the kubelet makes them: RunPodSandbox, StopPodSandbox, RemovePodSandbox."""

    name, can_publish = "cri", True

    def __init__(self, containerd):
        # Not at the top: tests that use no CRI run without the library.
        import grpc
        self.containerd, self.node = containerd, containerd.node
        self._channel = grpc.insecure_channel(f"unix:{self.node.path(SOCKET)}")
        # The plugin that serves it starts after the rest.
        wait_until(self.network_ready, 60, "the CRI's network", errors=grpc.RpcError)

    def call(self, method, request=b"", timeout=60):
        """One call; the reply as protobuf.fields() has it."""
        def same(message):
            return message
        stub = self._channel.unary_unary(f"/runtime.v1.RuntimeService/{method}",
                                         request_serializer=same, response_deserializer=same)
        return fields(stub(request, timeout=timeout))

    def network_ready(self):
        """The condition NetworkReady: whether a configuration was read."""
        for condition in fields(self.call("Status")[1][0])[1]:
            told = fields(condition)
            if text(told, 1) == "NetworkReady":
                return bool(told.get(2, [0])[0])
        return False

    def start(self, name, publish=None, namespace="default", annotations=None):
        """A pod with nothing in it but the sandbox, which serves the image's page."""
        config = field(1, field(1, name) + field(2, f"uid-of-{name}") + field(3, namespace))
        config += field(2, name) + field(3, "/run/containerd/logs")
        for outside, inside in (publish or {}).items():
            config += field(5, field(1, 0) + field(2, inside) + field(3, outside))
        config += mapping(7, annotations or {})
        # Network and IPC are the pod's, processes the container's.
        spaces = field(1, 0) + field(2, 1) + field(3, 0)
        config += field(8, field(1, cgroups.parent(self.node.lab.id)) + field(2, field(1, spaces)))
        return CriPod(self, text(self.call("RunPodSandbox", field(1, config)), 1))

    def address(self, id):
        status = fields(self.call("PodSandboxStatus", field(1, id))[1][0])
        return text(fields(status.get(5, [b""])[0]), 1)


class CriPod(_Pod):
    def __init__(self, cri, id):
        self.cri = cri
        super().__init__(cri.node, id, cri.containerd.pid("k8s.io", id), cri.address(id))

    def stop(self):
        self.cri.call("StopPodSandbox", field(1, self.id))

    def remove(self):
        """As the kubelet does: stop, then remove, which runs DEL once more."""
        self.stop()
        self.cri.call("RemovePodSandbox", field(1, self.id))


class Ctr:
    """Containers of `ctr run --cni`: in the foreground, else nobody calls DEL."""

    name, can_publish = "ctr", False

    def __init__(self, containerd):
        self.containerd, self.node = containerd, containerd.node

    def start(self, name):
        return CtrPod(self, name)


class CtrPod(_Pod):
    def __init__(self, ctr, name):
        self.containerd, self.name = ctr.containerd, name
        node = ctr.node
        self.process = node.spawn(f"ctr-{name}", [
            "ctr", "-a", SOCKET, "run", "--rm", "--cni",
            "--cgroup", f"{cgroups.parent(node.lab.id)}/{name}", image.NAME, name])
        pid = wait_until(self._started, 60, f"ctr to run {name}")
        super().__init__(node, f"default-{name}", pid, "")
        # ctr starts the program after the network: one answer tells both.
        self.address = wait_until(self._address, 60, f"the address of {name}")

    def _started(self):
        assert self.process.alive, f"ctr ended: {self.process.log}"
        return self.containerd.pid("default", self.name)

    def _address(self):
        assert self.process.alive, f"ctr ended: {self.process.log}"
        words = self.run("ip -o -4 addr show dev eth0 scope global", check=False).stdout.split()
        return words[3].split("/")[0] if len(words) > 3 else None

    def stop(self):
        self.containerd.ctr(["task", "kill", "-s", "KILL", self.name])
        self.process.wait(60)

    remove = stop

# SPDX-License-Identifier: Apache-2.0
"""What a container runtime hands to a CNI plugin: a named namespace on a node."""

from . import process


class Pod:
    """A network namespace bound to /run/netns/NAME of one node; `lo` is down, as in real life."""

    def __init__(self, node, name):
        self.node, self.name = node, name
        self.netns = f"/run/netns/{name}"
        node.run(["ip", "netns", "add", name])

    def __repr__(self):
        return f"<Pod {self.name} on {self.node.name}>"

    def command(self, cmd):
        """The command as the node must run it. Not `ip netns exec`, which remounts /sys."""
        return ["nsenter", f"--net={self.netns}", "--", *process.command(cmd)]

    def run(self, cmd, **kwargs):
        return self.node.run(self.command(cmd), **kwargs)

    def spawn(self, name, cmd, **kwargs):
        return self.node.spawn(f"{self.name}.{name}", self.command(cmd), **kwargs)

    def delete(self):
        """Remove the name; the namespace goes with the last process in it."""
        self.node.run(["ip", "netns", "delete", self.name])

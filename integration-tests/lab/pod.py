# SPDX-License-Identifier: Apache-2.0
"""What a container runtime hands to a CNI plugin: a named namespace on a node."""

import json

from . import ping, process
from .namespace import socket_in


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

    def json(self, *args):
        """What `ip -j ARGS` says in here."""
        return json.loads(self.run(["ip", "-j", *args]).stdout or "[]")

    def links(self):
        """Names of the interfaces, without lo."""
        return [link["ifname"] for link in self.json("link") if link["ifname"] != "lo"]

    def socket(self, *args):
        """A socket in the pod, for use by the test itself."""
        return socket_in(self.node.path(self.netns), *args)

    def ping(self, address, timeout=1.0):
        """Whether an address answers one echo request."""
        return ping.ping(self.socket, address, timeout)

    def delete(self):
        """Remove the name; the namespace goes with the last process in it."""
        self.node.run(["ip", "netns", "delete", self.name])

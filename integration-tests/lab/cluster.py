# SPDX-License-Identifier: Apache-2.0
"""Nodes that run pods: an agent each, the plugins, a network configuration, ways to each other.

    n1, n2 = cluster(2)                        # the fixture; a Member is agent, node and plugins
    n1.install(plugins=[...])                  # /etc/cni/net.d/10-roost.conflist
    result = n1.add("c1", pod.netns)           # `roost` itself, as a runtime executes it
    join(n1, n2)                               # routes to each other's blocks
    n1.wait_no_trace()                         # links, routes, neighbours, files, keys, caches
"""

import json
import shutil

from . import cni
from .agent import Agent
from .wait import wait_until

BIN, CONF = "/opt/cni/bin", "/etc/cni/net.d/10-roost.conflist"
DEBIAN = "/usr/lib/cni"
NETWORK = "pods"
# What roost-install writes beside Debian's portmap.
VERSIONS = {"cniVersion": "1.0.0", "cniVersions": ["0.3.1", "0.4.0", "1.0.0"]}
ROOST = {"type": "roost", "ipam": {"type": "roost-ipam"}}
PORTMAP = {"type": "portmap", "capabilities": {"portMappings": True}}


class Member(Agent):
    """A node with everything that a container runtime needs from us."""

    def __init__(self, node, build, etcd, *flags):
        super().__init__(node, build, etcd, *flags)
        node.run(["sh", "-c", f"ln -s {DEBIAN}/* {BIN}/"])
        for program in "roost", "roost-ipam":
            shutil.copy(build / program, node.path(f"{BIN}/{program}"))
        self.install()

    @property
    def address(self):
        """Where the other nodes reach this one."""
        return self.etcd.switch.address(self.node)

    def install(self, plugins=(ROOST, PORTMAP), path=CONF):
        """The configuration that runtimes find."""
        self.node.write(path, json.dumps({**VERSIONS, "name": NETWORK, "plugins": list(plugins)}))

    # --- the plugin by itself -------------------------------------------------------------------

    def cni(self, verb, container, netns="", version="1.0.0", conf=None, **env):
        conf = {"cniVersion": version, "name": NETWORK, **ROOST, **(conf or {})}
        env.setdefault("path", BIN)
        return cni.call(self.node, f"{BIN}/{conf['type']}", verb, conf, container=container,
                        netns=netns, **env)

    def add(self, container, netns, **more):
        return self.cni("ADD", container, netns, **more)

    def delete(self, container, netns="", **more):
        return self.cni("DEL", container, netns, **more)

    def fill(self, containers, interfaces=1):
        """Many pods with all their interfaces, by one script: c1 in /run/netns/c1, and so on."""
        self.node.write("/run/fill.conf", json.dumps({"cniVersion": "1.0.0", "name": NETWORK,
                                                      **ROOST}))
        self.node.run(["bash", "-ec", f"""
            export CNI_COMMAND=ADD CNI_PATH={BIN} CNI_ARGS=
            for i in $(seq {containers}); do
              export CNI_CONTAINERID=c$i CNI_NETNS=/run/netns/c$i
              ip netns add c$i
              for j in $(seq 0 $(({interfaces} - 1))); do
                CNI_IFNAME=eth$j {BIN}/roost < /run/fill.conf > /run/fill.result ||
                  {{ cat /run/fill.result >&2; exit 1; }}
              done
            done"""], timeout=100)

    # --- what the kernel has --------------------------------------------------------------------

    def ip(self, cmd):
        """What `ip -j` says, on the host's side."""
        return json.loads(self.node.run(["ip", "-j", *cmd.split()]).stdout or "[]")

    def pod_links(self):
        return {link["ifname"] for link in self.ip("link") if _ours(link["ifname"])}

    def pod_routes(self):
        """{address: link} of both families."""
        return {r["dst"]: r["dev"] for family in ("-4", "-6")
                for r in self.ip(f"{family} route show proto 114") if _ours(r.get("dev", ""))}

    def blackholes(self):
        return {r["dst"] for family in ("-4", "-6")
                for r in self.ip(f"{family} route show proto 114 type blackhole")}

    def neighbours(self):
        """{address: link} of the permanent ones."""
        return {n["dst"]: n["dev"] for n in self.ip("neigh show nud permanent")
                if _ours(n["dev"])}

    # --- the end of a pod -----------------------------------------------------------------------

    def trace(self):
        """All that reminds of a pod, wherever it is. Blocks stay: they are the node's."""
        left = [f"link {name}" for name in self.pod_links()]
        left += [f"route {a}" for a in self.pod_routes()]
        left += [f"neighbour {n['dst']} dev {n['dev']}" for n in self.ip("neigh show nud all")
                 if _ours(n["dev"])]
        left += [f"key {k}" for k in self.keys("address")]
        left += [f"attachment {x}" for x in self.list()["attachments"]]
        for folder in f"{self.run_dir}/attachments", "/run/netns", "/var/lib/cni/results":
            top = self.node.path(folder)
            # A hidden file is one whose writer was killed: it says nothing of any pod.
            left += [str(p) for p in (top.iterdir() if top.exists() else ()) if p.name[0] != "."]
        return left

    def wait_no_trace(self, timeout=20):
        """Links are destroyed, and keys written, a moment later."""
        def clean():
            left = self.trace()
            assert not left, left
            return True
        wait_until(clean, timeout, f"all traces of pods on {self.node.name} to go",
                   errors=AssertionError)


def _ours(link):
    return link.startswith("roost")


def join(*members):
    """Routes to each other's blocks, as a routing daemon would have them."""
    for one in members:
        for other in members:
            if other is not one:
                one.node.ip(*[f"route replace {b} via {other.address} proto static"
                              for b, state in other.blocks().items() if state == "owned"])

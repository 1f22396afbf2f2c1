# SPDX-License-Identifier: Apache-2.0
"""Agents that get their block from a lease server, not from etcd.

    servers = LeaseServers(lab, etcd, build, 2, tls=True)   # controllers c1, c2
    agent = Member(lab.node("n1"), build, servers).start()        # --lease-server https://...
    servers[0].kill()
"""

import json

from .agent import PREFIX
from .controller import Controller
from .lease import PORT
from .tls import Authority


class LeaseServers(list):
    """Controllers that serve leases; to an agent of the lab they are what etcd is to others."""

    def __init__(self, lab, etcd, build, n=1, *flags, tls=False):
        self.etcd, self.switch, self.tls = etcd, etcd.switch, tls
        nodes = [lab.node(f"c{i + 1}") for i in range(n)]
        self.addresses = [etcd.join(node) for node in nodes]
        if tls:
            self.authority = Authority(lab, "leases")
            # One for all agents, which therefore are one owner.
            self.client = self.authority.issue("lease-client", dns=["nodes.lab"],
                                               usage="clientAuth")
            own = self.authority.issue("lease-server", addresses=self.addresses)
            flags += ("--lease-cert", own.cert, "--lease-key", own.key,
                      "--lease-client-ca", self.authority.cert, "--lease-quota", "64")
        else:
            flags += ("--lease-allow-anonymous",)
        super().__init__(
            Controller(node, build, etcd, "--lease", "2", "--lease-listen", f"{address}:{PORT}",
                       *flags).start()
            for node, address in zip(nodes, self.addresses))

    def join(self, node):
        return self.etcd.join(node)

    def flags(self, program=None):
        scheme = "https" if self.tls else "http"
        flags = ["--lease-server", ",".join(f"{scheme}://{a}:{PORT}" for a in self.addresses)]
        if self.tls:
            flags += ["--lease-cacert", self.authority.cert, "--lease-cert", self.client.cert,
                      "--lease-key", self.client.key]
        return flags

    def leased(self, agent):
        """The subnets that etcd gives to the agent's address."""
        holder = f"lease-{self.switch.address(agent.node)}"
        return {k.rsplit("/", 1)[1].replace("-", "/")
                for k, v in self.etcd.dump(PREFIX + "block/default/").items()
                if json.loads(v)["node"] == holder}

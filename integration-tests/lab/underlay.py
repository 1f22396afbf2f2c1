# SPDX-License-Identifier: Apache-2.0
"""Nodes in several subnets, and a router between them that knows nothing of pods.

    under = Underlay(lab, subnets=3)
    etcd = under.etcd()                  # behind the router too
    node = under.node("n1", subnet=0)    # its default route leads to the router
    under.addresses(node)                # ["10.40.0.2", "fd40:0::2"]
"""

from .etcd import EtcdCluster

ETCD = "10.250.0.0/24"


class Underlay:
    def __init__(self, lab, subnets):
        self.lab = lab
        self.router = lab.node("router")
        for key in ("net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"):
            self.router.sysctl(key, 1)
        self.switches = [lab.switch([self.router], subnet=f"10.40.{i}.0/24",
                                    subnet6=f"fd40:{i}::/64") for i in range(subnets)]

    def etcd(self):
        """A member on a switch of its own, by way of the router."""
        switch = self.lab.switch([self.router], subnet=ETCD)
        cluster = EtcdCluster(self.lab, switch=switch)
        for member in cluster.members:
            self._route(member.node, switch)
        return cluster.start()

    def _route(self, node, switch):
        node.ip(*[f"route add default via {switch.address(self.router, 6 if n.version == 6 else 4)}"
                  for n in switch.subnets])

    def node(self, name, subnet):
        node = self.lab.node(name)
        node.routed = True  # the agent finds etcd by the router
        node.subnet = self.switches[subnet]
        node.subnet.add(node)
        node.sysctl("net.ipv6.conf.eth0.keep_addr_on_down", 1)
        self.default_routes(node)
        return node

    def default_routes(self, node):
        """Also after the link was down: the kernel drops them, and in the lab nobody else adds them."""
        self._route(node, node.subnet)

    def addresses(self, node):
        return [node.subnet.address(node, family) for family in (4, 6)]

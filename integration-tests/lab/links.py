# SPDX-License-Identifier: Apache-2.0
"""Cables and switches between nodes.

`ip` always runs inside one of the two namespaces: made from the host's, a pair would
clash with the host's own interface names.
"""

import ipaddress

from .namespace import Namespace


class Cable:
    """A veth pair between two nodes."""

    def __init__(self, a, b, addrs_a=(), addrs_b=()):
        """Addresses carry their prefix length: "10.0.0.1/24", "fd00::1/64"."""
        self.ends = [(a, a.next_interface(), addrs_a), (b, b.next_interface(), addrs_b)]
        a.plugs.append(self)
        b.plugs.append(self)
        self.plug()

    def plug(self):
        (a, if_a, _), (b, if_b, _) = self.ends
        a.ip(f"link add {if_a} type veth peer name {if_b} netns {b.pid}")
        for node, interface, addrs in self.ends:
            node.configure(interface, *addrs)

    def unplug(self):
        """Take it away at both ends, now: a dying namespace would do so some time later."""
        node, interface, _ = self.ends[0]
        node.ip(f"link del {interface}")

    def interface(self, node):
        return next(i for n, i, _ in self.ends if n is node)

    def cut(self):
        """Both ends lose the carrier, as with a pulled cable. Addresses stay."""
        node, interface, _ = self.ends[0]
        node.ip(f"link set {interface} down")

    def restore(self):
        node, interface, _ = self.ends[0]
        node.ip(f"link set {interface} up")


class Port:
    """A node's place on a switch."""

    def __init__(self, switch, node, number):
        self.switch, self.node, self.name = switch, node, f"port{number}"
        self.interface = node.next_interface()
        self.addresses = [f"{net[number]}/{net.prefixlen}" for net in switch.subnets]
        node.plugs.append(self)
        self.plug()

    def plug(self):
        self.switch.ip(
            f"link add {self.name} type veth peer name {self.interface} netns {self.node.pid}",
            f"link set {self.name} master br0 up")
        self.node.configure(self.interface, *self.addresses)

    def unplug(self):
        self.switch.ip(f"link del {self.name}")


class Switch(Namespace):
    """A bridge in a namespace of its own; the n-th node on it gets the n-th address.

    Multicast snooping is off, so that neighbour discovery and OSPF work from the
    first packet; so is the wait before a port forwards.
    """

    script = """
    ip -batch - <<end
    link set lo up
    link add br0 type bridge mcast_snooping 0 forward_delay 0
    link set br0 up
    end
    """.replace("    ", "")

    def __init__(self, lab, name, subnet, subnet6=None):
        self.subnets = [ipaddress.ip_network(s) for s in (subnet, subnet6) if s]
        self.ports = {}
        self._bridges = 1
        super().__init__(lab, name)

    def add(self, node):
        """Plug a node in; returns its (first) address."""
        self.ports[node] = Port(self, node, len(self.ports) + 1)
        return self.ports[node].addresses[0].split("/")[0]

    def address(self, node, family=4):
        """A node's address here, without the prefix length."""
        addresses = [a.split("/")[0] for a in self.ports[node].addresses]
        return next(a for a in addresses if (":" in a) == (family == 6))

    def interface(self, node):
        return self.ports[node].interface

    def cut(self, node):
        """Pull the node's cable: it sees the carrier go."""
        self.ip(f"link set {self.ports[node].name} down")

    def restore(self, node):
        self.ip(f"link set {self.ports[node].name} up")

    def partition(self, *groups):
        """Only nodes of one group reach each other; carriers stay, packets vanish.

        Nodes in no group stay together, apart from all groups.
        """
        lines = []
        for i, group in enumerate(groups, 1):
            if i == self._bridges:
                lines += [f"link add br{i} type bridge mcast_snooping 0 forward_delay 0",
                          f"link set br{i} up"]
                self._bridges += 1
            lines += [f"link set {self.ports[n].name} master br{i}" for n in group]
        self.heal()
        self.ip(*lines)

    def isolate(self, node):
        """Lose all packets of one node silently: it has a carrier but no neighbours."""
        self.partition([node])

    def separate(self, *nodes):
        """These do not reach each other, but everybody else, as with a broken fabric."""
        self.heal()
        self.ip(*[f"link set {self.ports[n].name} type bridge_slave isolated on" for n in nodes])

    def heal(self):
        """Undo partition, isolate and separate; not cut."""
        lines = [f"link set {p.name} master br0" for p in self.ports.values()]
        lines += [f"link set {p.name} type bridge_slave isolated off" for p in self.ports.values()]
        self.ip(*lines)

# SPDX-License-Identifier: Apache-2.0
"""Routers that are none of ours: Debian's FRR and GoBGP, on a node, never as a service.

    frr = Frr(tor, zebra="", bgpd="router bgp 64700\\n ...").start()
    frr.vtysh("show bgp ipv4 unicast json")
    gobgp = GoBgp(tor, TOML).start()
    gobgp.told_by("10.250.0.3")
"""

import json

from .wait import wait_until

FRR, FOLDER = "/usr/lib/frr", "/run/frr"


class Frr:
    """Each daemon in the foreground; sockets and pid files lie in the node's own /run."""

    def __init__(self, node, zebra="", **daemons):
        """Each daemon's configuration; they start in this order."""
        self.node, self.daemons, self.processes = node, {"zebra": zebra, **daemons}, {}
        node.run(["install", "-d", "-o", "frr", "-g", "frr", FOLDER])

    def start(self):
        for daemon, config in self.daemons.items():
            self.node.write(f"{FOLDER}/{daemon}.conf", config)
            self.processes[daemon] = self.node.spawn(daemon, [
                f"{FRR}/{daemon}", "-f", f"{FOLDER}/{daemon}.conf", "-A", "127.0.0.1", "-P", "0",
                "--log", "stdout", "--log-level", "informational"])
            self._wait_answer(daemon)
        return self

    def _wait_answer(self, daemon):
        def answers():
            assert self.processes[daemon].alive, self.processes[daemon].log
            return self.node.run(["vtysh", "-d", daemon, "-c", "show version"],
                                 check=False).returncode == 0
        wait_until(answers, 60, f"{daemon} to answer")

    def vtysh(self, *commands):
        args = [word for c in commands for word in ("-c", c)]
        return self.node.run(["vtysh", *args]).stdout

    def prefixes(self, family="ipv4"):
        """What BGP has: {prefix: [paths]}."""
        return json.loads(self.vtysh(f"show bgp {family} unicast json")).get("routes", {})


class GoBgp:
    """No forwarding: it only tells its neighbours what the others told it."""

    def __init__(self, node, config):
        self.node, self.process = node, None
        node.write("/run/gobgpd.toml", config)

    def start(self):
        self.process = self.node.spawn("gobgpd", ["gobgpd", "-f", "/run/gobgpd.toml",
                                                  "--api-hosts", "127.0.0.1:50051",
                                                  "--pprof-disable"])
        wait_until(self.answers, 60, "gobgpd to answer")
        return self

    def answers(self):
        assert self.process.alive, self.process.log
        return self.node.run(["gobgp", "global"], check=False).returncode == 0

    def told_by(self, address):
        """The prefixes that a neighbour has announced."""
        said = self.node.run(["gobgp", "-j", "neighbor", address, "adj-in",
                              "-a", "ipv6" if ":" in address else "ipv4"]).stdout
        return set(json.loads(said) or {})

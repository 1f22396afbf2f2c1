# SPDX-License-Identifier: Apache-2.0
"""Static routes: nodes with agents on a fabric, two routers, and networks behind them.

    scene = StaticScene(lab, etcd, build)      # n1, n2, n3 with agents; gw1, gw2 without
    scene.route("vpn", subnet="203.0.113.0/24", gateway=scene.gw(1))
    scene.wait_status("vpn", "n1", lambda s: s.get("subnet"))
    scene.agents[0].node.ping("203.0.113.1")   # what is behind gw1; .2 is behind gw2
"""

import json

from .agent import PREFIX, Agent, pool, put
from .wait import wait_until

# Behind router i lies the i-th address of each; what they all have is a network of its own.
FAR = {4: "203.0.113.0/24", 6: "fd00:f::/64"}
MINUTE = "3000"


class StaticScene:
    """self.nodes, self.agents, self.routers."""

    def __init__(self, lab, etcd, build, nodes=3, *flags):
        self.lab, self.etcd = lab, etcd
        pool(etcd, "web", "10.1.0.0/16")
        self.nodes = [lab.node(f"n{i + 1}") for i in range(nodes)]
        self.routers = [lab.node(f"gw{i + 1}") for i in range(2)]
        self.agents = [Agent(n, build, etcd, "--minute", MINUTE, *flags) for n in self.nodes]
        self.fabric = lab.switch([*self.nodes, *self.routers], "192.168.50.0/24", "fd00:50::/64")
        for i, router in enumerate(self.routers, 1):
            router.ip("link add far up type veth peer name behind", "link set behind up",
                      f"addr add 203.0.113.{i}/24 dev far",
                      f"addr add fd00:f::{i}/64 dev far nodad")
        for n in self.nodes:
            n.ip(f"route add 10.0.0.0/24 via {self.gw(1)}", f"route add fd00::/64 via {self.gw(1, 6)}")
        for a in self.agents:
            a.spawn()
        for a in self.agents:
            a.wait_ready()

    def gw(self, i, family=4):
        """The i-th router's address on the fabric."""
        return self.fabric.address(self.routers[i - 1], family)

    # --- records --------------------------------------------------------------------------------

    def route(self, name, **fields):
        """Writes the record; returns the store's revision."""
        return put(self.etcd, f"static-route/{name}", **fields)

    def text(self, name, text):
        return self.etcd.put(f"{PREFIX}static-route/{name}", text)

    def mark_deleting(self, name):
        record = json.loads(self.etcd.get(f"{PREFIX}static-route/{name}"))
        self.route(name, **record, deleting="2026-11-17T12:00:00Z")

    def record(self, name):
        return self.etcd.get(f"{PREFIX}static-route/{name}")

    def labels(self, node, **labels):
        put(self.etcd, f"spec/{node}", labels=labels)

    # --- what is --------------------------------------------------------------------------------

    def status(self, name, node):
        text = self.etcd.get(f"{PREFIX}status/static-route/{name}/{node}")
        return json.loads(text) if text else None

    def wait_status(self, name, node, is_so=lambda s: s, timeout=30):
        """The first status that is so; `is_so` is never asked about a missing one."""
        found = []

        def there():
            s = self.status(name, node)
            if s is None or not is_so(s):
                return False
            found.append(s)
            return True
        wait_until(there, timeout, f"the status of {name} on {node}: {self.status(name, node)}")
        return found[0]

    def wait_no_status(self, name, node, timeout=30):
        wait_until(lambda: self.status(name, node) is None, timeout,
                   f"{node} to have no status of {name}")

    def wait_record_gone(self, name, timeout=40):
        wait_until(lambda: self.record(name) is None, timeout, f"the record of {name} to go")


def held(node, table="all"):
    """{"203.0.113.0/24": "via ...", ...}: the static routes in the kernel."""
    found = {}
    for family in "-4", "-6":
        said = node.run(["ip", "-j", family, "route", "show", "table", table, "proto", "115"],
                        check=False).stdout
        for r in json.loads(said or "[]"):
            hops = r.get("nexthops") or [r]
            found[r["dst"]] = sorted(h.get("gateway", "") for h in hops)
    return found

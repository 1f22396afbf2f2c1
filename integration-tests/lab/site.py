# SPDX-License-Identifier: Apache-2.0
"""A site: nodes that run BIRD and roostd, and pods on them.

    site = Site(lab, build, etcd)
    a, b = site.member("n1").start(), site.member("n2").start()
    pa, pb = a.pod("pa"), b.pod("pb")          # roost ADD, as a runtime runs it
    wait_until(lambda: pa.pings(pb), 30, "the way from pa to pb")
    a.routes()                                 # {"10.1.0.0/26": "blackhole proto 114", ...}
    site.settle()                              # until every kernel has every block
    site.assert_kept_apart([pa, pb])           # and never had a pod of another node
"""

import json
import re

from . import cni
from .agent import Agent
from .bird import Bird
from .wait import wait_until

# What Debian's package brings: a BIRD that does nothing, until the agent writes its file.
EMPTY = "router id 192.0.2.1;\nprotocol device {}\n"
NETWORK = "pods"


class SitePod:
    """A pod that was made by roost; .address and .addresses are what the result said."""

    def __init__(self, member, name, ifname="eth0", **conf):
        self.member, self.name, self.ifname = member, name, ifname
        self.conf = {"cniVersion": "1.0.0", "name": NETWORK, "type": "roost",
                     "ipam": {"type": "roost-ipam"}, **conf}
        self.pod = member.node.pod(name)
        self.result = self._call("ADD")
        self.addresses = [ip["address"].split("/")[0] for ip in self.result["ips"]]
        self.address = self.addresses[0]

    def _call(self, verb):
        build = self.member.agent.build
        return cni.call(self.member.node, build / "roost", verb, self.conf, container=self.name,
                        ifname=self.ifname, netns=self.pod.netns, path=str(build))

    def pings(self, other, timeout=1, six=False):
        """One echo request. other: a SitePod or an address."""
        address = other if isinstance(other, str) else other.of_family(six)
        done = self.pod.run(["ping", "-n", "-c", "1", "-W", str(timeout), address], check=False,
                            timeout=timeout + 20)
        return done.returncode == 0

    def of_family(self, six):
        return next(a for a in self.addresses if (":" in a) == six)

    def delete(self):
        self._call("DEL")
        self.pod.delete()


class Member:
    """One node of the site: its BIRD and its agent."""

    def __init__(self, site, node, program, flags):
        self.node, self.site = node, site
        self.agent = Agent(node, site.build, site.etcd, *flags, bird=program)
        self.bird = Bird(node, EMPTY, program=program)
        self.monitor = None
        # Towards etcd one family is used, and there is no default route to find the other by.
        if len(site.etcd.switch.subnets) == 2 and "--address" not in flags:
            self.agent.flags += ["--address", f"{self.address()},{self.address(six=True)}"]

    def __repr__(self):
        return f"<member {self.node.name}>"

    def spawn(self):
        """Start without waiting for the agent; the monitor has every route from the first on."""
        self.monitor = self.node.spawn("monitor", ["ip", "monitor", "route"])
        if "none" not in self.agent.flags:  # else BIRD is the test's own business
            self.bird.start("-R")
        self.agent.spawn()
        return self

    def start(self):
        self.spawn()
        self.agent.wait_ready(60)
        return self

    def address(self, six=False):
        """Where the others find it; on the last switch that it was put on."""
        family = 6 if six else 4
        return self.node.plugs[-1].switch.address(self.node, family)

    def next_hops(self, six):
        """The words of a route to it. For IPv6 BIRD also tells, and may use, the link-local one."""
        if not six:
            return (f"via {self.address()} ",)
        interface = self.node.plugs[-1].interface
        said = self.node.run(["ip", "-j", "-6", "addr", "show", "dev", interface]).stdout
        return tuple(f"via {a['local']} " for a in json.loads(said)[0]["addr_info"])

    def pod(self, name, **kwargs):
        return SitePod(self, name, **kwargs)

    def routes(self, family="-4", *what):
        """{destination: the rest of the line} of the main table, or of `what`."""
        lines = self.node.run(["ip", family, "route", "show", *what]).stdout.splitlines()
        found = {}
        for line in lines:
            words = line.split()
            if words[0] in ("blackhole", "unreachable", "prohibit"):
                words = [words[1], words[0], *words[2:]]
            found[words[0]] = " ".join(words[1:])
        return found

    def blocks(self):
        """Own blocks, as the agent has them."""
        return [b for b, state in self.agent.blocks().items() if state == "owned"]

    def by_bird(self, family="-4"):
        """What BIRD has put into the kernel."""
        return {d: line for d, line in self.routes(family).items() if "proto bird" in line}

    def established(self):
        return [p for p, row in self.bird.protocols().items() if "Established" in row]

    def status(self):
        return self.agent.status()

    def wait_configured(self, timeout=30):
        """Until BIRD runs what the agent rendered."""
        wait_until(lambda: self.status()["bird"]["configuration"] in ("published", "unchanged"),
                   timeout, f"BIRD of {self.node.name} to run the rendered configuration",
                   errors=(OSError, KeyError))
        return self

    def wait_route(self, prefix, words="", timeout=60, family="-4"):
        """Until the kernel has a route with (one of) these words; returns the line."""
        words = (words,) if isinstance(words, str) else words

        def there():
            line = self.routes(family).get(prefix)
            return line if line and any(w in line for w in words) else None
        return wait_until(there, timeout, f"a route to {prefix} {words} on {self.node.name}")

    def wait_no_route(self, prefix, timeout=60, family="-4"):
        wait_until(lambda: prefix not in self.routes(family), timeout,
                   f"no route to {prefix} on {self.node.name}")


class Site:
    """Members that share one etcd; all are on its switch, where they also peer."""

    def __init__(self, lab, build, etcd, program="bird"):
        self.lab, self.build, self.etcd, self.program = lab, build, etcd, program
        self.members = []

    def member(self, name=None, *flags, node=None, program=None):
        node = node or self.lab.node(name or f"n{1 + len(self.members)}")
        self.members.append(Member(self, node, program or self.program, flags))
        return self.members[-1]

    def put(self, key, **record):
        return self.etcd.put(f"/roost/v1/{key}", json.dumps(record))

    def dual_pools(self, **fields):
        self.put("pool/web", cidr="10.1.0.0/16", **fields)
        self.put("pool/web6", cidr="fd10:1::/108", **fields)

    def delete(self, key):
        return self.etcd.ctl("del", f"/roost/v1/{key}")

    def start(self, n):
        """n members more, started together."""
        members = [self.member().spawn() for _ in range(n)]
        for m in members:
            m.agent.wait_ready(60)
        return members

    def settle(self, members=None, via=None):
        """Until every kernel has every block, others' by BIRD, and then nothing else.

        via(other, six): possible words of a route to another member; without it, its addresses.
        """
        members = members or self.members
        owned = {m: m.blocks() for m in members}
        hops = {(o, six): (via or Member.next_hops)(o, six)
                for o in members for six in {":" in b for b in owned[o]}}

        def settled(m, six):
            routes = m.routes("-6" if six else "-4")
            left = {d for d, r in routes.items() if "proto bird" in r or r.startswith("blackhole")}
            for other in members:
                for block in (b for b in owned[other] if (":" in b) == six):
                    words = ("blackhole",) if other is m else hops[other, six]
                    if not any(w in routes.get(block, "") for w in words):
                        return False
                    left.discard(block)
            return not left
        for m in members:
            for six in (False, True):
                wait_until(lambda: settled(m, six), 60,
                           f"the routes of {m} to be {owned} and no others")

    def assert_kept_apart(self, pods, members=None):
        """A pod's own route was on its node and, from the first moment on, nowhere else."""
        for m in members or self.members:
            said = m.monitor.log
            for address in (a for p in pods if p.member is not m for a in p.addresses):
                found = re.search(rf"^.*\b{re.escape(address)}(/32|/128)? .*$", said, re.M)
                assert not found, f"on {m}: {found.group()}"

    @staticmethod
    def all_ping(pods, families=(4, 6)):
        """Everybody reaches everybody, by all addresses of families that both have."""
        for a in pods:
            own = {6 if ":" in x else 4 for x in a.addresses} & set(families)
            for b in (b for b in pods if b is not a):
                for address in (x for x in b.addresses if (6 if ":" in x else 4) in own):
                    wait_until(lambda: a.pings(address), 60,
                               f"{a.name} on {a.member} to reach {b.name}, {address}")

# SPDX-License-Identifier: Apache-2.0
"""Somebody removes what we have set in the kernel: it comes back, is told once, and nothing
else changes."""

import re
import time
from datetime import datetime

import pytest

from lab import wait_until
from lab.agent import pool
from lab.steady import SteadyPing

V4, V6 = "net.ipv4.conf", "net.ipv6.conf"
PODS = 4
# {setting of a pod's link: a wrong value}
LINK = {f"{V4}.LINK.proxy_arp": 0, f"{V4}.LINK.rp_filter": 0, f"{V4}.LINK.forwarding": 0,
        "net.ipv4.neigh.LINK.proxy_delay": 80, f"{V6}.LINK.proxy_ndp": 0,
        f"{V6}.LINK.forwarding": 0, f"{V6}.LINK.accept_ra": 2}
HOST = {"net.ipv4.ip_forward": 0, f"{V6}.all.forwarding": 0}


class Pod:
    """A pod of both families."""

    def __init__(self, member, name):
        self.node = member.node
        result = member.add(name, member.node.pod(name).netns)
        self.v4, self.v6 = [ip["address"].split("/")[0] for ip in result["ips"]]
        self.link = member.pod_routes()[self.v4]

    def objects(self):
        """The `ip` lines that remove what netlink announces."""
        return [f"{what} del {address} dev {self.link}" for what in ("route", "neigh")
                for address in (self.v4, self.v6)]

    def sysctls(self):
        return {name.replace("LINK", self.link): wrong for name, wrong in LINK.items()}


class Scene:
    """A node with pods, a ping that runs, and routes of strangers."""

    def __init__(self, member):
        self.member, self.node = member, member.node
        self.pods = [Pod(member, f"p{i}") for i in range(PODS)]
        one = self.pods[0]
        self.node.ip("route add 10.9.0.0/16 via 10.250.0.1 proto 99",
                     "route add 10.1.0.0/20 via 10.250.0.1 proto static metric 77",
                     f"route add 10.8.0.5/32 dev {one.link} proto static",
                     f"route add {one.v4}/32 dev {one.link} proto 99 metric 500",
                     "route add blackhole 10.7.0.0/24 proto 99",
                     "route add 10.6.0.0/24 via 10.250.0.1 table 119 proto bird",
                     "neigh add 10.8.0.5 lladdr 02:00:00:00:00:01 dev eth0")
        self.ping = SteadyPing(self.node, one.v4)
        self.before, self.others = self.state(), self.strangers()
        self._told, self._repairs = self.told(), self.repairs()

    def objects(self):
        lines = [line for pod in self.pods for line in pod.objects()]
        return lines + [f"route del blackhole {block}" for block in self.member.blackholes()]

    def sysctls(self):
        """{name: wrong value}: each pod's link has its share, so that it is no fight."""
        out = {}
        for i, name in enumerate(LINK):
            out[name.replace("LINK", self.pods[i % PODS].link)] = LINK[name]
        return out

    def state(self):
        """All that is ours; equal texts, equal kernel."""
        run = self.node.run
        lines = "".join(run(f"ip -{f} route show table all proto 114").stdout for f in (4, 6))
        lines += run("ip neigh show nud permanent").stdout
        names = [name for pod in self.pods for name in pod.sysctls()]
        return sorted(lines.splitlines()), run(["sysctl", *names, *HOST]).stdout

    def strangers(self):
        """Routes of everybody else, byte for byte; the kernel's own come and go with carriers."""
        lines = "".join(self.node.run(f"ip -d -{f} route show table all").stdout for f in (4, 6))
        return [x for x in lines.splitlines() if not re.search("proto (114|kernel)", x)]

    def told(self):
        return re.findall(r" kernel: (.*) was (?:removed|changed) by another program; restored", self.member.log)

    def repairs(self):
        return self.member.status()["kernel"]["repairs"]

    def wait_repaired(self, what, n, timeout=20):
        """Until all is as it was; n things must have been counted and told, each once."""
        wait_until(lambda: self.state() == self.before, timeout, f"{what} to come back")
        self.ping.wait_more(2)
        assert self.repairs() == self._repairs + n
        assert len(self.told()) == len(self._told) + n
        self._repairs, self._told = self.repairs(), self.told()

    def end(self):
        self.ping.stop()
        assert self.strangers() == self.others


@pytest.fixture
def scene(etcd, cluster):
    """scene(*flags): a Scene; the agent gets these flags."""
    def make(*flags):
        pool(etcd, "web6", "fd00:1::/112")
        [n1] = cluster(1, *flags)
        return Scene(n1)
    return make


def test_what_netlink_announces_comes_back_at_once(scene):
    s = scene()
    took = []
    for line in s.pods[0].objects() + s.objects()[-2:]:
        s.node.ip(line)
        since = time.monotonic()
        wait_until(lambda: s.state() == s.before, 20, f"what `{line}` removed")
        took.append((time.monotonic() - since) * 1000)
        s.wait_repaired(line, 1)
    s.node.ip(*s.pods[1].objects(), *s.pods[2].objects())
    s.wait_repaired("all of two pods", 8)
    print(f"back after {min(took):.0f} to {max(took):.0f} ms")
    s.end()


@pytest.mark.slow(10)
def test_repairs_do_not_outlast_the_tampering(scene):
    """How long each route was missing, by the kernel's own words and times."""
    s = scene()
    monitor = s.node.spawn("monitor", "ip -ts monitor route")

    def listens():
        # The kernel announces no replacement by an equal route.
        s.node.ip("route add 203.0.113.77 dev eth0 proto 99",
                  "route del 203.0.113.77 dev eth0 proto 99")
        return "203.0.113.77" in monitor.log
    wait_until(listens, 20, "the monitor to listen")
    since = time.monotonic()
    while time.monotonic() < since + 8:
        s.node.run("ip route flush proto 114")
        time.sleep(0.2)
    wait_until(lambda: s.state() == s.before, 60, "everything to come back")
    s.node.ip("route add 203.0.113.78 dev eth0 proto 99",
              "route del 203.0.113.78 dev eth0 proto 99")
    monitor.wait_log("Deleted 203.0.113.78")
    missing = missing_times(monitor.log, s.pods[0].v4)
    print(f"missing {len(missing)} times, {max(missing):.3f} s at most, {missing[-1]:.3f} s at last")
    assert len(missing) >= 10
    assert max(missing) < 1
    assert len(s.told()) < 3 * len(s.objects()) + 10
    assert "restored each time" in s.member.log
    s.end()


def missing_times(log, address):
    """Of a route in what `ip -ts monitor` shows: seconds from each removal to its return."""
    out, gone = [], None
    for when, deleted in re.findall(rf"\[(\S+)\] (Deleted )?{re.escape(address)} dev", log):
        at = datetime.fromisoformat(when)
        if deleted:
            gone = gone or at
        elif gone:
            out.append((at - gone).total_seconds())
            gone = None
    assert gone is None
    return out


def test_settings_come_back_with_the_next_compare(scene):
    s = scene("--minute", "1000")
    for name, wrong in s.sysctls().items():
        s.node.sysctl(name, wrong)
        s.wait_repaired(name, 1, 30)
    s.end()


def test_everything_at_once(scene):
    s = scene("--minute", "1000")
    s.node.ip(*s.objects())
    for name, wrong in {**s.sysctls(), **HOST}.items():
        s.node.sysctl(name, wrong)
    wait_until(lambda: s.state() == s.before, 30, "everything to come back")
    s.ping.wait_more()
    s.end()


def test_an_agent_that_was_away_finds_what_is_missing(scene):
    s = scene()
    s.member.kill()
    s.node.ip(*s.objects())
    for name, wrong in {**s.sysctls(), **HOST}.items():
        s.node.sysctl(name, wrong)
    s.member.start()
    wait_until(lambda: s.state() == s.before, 20, "everything to come back")
    s.ping.wait_more()
    s.end()

# SPDX-License-Identifier: Apache-2.0
"""Static routes: what an operator declares is on the nodes that he means, leads somewhere, and
stays there."""

import json
import re
import time

import pytest

from lab import wait_until
from lab.agent import PREFIX, pool, put
from lab.statics import FAR, StaticScene, held

FAMILIES = (4, 6)


@pytest.fixture
def scene(lab, etcd, build):
    """scene(nodes=3, *flags)."""
    def make(nodes=3, *flags):
        return StaticScene(lab, etcd, build, nodes, *flags)
    return make


def far(i, family):
    return f"203.0.113.{i}" if family == 4 else f"fd00:f::{i}"


def wait_reached(node, i, family, timeout=20):
    wait_until(lambda: node.ping(far(i, family), timeout=0.3), timeout,
               f"{node.name} to reach router {i}'s network")


# --- what the operator's own suite shows ---------------------------------------------------------


def test_a_route_is_where_it_is_meant_and_leads_there(scene):
    """Explicit gateway, detected gateway, selector, change of labels, own table, deletion."""
    s = scene()
    n1, n2, n3 = s.nodes
    for f in FAMILIES:
        assert not n1.ping(far(1, f), timeout=0.1)
        s.route(f"vpn{f}", subnet=FAR[f], gateway=s.gw(2, f))
        s.route(f"some{f}", subnet="198.51.100.0/24" if f == 4 else "fd00:e::/64",
                nodeSelector="zone == 'a'")
        s.route(f"table{f}", subnet=FAR[f], gateway=s.gw(1, f), table=77)
        s.route(f"nobody{f}", subnet="198.18.0.0/24" if f == 4 else "fd00:d::/64",
                gateway=s.gw(1, f), nodeSelector="zone == 'nowhere'")
    for f in FAMILIES:
        for n in s.nodes:
            # Explicit: it leads to the second router, and not to the first.
            wait_reached(n, 2, f)
            assert not n.ping(far(1, f), timeout=0.1)
            status = s.wait_status(f"vpn{f}", n.name, lambda x: x.get("subnet"))
            assert (status["subnet"], status["gateways"]) == (FAR[f], [s.gw(2, f)])
            assert status["table"] == 254 and "error" not in status and status["since"]
            assert s.wait_status(f"table{f}", n.name, lambda x: x.get("table"))["table"] == 77
            # Not meant: nothing in the kernel, and nothing to say.
            assert s.status(f"some{f}", n.name) is s.status(f"nobody{f}", n.name) is None
        assert held(n1, "77") == {FAR[f]: [s.gw(1, f)] for f in FAMILIES}
    # A label makes a node one of those that are meant; the gateway is the one towards the probe.
    s.labels("n2", zone="a")
    for f, subnet in zip(FAMILIES, ("198.51.100.0/24", "fd00:e::/64")):
        assert s.wait_status(f"some{f}", "n2", lambda x: x.get("subnet"))["gateways"] == [s.gw(1, f)]
        assert held(n2)[subnet] == [s.gw(1, f)]
        assert subnet not in held(n1)
    s.labels("n2", zone="b")
    for f in FAMILIES:
        s.wait_no_status(f"some{f}", "n2")
    assert set(held(n2)) == set(FAR.values())
    # One agent does not answer: the record waits for it, the others have withdrawn the route.
    s.agents[2].process.pause()
    for f in FAMILIES:
        s.mark_deleting(f"vpn{f}")
        for n in n1, n2:
            s.wait_no_status(f"vpn{f}", n.name)
            assert FAR[f] not in held(n, "main")
    assert s.status("vpn4", "n3") and s.record("vpn4") and n3.ping(far(2, 4))
    s.agents[2].process.resume()
    for f in FAMILIES:
        s.wait_record_gone(f"vpn{f}")
        assert FAR[f] not in held(n3, "main") and FAR[f] in held(n3, "77")
    # Nobody was meant: nobody has a status, and somebody removes it all the same.
    s.mark_deleting("nobody4")
    s.wait_record_gone("nobody4")


def test_a_reply_that_rp_filter_drops_is_delivered_with_the_route(scene):
    """The purpose: who asks from behind the router is answered by the way that he came."""
    s = scene(1)
    [n1] = s.nodes
    n1.ip("route add default via 10.250.0.1")
    for name in "all", "eth0", "eth1":
        n1.sysctl(f"net.ipv4.conf.{name}.rp_filter", 1)
    here = s.fabric.address(n1)

    def asks():
        return s.routers[0].run(["ping", "-n", "-c", "1", "-W", "1", "-I", far(1, 4), here],
                                check=False).returncode == 0
    assert not asks()
    s.route("vpn", subnet=FAR[4], gateway=s.gw(1))
    s.wait_status("vpn", "n1", lambda x: x.get("subnet"))
    wait_until(asks, 20, "an answer")
    s.etcd.delete(f"{PREFIX}static-route/vpn")
    s.wait_no_status("vpn", "n1")
    assert not asks()


# --- changes while nobody looked -----------------------------------------------------------------


def test_what_changed_while_the_agent_was_away_is_so_at_once(scene):
    s = scene(1)
    [n1], [a] = s.nodes, s.agents
    s.route("stays", subnet="198.18.1.0/24", gateway=s.gw(1))
    s.route("moves", subnet="198.18.2.0/24", gateway=s.gw(1))
    s.route("widens", subnet="fd00:a::/64", gateway=s.gw(1, 6))
    s.route("goes", subnet="198.18.3.0/24", gateways=[s.gw(1), s.gw(2)])
    s.route("vanishes", subnet="198.18.4.0/24", gateway=s.gw(1), table=77)
    for name in "stays", "moves", "widens", "goes", "vanishes":
        s.wait_status(name, "n1", lambda x: x.get("subnet"))
    s.text("breaks", json.dumps({"subnet": "198.18.5.0/24", "gateway": s.gw(1)}))
    since = s.wait_status("breaks", "n1", lambda x: x.get("subnet"))["since"]
    a.kill()
    n1.ip("route add 198.18.9.0/24 via 192.168.50.4 proto 115")
    s.route("moves", subnet="198.18.2.0/24", gateway=s.gw(2))
    s.route("widens", subnet="fd00:a::/48", gateway=s.gw(1, 6))
    s.route("comes", subnet="198.18.6.0/24", gateway=s.gw(2))
    s.text("breaks", '{"subnet": 7}')
    s.mark_deleting("goes")
    s.etcd.delete(f"{PREFIX}static-route/vanishes")
    a.start()
    want = {"198.18.1.0/24": [s.gw(1)], "198.18.2.0/24": [s.gw(2)], "fd00:a::/48": [s.gw(1, 6)],
            "198.18.6.0/24": [s.gw(2)], "198.18.5.0/24": [s.gw(1)]}
    wait_until(lambda: held(n1) == want, 20, f"the kernel to be right: {held(n1)}")
    s.wait_record_gone("goes")
    # What cannot be read keeps what it said before, also over a restart, and says so.
    status = s.wait_status("breaks", "n1", lambda x: x.get("error"))
    assert status["subnet"] == "198.18.5.0/24" and "stays in force" in status["error"]
    assert status["since"] >= since
    s.text("breaks", json.dumps({"subnet": "198.18.5.0/24", "gateway": s.gw(2)}))
    s.wait_status("breaks", "n1", lambda x: x.get("gateways") == [s.gw(2)] and "error" not in x)


def test_what_etcd_loses_is_not_withdrawn(scene):
    s = scene(1)
    [n1], [a] = s.nodes, s.agents
    s.route("vpn", subnet=FAR[4], gateway=s.gw(1))
    s.wait_status("vpn", "n1", lambda x: x.get("subnet"))
    # Every key goes at once, the node's own among them: nobody meant this route.
    s.etcd.delete(PREFIX, prefix=True)
    a.process.wait_log("static-route/vpn: the record vanished with etcd's data", 30)
    assert held(n1) == {FAR[4]: [s.gw(1)]}
    # A node that such a cluster has never seen keeps what it finds, and says so.
    a.kill()
    s.etcd.delete(PREFIX, prefix=True)
    pool(s.etcd, "web", "10.1.0.0/16")
    a.start()
    a.process.wait_log("1 static routes are in the kernel that no record tells of", 30)
    assert held(n1) == {FAR[4]: [s.gw(1)]}
    s.route("vpn", subnet=FAR[4], gateway=s.gw(2))
    wait_until(lambda: held(n1) == {FAR[4]: [s.gw(2)]}, 20, "the record to rule again")
    wait_until(lambda: not any(h["part"] == "static-routes-kept" for h in a.status()["health"]
                               if isinstance(h, dict)), 20, "health to be well again")


# --- many ----------------------------------------------------------------------------------------


def test_two_thousand_routes_and_one_change_of_gateway_for_all(scene):
    s = scene(1)
    [n1] = s.nodes
    names = [(f"r{i}", f"10.{100 + i // 250}.{i % 250}.0/24") for i in range(1900)]
    names += [(f"s{i}", f"fd00:a:{i:x}::/64") for i in range(100)]

    def write(i):
        for k in range(0, len(names), 100):
            ops = [(f"{PREFIX}static-route/{name}",
                    json.dumps({"subnet": subnet, "gateway": s.gw(i, 6 if ":" in subnet else 4)}))
                   for name, subnet in names[k:k + 100]]
            s.etcd.put_many(ops)
        return time.monotonic()

    def lead_to(i):
        said = "".join(n1.run(f"ip -{f} route show proto 115").stdout for f in FAMILIES)
        return said.count(f"via {s.gw(i)} ") + said.count(f"via {s.gw(i, 6)} ") == len(names)
    last = write(1)
    wait_until(lambda: lead_to(1), 30, "all routes", poll=0.05)
    took = time.monotonic() - last
    print(f"2,000 routes: {took * 1000:.0f} ms after the last write")
    assert took < 5  # the goal is 1 s; here others work beside us
    monitors = [n1.spawn(f"monitor{f}", ["ip", f"-{f}", "monitor", "route"]) for f in FAMILIES]
    n1.run(["sh", "-c", "until [ $(grep -c . /proc/net/netlink) -gt 0 ]; do :; done"])
    for f, m in zip(FAMILIES, monitors):
        def begun(f=f, m=m):
            n1.ip(f"route replace {'203.0.113.77/32' if f == 4 else 'fd00:77::1/128'} dev eth1")
            return "77" in m.log
        wait_until(begun, 10, "the monitor to hear")
    last = write(2)
    wait_until(lambda: lead_to(2), 30, "all routes over the other router", poll=0.05)
    print(f"changed: {(time.monotonic() - last) * 1000:.0f} ms after the last write")
    n1.ip("route replace 203.0.113.78/32 dev eth1", "route replace fd00:78::1/128 dev eth1")
    for m in monitors:
        m.wait_log(r"203\.0\.113\.78|fd00:78::1")
    said = "".join(m.log for m in monitors)
    assert "Deleted" not in said
    assert len(re.findall(r"via \S+ dev eth1 proto 115", said)) == len(names)
    wait_until(lambda: len(s.etcd.list(f"{PREFIX}status/static-route/")) == len(names), 60,
               "all statuses")


# --- tampering -----------------------------------------------------------------------------------


def test_a_route_that_somebody_removes_is_back_and_counted(scene):
    s = scene(1)
    [n1], [a] = s.nodes, s.agents
    for f in FAMILIES:
        s.route(f"kept{f}", subnet=FAR[f], gateway=s.gw(1, f))
        s.wait_status(f"kept{f}", "n1", lambda x: x.get("subnet"))
        n1.run(f"ip -{f} route del {FAR[f]} proto 115")
        wait_reached(n1, 1, f)
        status = s.wait_status(f"kept{f}", "n1", lambda x: x.get("tampered"))
        assert status["tampered"]["count"] == 1 and status["tampered"]["last"]
    # A thousand times, as fast as can be: restored five times and then five times a second.
    before, since = cpu(a), time.monotonic()
    n1.run(["sh", "-c", f"i=0; while [ $i -lt 1000 ]; do ip route del {FAR[4]} proto 115 "
            "2>/dev/null; i=$((i + 1)); done"], timeout=60)
    used = cpu(a) - before
    print(f"the agent used {used * 1000:.0f} ms of processor for 1,000 removals")
    took = time.monotonic() - since
    assert used < 0.1 + 0.02 * took
    wait_reached(n1, 1, 4)
    status = s.wait_status("kept4", "n1", lambda x: x["tampered"]["count"] > 3)
    assert status["tampered"]["count"] < 10 + 5 * took
    a.process.wait_log("restored each time")
    metrics = a.metrics()
    assert metrics["roost_static_routes_applied"] == 2
    assert metrics["roost_static_routes_tampered_total"] >= 4


def test_a_route_that_is_only_reported_is_left_away(scene):
    s = scene(1)
    [n1], [a] = s.nodes, s.agents
    s.route("seen", subnet=FAR[4], gateway=s.gw(1), onTamper="report")
    s.wait_status("seen", "n1", lambda x: x.get("subnet"))
    n1.run(f"ip route del {FAR[4]} proto 115")
    status = s.wait_status("seen", "n1", lambda x: "error" in x)
    assert "subnet" not in status and "onTamper" in status["error"]
    assert status["tampered"]["count"] == 1
    assert not held(n1)
    # Another word about it, and it is there again.
    s.route("seen", subnet=FAR[4], gateway=s.gw(2), onTamper="report")
    s.route("seen6", subnet=FAR[6], gateway=s.gw(2, 6), onTamper="report")
    s.wait_status("seen", "n1", lambda x: x.get("gateways") == [s.gw(2)])
    s.wait_status("seen6", "n1", lambda x: x.get("subnet"))
    # What the kernel drops with a link nobody has taken away: it comes back with the link, also
    # where the agent hears of both in one go.
    both = {FAR[f]: [s.gw(2, f)] for f in FAMILIES}
    for at_once in False, True:
        if at_once:
            a.process.pause()
        n1.run("ip link set eth1 down")
        if not at_once:
            wait_until(lambda: not held(n1), 10, "the kernel to drop it")
        n1.ip("link set eth1 up", f"addr add {s.fabric.address(n1, 6)}/64 dev eth1 nodad")
        if at_once:
            a.process.resume()
        wait_until(lambda: held(n1) == both, 20, f"both to be there again: {held(n1)}")
    assert s.wait_status("seen", "n1", lambda x: x.get("subnet"))["tampered"]["count"] == 1
    # A stranger's in its place is left, and named.
    n1.run(f"ip route replace {FAR[4]} via {s.gw(1)}")
    status = s.wait_status("seen", "n1", lambda x: "boot" in x.get("error", "")
                           or "onTamper" in x.get("error", ""))
    assert n1.run(f"ip route show {FAR[4]}").stdout.split()[:3] == [FAR[4], "via", s.gw(1)]


# --- bad records ---------------------------------------------------------------------------------

BAD = {
    "no-json": ("{", "JSON"),
    "no-subnet": ({"subnet": "somewhere"}, "subnet"),
    "host-bits": ({"subnet": "198.18.0.1/24"}, "198.18.0.1/24"),
    "default": ({"subnet": "0.0.0.0/0"}, "default route"),
    "loopback": ({"subnet": "127.1.0.0/16"}, "loopback"),
    "link-local": ({"subnet": "fe80:1::/64"}, "link-local"),
    "other-family": ({"subnet": "198.18.0.0/24", "gateway": "fd00:50::4"}, "gateway"),
    "table-255": ({"subnet": "198.18.0.0/24", "table": 255}, "255"),
    "table-range": ({"subnet": "198.18.0.0/24", "table": 4294967295}, "table"),
    "protected": ({"subnet": "172.20.5.0/24"}, "172.20.0.0/16"),
    "in-pool": ({"subnet": "10.1.7.0/24"}, "10.1.0.0/16, which is a pool"),
    "around-pool": ({"subnet": "10.0.0.0/9"}, "10.1.0.0/16, which is a pool"),
    "of-a-pool-that-was": ({"subnet": "10.4.1.0/24"}, "10.4.0.0/16, which is a pool"),
    "etcd": ({"subnet": "10.250.0.0/28"}, "10.250.0."),
    "own": ({"subnet": "192.168.50.0/28"}, "this node's own"),
    "off-link": ({"subnet": "198.18.0.0/24", "gateway": "192.168.51.1"}, "on no subnet"),
    "itself": ({"subnet": "198.18.0.0/24", "gateway": "192.168.50.1"}, "this node itself"),
    "probe": ({"subnet": "10.0.0.0/24"}, "10.0.0.1"),
    "twin": ({"subnet": "198.18.77.0/24", "gateway": "192.168.50.3"}, "static route good"),
}


def test_bad_records_are_named_on_the_nodes_that_they_mean(scene):
    s = scene(2, "--protected-subnets", "172.20.0.0/16,fd00:99::/32")
    put(s.etcd, "extent/default/old", cidr="10.4.0.0/16", blockSize=26)
    good = {"subnet": "198.18.77.0/24", "gateway": s.gw(1)}
    s.route("good", **good)
    s.labels("n1", here="yes")
    for n in "n1", "n2":
        s.wait_status("good", n, lambda x: x.get("subnet"))
    for name, (record, _) in BAD.items():
        if isinstance(record, dict):
            record = json.dumps({**record, "nodeSelector": "here == 'yes'"})
        s.text(name, record)
    for name, (record, words) in BAD.items():
        status = s.wait_status(name, "n1", lambda x: x.get("error"))
        assert words in status["error"] and "subnet" not in status, (name, status)
        if isinstance(record, dict):
            assert s.status(name, "n2") is None
    # Nothing else is disturbed; and what goes bad keeps what it was.
    assert held(s.nodes[0]) == held(s.nodes[1]) == {good["subnet"]: [s.gw(1)]}
    s.route("good", subnet="172.20.1.0/24", gateway=s.gw(1))
    status = s.wait_status("good", "n1", lambda x: x.get("error"))
    assert status["subnet"] == good["subnet"] and "172.20.0.0/16" in status["error"]
    assert held(s.nodes[0]) == {good["subnet"]: [s.gw(1)]}
    metrics = s.agents[0].metrics()
    assert metrics["roost_static_routes_errors"] == len(BAD) + 1
    # One that cannot be read can be deleted all the same.
    s.text("no-subnet", json.dumps({"subnet": "somewhere", "deleting": "2026-11-17T12:00:00Z"}))
    s.wait_record_gone("no-subnet")


def cpu(agent):
    """Seconds of processor that the agent has used."""
    pid = agent.process.pid
    words = open(f"/proc/{pid}/stat", encoding="ascii").read().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / 100

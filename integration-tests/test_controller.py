# SPDX-License-Identifier: Apache-2.0
"""roost-controller on a real etcd: one leads, nodes come and go, nothing is taken from the living."""

import ipaddress
import json
import pathlib
import re
import socket
import time

import pytest

from lab.agent import PREFIX, check_metrics, pool, put
from lab.controller import (LEADER, PORT, Controller, Simulated, acts, etcd_txn, leader_id, owned, pool_of_all,
                            revoke_status)
from lab.ctl import Ctl
from lab.kube import KubeApi, reply
from lab.wait import wait_until

NOW = {"by": "test", "when": "2026-11-16T02:45:55Z", "now": True}
DOCS = pathlib.Path(__file__).resolve().parent.parent / "docs"
# reclaimAfter is at least 900 s; with such minutes that is 7.5 s.
QUICK = ("--lease", "2", "--minute", "500")


def names(etcd, kind):
    return {k[len(PREFIX + kind):] for k in etcd.dump(PREFIX + kind)}


@pytest.mark.limit(180)
@pytest.mark.slow(10)
def test_three_controllers_while_leaders_die_stop_and_are_cut_off(lab, etcd, build, record_property):
    controllers = [Controller(lab.node(f"c{i}"), build, etcd, *QUICK).start() for i in (1, 2, 3)]
    pool_of_all(etcd)
    nodes, removed = {}, set()

    def leader():
        return wait_until(lambda: next((c for c in controllers if c.leads()), None), 30, "a leader")

    def another(old):
        wait_until(lambda: leader_id(etcd) and not old.leads(), 30, "another leader")

    def kill(c):
        c.kill()
        another(c)
        c.start()

    def pause(c):
        c.process.pause()
        another(c)
        c.process.resume()

    def cut(c):
        etcd.switch.cut(c.node)
        another(c)
        etcd.switch.restore(c.node)

    def stop(c):
        c.stop()
        another(c)
        c.start()

    for i, disturb in enumerate((kill, pause, cut, stop, pause)):
        old = leader()
        fresh = [f"s{i * 40 + j}" for j in range(40)]
        for j, name in enumerate(fresh):
            nodes[name] = Simulated(etcd, name, range((i * 40 + j) * 3, (i * 40 + j) * 3 + 3),
                                    alive=False).add()
        gone = [n for n in nodes if n not in removed][::2]
        for name in gone[:len(gone) // 2]:
            etcd_txn(etcd, {f"removed/{name}": NOW})
        disturb(old)
        for name in gone[len(gone) // 2:]:
            etcd_txn(etcd, {f"removed/{name}": NOW})
        removed.update(gone)
    wait_until(lambda: not names(etcd, "removed/"), 60, "everything removed to be freed")

    left = [n for n in nodes if n not in removed]
    assert names(etcd, "node/") == set(left)
    assert names(etcd, "block/default/") == {b for n in left for b in nodes[n].blocks}
    assert {h.split("/")[0] for h in names(etcd, "host/")} == set(left)
    assert len(removed) + len(nodes) >= 200
    done, elections = acts(etcd)
    freed = {k for a in done for k in a.keys if k.startswith(PREFIX + "block/")}
    assert len(freed) == 3 * len(removed), "every block was freed by a transaction of a leader"
    record_property("told", f"{len(nodes)} nodes, {len(removed)} removed, {len(elections)} "
                            f"elections, {len(done)} transactions of {len({a.leader for a in done})}"
                            " controllers")
    assert len(elections) >= 6


@pytest.mark.limit(200)
@pytest.mark.plain("it measures time")
def test_five_hundred_of_five_thousand_nodes_are_removed(lab, etcd, build, record_property):
    pool_of_all(etcd)
    keys = {}
    for i in range(5000):
        keys.update(Simulated(etcd, f"s{i:04}", range(i * 3, i * 3 + 3), alive=i >= 500).keys())
    etcd_txn(etcd, keys)
    c = Controller(lab.node("c1"), build, etcd, "--minute", "5000").start()
    wait_until(lambda: c.metrics().get("roost_controller_comparisons_total", 0) > 0, 60,
               "the first comparison", errors=(Exception,))
    assert c.metrics()['roost_cluster_nodes{state="silent"}'] == 500
    before = time.monotonic()
    etcd_txn(etcd, {f"removed/s{i:04}": NOW for i in range(500)})
    wait_until(lambda: not names(etcd, "removed/"), 100, "500 nodes to be freed")
    took = time.monotonic() - before
    assert len(names(etcd, "block/default/")) == 13500
    assert len(names(etcd, "host/")) == 13500
    m = c.metrics()
    status = c.node.run(["cat", f"/proc/{c.process.pid}/status"], check=False).stdout
    status = status or open(f"/proc/{c.process.pid}/status").read()
    peak, now = (int(re.search(rf"{k}:\s+(\d+) kB", status)[1]) // 1024 for k in ("VmHWM", "VmRSS"))
    record_property("told", f"500 of 5,000 nodes freed in {took:.1f} s (goal 10), one comparison "
                            f"{m['roost_controller_comparison_seconds']:.2f} s (goal 1), "
                            f"memory {now} MB, at most {peak} MB (goal 64)")
    assert m["roost_controller_comparison_seconds"] < 10
    assert peak < 128


@pytest.mark.limit(150)
@pytest.mark.slow(25)
def test_a_stopped_node_keeps_and_a_removed_one_loses_its_addresses(lab, etcd, build, agents):
    pool(etcd, cidr="10.1.0.0/27", blockSize=28, cooldownSeconds=0)
    put(etcd, "config", reclaimAfter=900)
    c = Controller(lab.node("c1"), build, etcd, *QUICK).start().wait_leads()
    ctl = Ctl(lab.node("op"), build, etcd)
    n1, n2 = agents("--minute", "500").start(), agents().start()
    first = {n1.assign(f"c{i}")[0] for i in range(3)}
    second = {n2.assign(f"c{i}")[0] for i in range(16)}
    n1.wait_agreed()

    # Stopped: whatever happens meanwhile, and however long, nobody else gets its addresses.
    n1.kill()
    revoke_status(etcd, "n1")
    compared = c.metrics()["roost_controller_comparisons_total"]
    wait_until(lambda: c.metrics()["roost_controller_comparisons_total"] > compared + 8, 60,
               "eight comparisons")
    assert "silent" in ctl("node list") and len(owned(etcd, "n1")) == 1
    assert c.metrics()['roost_cluster_nodes{state="silent"}'] == 1
    assert n2.refuses("more").code == 100
    # It serves as soon as etcd has confirmed that its blocks are still its own.
    n1.start()
    first |= {n1.assign("again")[0]}
    assert first <= set(n1.held())

    # Removed while it lives: it keeps what pods use, and the controller says so.
    assert ctl.run("node delete n1 --yes").returncode == 0
    c.process.wait_log("node n1 was removed, but its agent is alive")
    n1.wait_health("removed")
    assert len(owned(etcd, "n1")) == 1 and n2.refuses("more").code == 100

    # And dead: after reclaimAfter, not before it counted as silent.
    n1.kill()
    revoke_status(etcd, "n1")
    etcd_txn(etcd, {"static-route/vpn": {"subnet": "172.20.0.0/16", "deleting": NOW["when"]},
                    "status/static-route/vpn/n1": {"subnet": "172.20.0.0/16"},
                    "status/static-route/gone/n2": {"subnet": "172.21.0.0/16"}})
    wait_until(lambda: c.metrics()['roost_cluster_removed_nodes{state="waiting"}'] == 1, 20,
               "the controller to wait")
    assert len(owned(etcd, "n1")) == 1
    assert names(etcd, "static-route/") == {"vpn"}, "a dead node's report holds it"
    wait_until(lambda: not names(etcd, "removed/"), 60, "n1 to be freed")
    assert not owned(etcd, "n1") and not names(etcd, "host/n1/")
    # With the last report of it a route that is being deleted goes.
    wait_until(lambda: not names(etcd, "static-route/"), 20, "the record to go")
    assert not names(etcd, "status/static-route/")
    # Every metric of its own is explained, and nothing is that does not exist.
    page = pathlib.Path(__file__).resolve().parent.parent / "docs/CONTROLLER.md"
    shown = {re.match(r"\w+", k)[0] for k in c.metrics()}
    assert set(re.findall(r"^\| `(roost_(?!kubernetes_)\w+)", page.read_text(), re.M)) == {
        k for k in shown if k.startswith(("roost_controller_", "roost_cluster_"))}
    more = wait_until(lambda: n2.assign("more"), 30, "an address of n1's block",
                      errors=AssertionError)
    assert ipaddress.ip_address(more[0]) in ipaddress.ip_network("10.1.0.0/27")
    assert more[0] not in second


@pytest.mark.limit(150)
def test_a_node_that_was_removed_with_now_and_comes_back(lab, etcd, build, agents):
    pool(etcd, cidr="10.1.0.0/26", blockSize=28, cooldownSeconds=0)
    Controller(lab.node("c1"), build, etcd, *QUICK).start().wait_leads()
    ctl = Ctl(lab.node("op"), build, etcd)
    n1, n2 = agents().start(), agents().start()
    kept = n1.assign("kept")[0]
    n1.wait_agreed()
    # Alive, and somebody says that it is off: not even roostctl believes it.
    assert "alive" in ctl.refuses("node delete n1 --now --yes", 1)
    etcd.switch.cut(n1.node)
    revoke_status(etcd, "n1")
    assert ctl.run("node delete n1 --now --yes").returncode == 0
    wait_until(lambda: not names(etcd, "removed/"), 30, "n1 to be freed at once")
    assert not owned(etcd, "n1")
    # Another node takes all there is, that address too.
    taken = {n2.assign(f"c{i}")[0] for i in range(60)}
    assert kept in taken
    # Cut off, it still believes in its block; back again it finds out before it gives anything.
    etcd.switch.restore(n1.node)
    n1.wait_health(f"block/default/{kept.rsplit('.', 1)[0]}.{int(kept.rsplit('.', 1)[1]) & ~15}-28",
                   "belongs to node n2", timeout=60)
    wait_until(lambda: f"{PREFIX}node/n1" in etcd.dump(PREFIX + "node/"), 30, "n1 to register")
    n2.release("c0")
    got = {n1.assign(f"new{i}")[0] for i in range(1)} if owned(etcd, "n1") else set()
    assert not got & taken
    assert kept in n1.held() and not owned(etcd, "n1") & owned(etcd, "n2")
    # Its pod goes, and with it the block it lost.
    n1.release("kept")
    n1.wait_well(f"block/default/{kept.rsplit('.', 1)[0]}.{int(kept.rsplit('.', 1)[1]) & ~15}-28")


@pytest.mark.limit(150)
@pytest.mark.slow(10)
def test_a_full_pool_gets_back_what_others_do_not_need(lab, etcd, build, agents):
    pool(etcd, cidr="10.1.0.0/27", blockSize=28, cooldownSeconds=0)
    Controller(lab.node("c1"), build, etcd, *QUICK).start().wait_leads()
    n1, n2 = agents().start(), agents().start()
    for i in range(17):
        n1.assign(f"c{i}")
    assert len(n1.blocks()) == 2
    # Empty, but kept for the next pod: of the other block every address is in use.
    inside = {b: {a for a in n1.held() if ipaddress.ip_address(a) in ipaddress.ip_network(b)}
              for b in n1.blocks()}
    n1.release(n1.held()[min(inside.values(), key=len).pop()])
    n1.wait_agreed()
    assert n2.refuses("p").code == 100
    got = wait_until(lambda: n2.assign("p"), 60, "a block to be given back and claimed",
                     errors=AssertionError)
    assert got[0] not in n1.held() and len(n1.blocks()) == 1
    status = json.loads(etcd.get(PREFIX + "status/pool/web"))
    assert any("full" in e["what"] for e in status["events"]), status
    wait_until(lambda: not [k for k in names(etcd, "host/n1/") if k.startswith("give-back")], 20,
               "n1 to answer")


@pytest.mark.limit(150)
@pytest.mark.quick
def test_nodes_follow_kubernetes_but_not_blindly(lab, etcd, build):
    pool_of_all(etcd)
    c = Controller(lab.node("c1"), build, etcd, *QUICK)
    api = KubeApi(c.node)
    try:
        c.flags += ["--kubernetes", "--kubeconfig", api.kubeconfig(token="secret")]
        for i in range(10):
            Simulated(etcd, f"n{i}", [i], alive=False).add()
            api.put(f"n{i}", {"zone": "a"})
        put(etcd, "spec/n3", asn=65003, labels={"old": "x"})
        c.start()

        def spec(i):
            return json.loads(etcd.get(f"{PREFIX}spec/n{i}") or "{}")

        def uid(i):
            return api.nodes[f"n{i}"]["metadata"]["uid"]
        wait_until(lambda: all(spec(i).get("kubernetesUid") == uid(i) for i in range(10)), 30,
                   "UIDs in spec/")
        assert spec(3)["asn"] == 65003 and spec(3)["labels"]["zone"] == "a"
        assert "old" not in spec(3)["labels"]

        # A heartbeat changes nothing, a label does.
        before = {kv.key: kv.mod for kv in etcd.list(PREFIX + "spec/")}
        for i in range(10):
            api.touch(f"n{i}")
        api.put("n4", {"zone": "b"})
        wait_until(lambda: spec(4)["labels"]["zone"] == "b", 30, "the label")
        after = {kv.key: kv.mod for kv in etcd.list(PREFIX + "spec/")}
        assert {k for k in after if after[k] != before[k]} == {f"{PREFIX}spec/n4"}

        # Two that are deleted together count as removed; of what was deleted while nobody led too.
        api.delete("n0")
        api.delete("n1")
        wait_until(lambda: names(etcd, "removed/") >= {"n0", "n1"}, 30, "n0 and n1 to be removed")
        assert json.loads(etcd.get(f"{PREFIX}removed/n0"))["by"] == "kubernetes"
        c.stop()
        api.delete("n5")
        c.start()
        wait_until(lambda: "n5" in names(etcd, "removed/"), 30, "n5 to be removed")
        assert names(etcd, "block/default/") and owned(etcd, "n5")

        # Many at once: an alarm, and nothing else. A new Node of that name is welcome.
        for i in (6, 7, 8):
            api.delete(f"n{i}")
        c.process.wait_log("gone from Kubernetes at once", 30)
        compared = c.metrics()["roost_controller_comparisons_total"]
        wait_until(lambda: c.metrics()["roost_controller_comparisons_total"] > compared + 4, 30,
                   "more comparisons")
        assert not names(etcd, "removed/") & {"n6", "n7", "n8"}
        assert "kubernetes-nodes" in c.get("/readyz")[1]
        for i in (5, 6, 7, 8):
            api.put(f"n{i}")
        wait_until(lambda: "n5" not in names(etcd, "removed/") and spec(5).get(
            "kubernetesUid") == uid(5), 30, "n5 to be back")
    finally:
        api.close()


def kubernetes_problem(c):
    return 'roost_health_problem{part="kubernetes",level="warning"}' in c.metrics() or \
        any(p["part"] == "kubernetes" for p in json.loads(c.get("/readyz")[1])["problems"])


@pytest.mark.limit(120)
def test_a_problem_with_kubernetes_ends_with_the_leadership(lab, etcd, build):
    """Stopped while the API server was away, and leading again when it is back; counters go on."""
    c = Controller(lab.node("c1"), build, etcd, *QUICK)
    api = KubeApi(c.node)
    try:
        c.flags += ["--kubernetes", "--kubeconfig", api.kubeconfig(token="secret")]
        api.put("n1", {"odd": "not ours"})
        c.start()
        wait_until(lambda: c.metrics().get("roost_kubernetes_connected") == 1, 30, "the watch")
        now = c.metrics()
        assert now["roost_kubernetes_nodes"] == now["roost_kubernetes_lists_total"] == 1
        assert now["roost_kubernetes_watches_total"] == 1 and now["roost_kubernetes_silence_seconds"] < 60
        assert now['roost_kubernetes_requests_total{verb="list",outcome="ok"}'] == 1
        assert now['roost_kubernetes_left_out_total{what="label"}'] == 1
        events = now["roost_kubernetes_events_total"]
        api.touch("n1")
        wait_until(lambda: c.metrics()["roost_kubernetes_events_total"] > events, 30, "an event")
        api.compact()
        wait_until(lambda: c.metrics()["roost_kubernetes_lists_total"] == 2, 30, "another list")
        assert c.metrics()['roost_kubernetes_requests_total{verb="watch",outcome="expired"}'] >= 1

        api.fault = lambda request: reply(503, "ServiceUnavailable", "away")
        api.cut()
        wait_until(lambda: kubernetes_problem(c), 30, "the problem")
        now = c.metrics()
        assert now['roost_kubernetes_requests_total{verb="watch",outcome="failed"}'] >= 1
        assert now["roost_kubernetes_connected"] == 0
        text = c.get("/metrics")[1]
        check_metrics(text)
        shown = set(re.findall(r"^# TYPE (roost_\S+)", text, re.M))
        documented = "".join((DOCS / name).read_text() for name in ("CONTROLLER.md", "METRICS.md"))
        assert shown and not [name for name in shown if f"`{name}`" not in documented]

        c.process.pause()
        before = leader_id(etcd)
        wait_until(lambda: leader_id(etcd) != before, 30, "the lease to end")
        api.fault = None
        etcd.put(LEADER, json.dumps({"id": "another"}))
        c.process.resume()
        # A stand-by asks Kubernetes nothing, so it has no problem with it either.
        wait_until(lambda: json.loads(c.get("/readyz")[1])["leader"] == "another", 30, "a stand-by")
        assert not kubernetes_problem(c), c.get("/readyz")[1]
        assert "roost_kubernetes_nodes" not in c.metrics()
        etcd.delete(LEADER)
        wait_until(lambda: c.metrics()["roost_controller_elections_total"] == 2 and
                   c.metrics().get("roost_kubernetes_connected") == 1, 30, "it to lead again")
        assert not kubernetes_problem(c), c.get("/readyz")[1]
        after = c.metrics()
        assert after["roost_kubernetes_lists_total"] >= 3
        counters = [k for k in now if k.startswith("roost_kubernetes_") and "_total" in k]
        assert len(counters) >= 14 and all(after[k] >= now[k] for k in counters)
    finally:
        api.close()


def test_a_kubeconfig_that_is_put_right_ends_its_problem(lab, etcd, build):
    """It was good at the start, and gone at the election."""
    c = Controller(lab.node("c1"), build, etcd, *QUICK)
    api = KubeApi(c.node)
    try:
        path = api.kubeconfig(token="secret")
        c.flags += ["--kubernetes", "--kubeconfig", path]
        etcd.put(LEADER, json.dumps({"id": "another"}))
        c.start()
        wait_until(lambda: c.get("/readyz")[0] == 200, 30, "a stand-by")
        path.rename(f"{path}.away")
        etcd.delete(LEADER)
        wait_until(lambda: kubernetes_problem(c), 30, "the problem")
        assert c.metrics()["roost_kubernetes_connected"] == 0
        path.with_name(f"{path.name}.away").rename(path)
        wait_until(lambda: c.metrics()["roost_kubernetes_connected"] == 1, 30, "the watch")
        assert not kubernetes_problem(c), c.get("/readyz")[1]
    finally:
        api.close()


def test_a_wrong_kubeconfig_is_told_at_the_start(lab, etcd, build):
    c = Controller(lab.node("c1"), build, etcd, "--kubernetes", "--kubeconfig", "/nowhere")
    done = c.node.run([build / "roost-controller", *etcd.flags(), *c.flags], check=False)
    assert done.returncode == 1 and "/nowhere" in done.stderr


@pytest.mark.parametrize("spread", [False, True], ids=["one address", "many addresses"])
def test_silent_connections_keep_no_probe_out(lab, etcd, build, spread):
    probes = 9643
    c = Controller(lab.node("c1"), build, etcd, "--lease", "2", "--probes", probes).start().wait_leads()

    def silent(port, i):
        s = c.node.socket(socket.AF_INET, socket.SOCK_STREAM)
        s.bind((f"127.0.0.{1 + i if spread else 1}", 0))
        s.connect(("127.0.0.1", port))
        return s
    held = [silent(port, i) for port in (PORT, probes) for i in range(40)]
    for port, path, status in ((PORT, "/healthz", "200"), (PORT, "/metrics", "200"),
                               (probes, "/healthz", "200"), (probes, "/readyz", "200"),
                               (probes, "/metrics", "404")):
        done = c.node.run(["curl", "-s", "-m", 2, "-o", "/dev/null", "-w", "%{http_code}",
                           f"http://127.0.0.1:{port}{path}"], check=False)
        assert done.stdout == status, (port, path, done)
    for s in held:
        s.close()

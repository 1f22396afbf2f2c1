# SPDX-License-Identifier: Apache-2.0
"""What roostd tells about itself: /metrics, /healthz, /readyz, BIRD's configuration."""

import json
import pathlib
import re

import pytest

from lab import wait_until
from lab.agent import check_metrics, samples
from lab.site import Site

DOCS = pathlib.Path(__file__).resolve().parent.parent / "docs"
PORT = 9641
SECRET = "s3cret#word"
KEY = "/etc/roost/peer.key"
SUFFIXES = ("_bucket", "_sum", "_count")


def families(text):
    return set(re.findall(r"^# TYPE (\S+)", text, re.M))


def curl(node, path, address="127.0.0.1", method="GET"):
    """(status, body) over TCP, from within the node."""
    done = node.run(["curl", "-sS", "-X", method, "-w", "\n%{http_code}",
                     f"http://{address}:{PORT}{path}"])
    body, status = done.stdout.rsplit("\n", 1)
    return int(status), body


def site_of_two(lab, build, etcd, *flags):
    site = Site(lab, build, etcd)
    site.put("pool/web", cidr="10.1.0.0/16")
    a, b = site.member("n1", *flags).spawn(), site.member("n2").spawn()
    for m in (a, b):
        m.agent.wait_ready(60)
    return site, a, b


@pytest.mark.slow(10)
def test_numbers_move_and_promtool_likes_them(lab, build, etcd):
    site, a, b = site_of_two(lab, build, etcd, "--metrics", str(PORT))
    pod = a.pod("p1")
    wait_until(lambda: any(v for k, v in a.agent.metrics().items()
                           if k.startswith("roost_bgp_session_up")),
               60, "the session to be up in the metrics")
    status, text = curl(a.node, "/metrics")
    assert status == 200
    check_metrics(text)
    now = samples(text)
    assert now['roost_addresses{pool="web",state="used"}'] == 1
    assert now['roost_blocks{pool="web",state="owned"}'] >= 1
    assert now['roost_attachments{state="attached"}'] == 1
    for verb in ("assign", "attach"):
        assert now[f'roost_requests_total{{verb="{verb}",outcome="ok"}}'] == 1
        assert now[f'roost_request_duration_seconds_count{{verb="{verb}"}}'] == 1
        assert 0 < now[f'roost_request_duration_seconds_sum{{verb="{verb}"}}'] < 60
    assert now["roost_etcd_connected"] == now["roost_bird_connected"] == now["roost_ready"] == 1
    assert now['roost_etcd_requests_total{outcome="ok"}'] > 0
    assert now["roost_etcd_silence_seconds"] < 60
    assert now['roost_passes_total{pass="kernel",outcome="ok"}'] > 0
    assert now['roost_bird_reloads_total{outcome="accepted"}'] >= 1
    assert now['roost_bgp_sessions{state="established"}'] == 1
    assert now["roost_kernel_links"] == 1 and now["roost_kernel_routes"] >= 2
    assert now["process_resident_memory_bytes"] > 1e6 and now["process_open_fds"] > 5
    assert [k for k in now if k.startswith("roost_build_info{")]

    # A route is taken away, a reload is needed, the pod goes.
    a.node.run(["ip", "route", "del", f"{pod.address}/32"])
    wait_until(lambda: a.agent.metrics()['roost_kernel_repairs_total{kind="route"}'] >= 1, 10,
               "the repair, before the pod and its route go")
    site.put("config", bgp={"holdTime": 60})
    pod.delete()

    def moved():
        m = a.agent.metrics()
        return (m['roost_kernel_repairs_total{kind="route"}'] >= 1
                and m['roost_bird_reloads_total{outcome="accepted"}']
                > now['roost_bird_reloads_total{outcome="accepted"}']
                and m['roost_bird_reload_duration_seconds_count']
                > now['roost_bird_reload_duration_seconds_count']
                and m['roost_requests_total{verb="detach",outcome="ok"}'] == 1
                and m['roost_addresses{pool="web",state="used"}'] == 0
                and m["roost_links_destroyed_total"] == 1)
    wait_until(moved, 60, "the numbers to move")

    # The port shows these three and nothing of the API, not even that it is there.
    for path in ("/v1/status", "/v1/ipam/list", "/v1/bird/config", "/v1/ready"):
        assert curl(a.node, path)[0] == 404
    assert curl(a.node, "/v1/ipam/release", method="POST")[0] == 404
    assert curl(a.node, "/metrics", method="POST")[0] == 405
    assert curl(a.node, "/healthz") == (200, '{"ok":true}')
    status, text = curl(a.node, "/readyz")
    assert status == 200 and json.loads(text)["ready"]

    # Every metric is explained, and nothing is that does not exist.
    there = families(a.agent.get("/metrics").body)
    documented = set(re.findall(r"^\| `((?:roost|process)_\w+)", (DOCS / "METRICS.md").read_text(),
                                re.M))
    assert documented == there
    dashboard = json.loads((DOCS / "grafana-dashboard.json").read_text())
    asked = {re.sub(rf"({'|'.join(SUFFIXES)})$", "", name) if name not in there else name
             for panel in dashboard["panels"] for t in panel.get("targets", [])
             for name in re.findall(r"\b(?:roost|process)_\w+", t["expr"])}
    assert asked and asked <= there, asked - there


@pytest.mark.slow(25)
def test_readiness_names_what_is_missing(lab, build, etcd):
    site, a, b = site_of_two(lab, build, etcd)
    wait_until(lambda: a.agent.get("/readyz").status == 200, 60, "n1 to be ready")
    wait_until(lambda: all(p["ready"] for p in json.loads(a.agent.get("/readyz").body)["peers"]),
               60, "the peer to be ready")

    def inputs():
        return {i["name"]: i for i in json.loads(a.agent.get("/readyz").body)["inputs"]}
    assert {"etcd", "registration", "addresses", "kernel", "files", "bird", "watch/pool",
            "watch/host", "watch/peer"} <= set(inputs())
    assert not [i for i in inputs().values() if not i["ready"]]

    # A neighbour of several that is gone does not make the node unready, but is named.
    c = site.member().start()
    wait_until(lambda: len(a.established()) == 2, 60, "n1's session with n3")
    b.bird.kill()
    reason = wait_until(lambda: next((r for p, r in a.agent.health().items()
                                      if p.startswith("session/")), None), 120, "a session down")
    assert b.address() in reason and "check that the neighbour runs" in reason
    reply = a.agent.get("/readyz")
    peer, = [p for p in json.loads(reply.body)["peers"] if not p["ready"]]
    assert reply.status == 200 and peer["reason"] == reason
    # None of them: this node is cut off.
    c.bird.kill()
    reply = wait_until(lambda: (r := a.agent.get("/readyz")).status == 503 and r, 60, "503")
    assert "sessions: 0 of 2 BGP sessions are up" in json.loads(reply.body)["reason"]
    b.bird.start("-R")
    c.bird.start("-R")
    wait_until(lambda: a.agent.get("/readyz").status == 200, 120, "n1 to be ready again")
    wait_until(lambda: not [p for p in a.agent.health() if p.startswith("session/")], 120,
               "the session to be well")

    # Without BIRD nothing is announced.
    a.bird.kill()
    reply = wait_until(lambda: (r := a.agent.get("/readyz")).status == 503 and r, 60, "503")
    assert json.loads(reply.body)["reason"].startswith("bird: ")
    assert "systemctl status bird" in a.agent.health()["bird"]
    assert a.agent.metrics()["roost_ready"] == 0
    a.bird.start("-R")
    wait_until(lambda: a.agent.get("/readyz").status == 200, 60, "n1 to be ready again")

    # Addresses are given on while etcd is away: ready, and said so.
    etcd.kill()
    wait_until(lambda: not inputs()["etcd"]["ready"], 60, "etcd to be missed")
    assert a.agent.get("/readyz").status == 200
    assert a.agent.get("/healthz").status == 200


@pytest.mark.slow(15)
def test_a_port_that_is_taken_is_told_and_waited_for(lab, build, etcd):
    site = Site(lab, build, etcd)
    site.put("pool/web", cidr="10.1.0.0/16")
    a = site.member("n1", "--metrics", f"127.0.0.1:{PORT}", "--bird-config", "none")
    thief = a.node.spawn("thief", ["/usr/bin/python3", "-c",
                                   "import socket,time; s=socket.socket(); "
                                   f"s.bind(('127.0.0.1',{PORT})); s.listen(); print('listens',"
                                   "flush=True); time.sleep(600)"])
    thief.wait_log("listens")
    a.start()
    reason = a.agent.wait_health("metrics")
    assert f"cannot listen on --metrics 127.0.0.1:{PORT}: Address already in use" in reason
    assert a.pod("p1").address
    thief.kill()
    a.agent.wait_well("metrics", 60)
    assert curl(a.node, "/healthz")[0] == 200


def test_birds_configuration_is_shown_without_its_passwords(lab, build, etcd):
    site, a, b = site_of_two(lab, build, etcd)
    a.node.write(KEY, SECRET)
    a.node.path(KEY).chmod(0o600)
    site.put("peer/tor", address=b.address(), asn=65001, nodes=["n1"], passwordFile=KEY)
    site.put("peer/bad", address="192.0.2.9", asn=65001, nodes=["n1"], passwordFile="/none")

    def shown():
        reply = a.agent.get("/v1/bird/config")
        assert SECRET not in reply.body
        return json.loads(reply.body)

    def settled():
        s = shown()
        return s if ('password "********"' in s["running"] and s["wanted"] == s["running"]
                     and s["runningFrom"] == "accepted by BIRD" and s["runningSince"]) else None
    s = wait_until(settled, 60, "BIRD to run what is wanted")
    assert SECRET in a.node.path("/etc/bird/bird.conf").read_text(), "there was nothing to hide"
    assert s["managed"] and s["path"] == "/etc/bird/bird.conf" and s["wantedError"] == ""
    assert [x["record"] for x in s["leftOut"]] == ["peer/bad"]
    assert "/none" in s["leftOut"][0]["reason"]

    # What somebody wrote into the file is not what BIRD runs.
    path = a.node.path("/etc/bird/bird.conf")
    path.write_text(path.read_text() + "# by hand\n")
    assert shown()["runningFrom"] == "file, not confirmed"
    a.bird.kill()
    wait_until(lambda: not a.status()["bird"]["connected"], 30, "BIRD to be missed")
    assert shown()["runningFrom"] == "file, not confirmed"

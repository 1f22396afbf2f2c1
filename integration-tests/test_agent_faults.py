# SPDX-License-Identifier: Apache-2.0
"""Faults as roostd tells them: one sentence each that names the thing and says what to do."""

import datetime
import os
import resource
import socket

from lab import wait_until
from lab.agent import Agent, pool
from lab.site import Site


def with_tls(lab, build):
    etcd = lab.etcd(tls=True)
    etcd.put("/roost/v1/pool/web", '{"cidr": "10.1.0.0/16"}')
    return etcd, Agent(lab.node("n1"), build, etcd)


def test_an_expired_certificate_of_ours(lab, build):
    etcd, agent = with_tls(lab, build)
    agent.start()
    assert not [p for p in agent.health() if p.startswith("certificate/")]
    seen = agent.metrics()
    for end in ("client", "server"):
        name = f'roost_etcd_certificate_expiry_timestamp_seconds{{certificate="{end}"}}'
        assert seen[name] > seen["process_start_time_seconds"] + 20 * 86400

    path = etcd.client_certificate.cert
    good = path.read_text()
    etcd.authority.expire(etcd.client_certificate)
    etcd.members[0].restart()
    reason = agent.wait_health("certificate/client", timeout=60)
    assert reason == (f"{path}, the certificate that this agent shows to etcd, expired on "
                      "2020-01-02T00:00:00Z: put a new one there, it is taken with the next "
                      "connection")
    assert "etcd is out of reach: " in agent.wait_health("etcd", timeout=60)
    path.write_text(good)
    agent.wait_well("etcd", 60)
    agent.wait_well("certificate/client", 60)


def test_an_expired_certificate_of_etcd(lab, build):
    etcd, agent = with_tls(lab, build)
    etcd.authority.expire(etcd.server_certificate)
    agent.spawn()
    reason = agent.wait_health("etcd", "expired", 60)
    assert f"{etcd.members[0].url}: its certificate (O=roost-lab) expired on " \
           "2020-01-02T00:00:00Z: renew it there" in reason
    assert agent.wait_health("certificate/server", timeout=60).startswith(
        "the certificate of etcd's member (O=roost-lab) expired on 2020-01-02T00:00:00Z: ")


def test_a_certificate_that_expires_soon(lab, build):
    etcd, agent = with_tls(lab, build)
    soon = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=5, hours=12)
    etcd.authority.expire(etcd.server_certificate, soon.strftime("%Y%m%d%H%M%SZ"))
    agent.start()
    reason = agent.wait_health("certificate/server")
    assert "in 5 days: renew it on that machine" in reason
    assert agent.api("GET", "/v1/status").status == 200


def test_a_pool_that_is_full(lab, build, etcd):
    site = Site(lab, build, etcd)
    site.put("pool/web", cidr="10.1.0.0/30", blockSize=31)
    a, b = (site.member(None, "--bird-config", "none").start().agent for _ in range(2))
    b.assign("b1")
    got = a.assign("a1") + a.assign("a2")
    assert a.refuses("a3").code == 100
    assert a.wait_health("pool-full/web", timeout=30) == (
        "pool web (10.1.0.0/30, 4 addresses) is full: every block has an owner, and on this node "
        "no address of it is free; `roostctl ipam show --blocks` shows their owners: delete pods "
        "or nodes that are gone, or add a pool")
    assert len(set(got)) == 2
    a.release("a2")
    a.wait_well("pool-full/web", 30)
    site.put("pool/web", cidr="10.1.0.0/30", blockSize=31, maxBlocksPerNode=1)
    a.assign("a2")
    assert "may have are in use; raise the pool's maxBlocksPerNode" \
        in a.wait_health("pool-full/web", timeout=30)


def test_etcd_gone_and_a_strangers_route(lab, build, etcd):
    site = Site(lab, build, etcd)
    site.put("pool/web", cidr="10.1.0.0/24", blockSize=26)
    a = site.member("n1", "--bird-config", "none").start()
    pod = a.pod("p1")
    block, = a.blocks()
    a.node.run(["ip", "route", "replace", "blackhole", block, "proto", "static"])
    reason = a.agent.wait_health(f"route/{block}", timeout=30)
    assert "protocol static has the same destination; remove it if nothing needs it" in reason
    assert a.agent.metrics()["roost_kernel_conflicts"] == 1
    a.node.run(["ip", "route", "del", "blackhole", block, "proto", "static"])
    a.agent.wait_well(f"route/{block}", 30)

    etcd.kill()
    reason = a.agent.wait_health("etcd", timeout=60)
    assert reason.startswith("etcd is out of reach: ")
    assert reason.endswith(f"check etcd and the network path to it (--etcd {etcd.endpoints})")
    status = a.agent.status()
    assert "etcd" in status["notReady"] and status["attachments"] == 1
    assert pod.address in a.agent.held()
    wait_until(lambda: a.agent.metrics()["roost_etcd_connected"] == 0, 30, "the metric")


def test_a_lack_of_files_is_outlived(etcd, agents):
    """Connections take the last descriptors while etcd restarts; all of them end at once."""
    pool(etcd)
    agent = agents().start()
    pid = agent.process.pid
    soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    used = {int(fd) for fd in os.listdir(f"/proc/{pid}/fd")}
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (max(used) + 4, hard))
    clients = [socket.socket(socket.AF_UNIX) for _ in range(60)]
    for c in clients:
        c.connect(str(agent.socket))
    agent.process.wait_log("socket: no connection can be accepted: Too many open files")
    etcd.members[0].restart()
    agent.process.pause()
    for c in clients:
        c.close()
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))
    agent.process.resume()
    # Less than the time after which the agent closes idle connections, which is an event too.
    assert agent.api("GET", "/v1/status", timeout=15).status == 200
    agent.wait_well("socket")
    agent.wait_well("etcd", 30)
    assert agent.assign("c1")

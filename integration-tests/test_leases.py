# SPDX-License-Identifier: Apache-2.0
"""The lease server: every row of the API, several servers over one etcd, turmoil."""

import concurrent.futures
import datetime
import http.client
import ipaddress
import json
import pathlib
import re
import signal
import ssl

import pytest

from lab.agent import PREFIX, put
from lab.controller import etcd_txn
from lab.ctl import Ctl
from lab.lease import (NEVER, LeaseClient, LeaseServer, Poll, client_tls, figures, in_path, load)
from lab.tls import Authority
from lab.wait import wait_until

MAC = "02:00:00:00:00:0%d"
MAC_OF_N1 = "ae:ce:09:56:5a:88"  # follows from the name


@pytest.fixture
def server(lab, etcd, build):
    overlay(etcd)
    return LeaseServer(lab.node("c1"), build, etcd, "--lease", "2").start()


def overlay(etcd, name="over", **more):
    put(etcd, f"pool/{name}", **{"cidr": "10.5.0.0/16", "blockSize": 24, "encapsulation": "vxlan",
                                 **more})


def test_config_and_paths(server, etcd):
    c = LeaseClient(server)
    put(etcd, "config", vxlan={"vni": 1, "port": 8472})
    wait_until(lambda: c.request("GET", "/v1/_/config").json()["Backend"]["VNI"] == 1, 10, "config")
    config = {"Network": "10.5.0.0/16", "SubnetMin": "10.5.0.0", "SubnetMax": "10.5.255.0",
              "SubnetLen": 24, "Backend": {"Type": "vxlan", "VNI": 1, "Port": 8472}}
    for path in ("/v1/_/config", "/v1/default/config", "/network/config"):
        assert c.request("GET", path).json() == config
    overlay(etcd, rangeStart="10.5.1.0", rangeEnd="10.5.9.255", encapsulation="vxlan-cross-subnet")
    wait_until(lambda: c.request("GET", "/network/config").json()["SubnetMin"] == "10.5.1.0", 10,
               "the range")
    got = c.request("GET", "/v1/_/config").json()
    assert got["SubnetMax"] == "10.5.9.0" and got["Backend"]["DirectRouting"] is True
    # Unmatched paths and verbs: 404. What cannot be read: 400. Missing configuration: 500.
    for method, path in (("GET", "/"), ("GET", "/v2/_/config"), ("POST", "/v1/_/config"),
                         ("GET", "/v1/_/nothing"), ("PUT", "/v1/_/leases"), ("POST", "/v1/"),
                         ("DELETE", "/v1/_/leases"), ("GET", "/v1/_/leases/10.5.1.0-24/more")):
        assert path in c.request(method, path).refused(404)
    assert "10.5.34.0-24" in c.request("GET", "/v1/_/leases/10.5.1.1-24").refused(400)
    assert "10.5.34.0-24" in c.request("DELETE", "/v1/_/leases/x").refused(400)
    c.request("GET", "/v1/UP/config").refused(400)
    assert "no pool for leases" in c.request("GET", "/v1/other/config").refused(500)
    c.request("POST", "/v1/other/leases", c.attrs("192.0.2.5")).refused(500)
    for body in ("", "{", "[]", "{}", '{"PublicIP":"x"}', '{"PublicIP":"0.0.0.0"}',
                 '{"PublicIP":"192.0.2.5","BackendData":3}', '{"PublicIP":7}',
                 '{"PublicIP":"192.0.2.5","BackendType":"vxlan","BackendData":{"VtepMAC":"x"}}'):
        c.request("POST", "/v1/_/leases", body).refused(400)
    c.request("PUT", "/v1/_/leases/10.5.1.0-24", {"Subnet": "10.5.1.0/24"}).refused(400)
    c.request("POST", "/v1/_/reservations", {"Subnet": "10.5.1.0", "PublicIP": "1.2.3.4"}).refused(400)
    assert "larger" in c.request("POST", "/v1/_/leases", "x" * 20000).refused(413)


def test_every_row_of_the_api(server, etcd):
    c = LeaseClient(server)
    assert c.snapshot()["snapshot"] == []
    # POST: a lease, with an expiration a day away.
    first = c.acquire("192.0.2.5", MAC % 5)
    subnet = ipaddress.ip_network(first["Subnet"])
    assert subnet.prefixlen == 24 and subnet.subnet_of(ipaddress.ip_network("10.5.0.0/16"))
    assert first["Attrs"] == c.attrs("192.0.2.5", MAC % 5) and first["Expiration"] > "2026"
    # In etcd it is a block as any other, and its holder a node.
    key = in_path(first["Subnet"])
    block = json.loads(etcd.get(f"{PREFIX}block/default/{key}"))
    assert block["node"] == "lease-192.0.2.5" and block["pool"] == "over"
    assert block["lease"] == {"publicIP": "192.0.2.5", "backendType": "vxlan", "backendData":
                              {"VNI": 1, "VtepMAC": MAC % 5}, "expires": first["Expiration"]}
    assert json.loads(etcd.get(f"{PREFIX}node/lease-192.0.2.5")) == {
        "ipv4": "192.0.2.5/32", "machine": "lease", "boot": "lease", "vtep": {"mac": MAC % 5}}
    assert etcd.get(f"{PREFIX}host/lease-192.0.2.5/ipv4/block/default/{key}")
    assert json.loads(etcd.get(f"{PREFIX}extent/default/over"))["blockSize"] == 24
    # POST again: the same subnet, with what is said now; in IPv6 a holder of its own.
    again = c.acquire("192.0.2.5", MAC % 6)
    assert again["Subnet"] == first["Subnet"] and again["Attrs"]["BackendData"]["VtepMAC"] == MAC % 6
    assert json.loads(etcd.get(f"{PREFIX}node/lease-192.0.2.5"))["vtep"]["mac"] == MAC % 6
    six = c.acquire("2001:db8::5")
    assert six["Attrs"] == {"PublicIP": "2001:db8::5"} and six["Subnet"] != first["Subnet"]
    assert etcd.get(f"{PREFIX}node/lease-2001-db8--5")
    # GET: a snapshot; both spellings.
    shot = c.snapshot()
    assert {x["Subnet"] for x in shot["snapshot"]} == {first["Subnet"], six["Subnet"]}
    assert again in shot["snapshot"]
    assert c.request("GET", "/network/leases").json() == shot
    # GET ?next=: exactly one event and a new cursor; a removal names its subnet alone.
    with c.poll(shot["cursor"]) as p:
        assert p.waits()
        third = c.acquire("192.0.2.7")
        got = p.answer().json()
    assert got["events"] == [{"type": "added", "lease": third}] and got["snapshot"] == []
    assert int(got["cursor"]) > int(shot["cursor"])
    assert c.request("DELETE", f"/v1/_/leases/{in_path(third['Subnet'])}").text == ""
    after = c.next(got["cursor"])
    assert after["events"] == [{"type": "removed", "lease": {"Subnet": third["Subnet"]}}]
    # From the older cursor both come, one by one.
    assert c.next(shot["cursor"]) == got
    # The holder goes with its last block.
    wait_until(lambda: not etcd.get(f"{PREFIX}node/lease-192.0.2.7"), 5, "the holder to go")
    assert not etcd.list(f"{PREFIX}host/lease-192.0.2.7/")
    c.request("DELETE", f"/v1/_/leases/{in_path(third['Subnet'])}").refused(500)
    # Cursors out of history, in the future, and none at all.
    for cursor in ("0", "1", "999999999"):
        got = c.next(cursor)
        assert got["events"] == [] and len(got["snapshot"]) == 2
    assert "not a cursor" in c.request("GET", "/v1/_/leases?next=x").refused(500)
    # One lease: its snapshot, its changes alone, renewals included.
    one = f"/leases/{key}"
    got = c.request("GET", c.base + one).json()
    assert got["snapshot"] == [again]
    with c.poll(got["cursor"], one) as p, c.poll(got["cursor"]) as everything:
        c.acquire("192.0.2.8")
        assert everything.answer().json()["events"][0]["lease"]["Attrs"]["PublicIP"] == "192.0.2.8"
        assert p.waits()
        # The next that is a change: one that adds hardly anything writes nothing.
        etcd_txn(etcd, {f"block/default/{key}": aged(etcd, key)})
        again = p.answer().json()["events"][0]["lease"]
    with c.poll(c.snapshot()["cursor"], one) as p:
        renewed = later(c.renew(again).json(), again)
        assert p.answer().json()["events"] == [{"type": "added", "lease": renewed}]
    assert renewed["Attrs"] == again["Attrs"]
    # To all others a renewal is no change: the next one is.
    cursor = c.snapshot()["cursor"]
    with c.poll(cursor) as p:
        c.renew(renewed).json()
        assert p.waits()
        c.acquire("192.0.2.8", MAC % 8)
        assert p.answer().json()["events"][0]["lease"]["Attrs"]["PublicIP"] == "192.0.2.8"
    # One that is not there is removed, so that its holder asks again.
    got = c.request("GET", "/v1/_/leases/10.5.255.0-24").json()
    assert got["events"] == [{"type": "removed", "lease": {"Subnet": "10.5.255.0/24"}}]
    # PUT of another's: refused. Of a free one: it is taken, as its former holder would.
    other = {**renewed, "Attrs": c.attrs("192.0.2.66")}
    assert "lease taken" in c.renew(other).refused(500)
    free = next(f"10.5.{i}.0/24" for i in range(9, 99) if f"10.5.{i}.0/24" not in c.subnets())
    assert c.renew({"Subnet": free, "Attrs": c.attrs("192.0.2.66")}).json()["Subnet"] == free
    assert c.acquire("192.0.2.66")["Subnet"] == free
    outside = {"Subnet": "10.9.0.0/24", "Attrs": c.attrs("192.0.2.66")}
    assert "is not a /24 of" in c.renew(outside).refused(500)


def test_reservations_networks_and_nodes_with_agents(server, etcd, lab, build):
    c = LeaseClient(server)
    reserve = lambda s, ip: c.request("POST", "/v1/_/reservations", {"Subnet": s, "PublicIP": ip})
    listed = lambda: c.request("GET", "/v1/_/reservations").json()
    assert listed() == []
    assert reserve("10.5.9.0/24", "192.0.2.9").text == ""
    assert listed() == [{"Subnet": "10.5.9.0/24", "PublicIP": "192.0.2.9"}]
    assert "lease taken" in reserve("10.5.9.0/24", "192.0.2.10").refused(500)
    assert "is not a /24" in reserve("10.5.8.0/25", "192.0.2.9").refused(500)
    assert "is not a /24" in reserve("10.6.8.0/24", "192.0.2.9").refused(500)
    # Whoever it is kept for gets it, for ever; renewing changes nothing in that.
    lease = c.acquire("192.0.2.9", MAC % 9)
    assert lease["Subnet"] == "10.5.9.0/24" and lease["Expiration"] == NEVER
    assert c.renew(lease).json()["Expiration"] == NEVER and len(listed()) == 1
    assert c.request("DELETE", "/v1/_/reservations/10.5.9.0-24").text == ""
    assert listed() == [] and c.acquire("192.0.2.9", MAC % 9)["Expiration"] != NEVER
    c.request("DELETE", "/v1/_/reservations/10.5.200.0-24").refused(500)
    # A lease that is there becomes a reservation, and keeps what it said.
    assert reserve("10.5.9.0/24", "192.0.2.9").text == ""
    assert c.snapshot()["snapshot"][0]["Attrs"] == lease["Attrs"]

    # Networks: names, then one event for each that comes or goes.
    names = c.request("GET", "/v1/").json()
    assert names["snapshot"] == ["default"]
    with networks(c, names["cursor"]) as p:
        overlay(etcd, "two", network="two", cidr="10.6.0.0/16")
        got = p.answer().json()
        assert got["events"] == [{"type": "added", "network": "two"}]
    two = LeaseClient(server, "two")
    assert two.acquire("192.0.2.9")["Subnet"].startswith("10.6.")
    assert two.request("GET", "/v1/two/config").json()["Network"] == "10.6.0.0/16"
    etcd.delete(f"{PREFIX}pool/two")
    with networks(c, got["cursor"]) as p:
        assert p.answer().json()["events"] == [{"type": "removed", "network": "two"}]

    # A node with an agent: its block is a lease too, which nobody can renew or delete.
    before = c.snapshot()["cursor"]
    etcd_txn(etcd, {"node/n1": {"ipv4": "192.0.2.1/24", "vtep": {"mac": MAC_OF_N1}},
                    "block/default/10.5.77.0-24": {"node": "n1", "pool": "over"},
                    "host/n1/ipv4/block/default/10.5.77.0-24": {"pool": "over"}})
    added = c.next(before)["events"]
    assert added == [{"type": "added", "lease": {
        "Subnet": "10.5.77.0/24", "Expiration": NEVER, "Attrs": {
            "PublicIP": "192.0.2.1", "BackendType": "vxlan",
            "BackendData": {"VNI": 4096, "VtepMAC": MAC_OF_N1}}}}]
    assert "only its agent" in c.request("DELETE", "/v1/_/leases/10.5.77.0-24").refused(500)
    assert "lease taken" in c.renew({**added[0]["lease"]}).refused(500)
    assert len(listed()) == 1
    cursor = c.snapshot()["cursor"]
    etcd_txn(etcd, {"node/n1": {"ipv4": "192.0.2.2/24", "vtep": {"mac": MAC_OF_N1}}})
    assert c.next(cursor)["events"][0]["lease"]["Attrs"]["PublicIP"] == "192.0.2.2"


def aged(etcd, key):
    """The record of a lease as if it had been renewed hours ago."""
    block = json.loads(etcd.get(f"{PREFIX}block/default/{key}"))
    expires = datetime.datetime.fromisoformat(block["lease"]["expires"].rstrip("Z"))
    block["lease"]["expires"] = (expires - datetime.timedelta(hours=2)).isoformat() + "Z"
    return block


def later(lease, than):
    return lease if lease["Expiration"] > than["Expiration"] else None


def networks(c, cursor):
    return Poll(c.send("GET", f"/v1/?next={cursor}"))


@pytest.mark.limit(150)
def test_many_clients_of_two_servers_get_a_subnet_each(lab, etcd, build):
    overlay(etcd, cidr="10.5.0.0/18")
    servers = [LeaseServer(lab.node(f"c{i}"), build, etcd, "--lease", "2").start() for i in (1, 2)]
    one, two = (LeaseClient(s) for s in servers)
    addresses = [f"198.51.100.{i}" for i in range(1, 51)]
    # Everybody asks both servers at once, as one whose first reply got lost; 64 subnets for 50.
    with concurrent.futures.ThreadPoolExecutor(40) as pool:
        jobs = [(a, pool.submit(c.acquire, a, f"02:00:00:00:01:{i:02x}"))
                for i, a in enumerate(addresses) for c in (one, two)]
        got = [(a, job.result()) for a, job in jobs]
    by_address = {a: {lease["Subnet"] for x, lease in got if x == a} for a in addresses}
    assert all(len(s) == 1 for s in by_address.values()), by_address
    assert len({s for v in by_address.values() for s in v}) == 50
    wait_until(lambda: one.subnets() == two.subnets() and len(one.subnets()) == 50, 10, "both to agree")
    assert sum(s.metrics()['roost_lease_changes_total{kind="acquired"}'] for s in servers) == 100

    # The rest is taken by the two in turmoil, then the pool is full, and says so.
    rest = [f"198.51.100.{i}" for i in range(101, 121)]
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        answers = [pool.submit(c.request, "POST", "/v1/_/leases", c.attrs(a))
                   for a, c in zip(rest, [one, two] * 10)]
        answers = [a.result() for a in answers]
    assert sorted(a.status for a in answers) == [200] * 14 + [500] * 6
    assert all("every subnet of pool over" in a.text for a in answers if a.status == 500)

    # A cursor is good for any server, also for one that has not seen it yet, or has just started.
    cursor = two.snapshot()["cursor"]
    freed = next(iter(by_address[addresses[0]]))
    with two.poll(cursor) as old:
        one.request("DELETE", f"/v1/_/leases/{in_path(freed)}")
        got = one.next(cursor)
        assert [e["type"] for e in got["events"]] == ["removed"] and got == old.answer().json()
    with two.poll(got["cursor"]) as p:
        assert p.waits()
        servers[0].stop()
        servers[0].start()
        with one.poll(got["cursor"]) as q:
            late = two.acquire(addresses[0])
            assert p.answer().json()["events"] == [{"type": "added", "lease": late}]
            assert q.answer().json()["cursor"] > got["cursor"]
    # One whose server goes away is told so, and is back with the other.
    with one.poll(got["cursor"]) as p:
        assert one.snapshot()["snapshot"]
        assert p.answer().json()
    with one.poll(one.snapshot()["cursor"]) as p:
        assert p.waits()
        servers[0].stop()
        assert "shutting down" in p.answer().refused(503)


@pytest.mark.limit(150)
def test_without_etcd_and_with_another_one(server, etcd, lab):
    c = LeaseClient(server)
    lease = c.acquire("192.0.2.5", MAC % 5)
    saved = etcd.save()
    more = c.acquire("192.0.2.6", MAC % 6)
    shot = c.snapshot()

    def held():
        return server.metrics()["roost_lease_polls"] == 1
    with c.poll(shot["cursor"]) as waiting:
        wait_until(held, 10, "the poll to be held")
        etcd.kill()
        wait_until(lambda: c.request("GET", "/v1/_/leases").status == 503, 30, "no answers from memory")
        for method, path, body in (("POST", "/v1/_/leases", c.attrs("192.0.2.5")),
                                   ("PUT", f"/v1/_/leases/{in_path(lease['Subnet'])}", lease),
                                   ("GET", "/v1/_/config", None), ("GET", "/v1/", None)):
            assert "try again" in c.request(method, path, body).refused(503)
        assert waiting.waits()
        # Back again: the poll goes on, and hears of the next change.
        etcd.start()
        wait_until(lambda: c.request("GET", "/v1/_/leases").status == 200, 30, "etcd followed again")
        assert c.snapshot()["snapshot"] == shot["snapshot"] and waiting.waits()
        etcd.compact()
        third = c.acquire("192.0.2.7")
        assert waiting.answer().json()["events"] == [{"type": "added", "lease": third}]
    # Restored from a backup: what it brought back is shown to nobody before the recovery has ended.
    with c.poll(c.snapshot()["cursor"]) as waiting:
        wait_until(held, 10, "the poll to be held")
        etcd.restore(saved)
        assert "etcd went back" in waiting.answer().refused(503)
    wait_until(lambda: c.request("GET", "/v1/").status == 200, 30, "the recovery to end")
    # Nobody waits for revisions that are no more; the leader remembers what was given since.
    got = c.next("99999999")
    assert got["events"] == []
    assert {x["Subnet"] for x in got["snapshot"]} == {x["Subnet"] for x in (lease, more, third)}
    assert c.renew(more).status == 200


def test_tls_with_client_certificates(lab, etcd, build):
    overlay(etcd)
    ca, stranger = Authority(lab), Authority(lab, "stranger")
    cert = ca.issue("server", addresses=["127.0.0.1"])
    client, foreign = ca.issue("client", dns=["client.lab"]), stranger.issue("foreign")
    wrong_use = ca.issue("wrong", usage="serverAuth")
    node = lab.node("c1")
    flags = ("--lease-cert", cert.cert, "--lease-key", cert.key, "--lease-client-ca", ca.cert)
    s = LeaseServer(node, build, etcd, *flags, "--lease-operator", "DNS:client.lab")
    s.start_plainly()
    good = LeaseClient(s, tls=client_tls(ca, client))
    wait_until(lambda: good.request("GET", "/v1/").status == 200, 30, "an answer", errors=(OSError,))
    lease = good.acquire("192.0.2.5", MAC % 5)
    with good.poll(good.snapshot()["cursor"]) as p:
        good.acquire("192.0.2.6")
        assert p.answer().json()["events"]
    for bad in (None, foreign, wrong_use):
        with pytest.raises((OSError, ssl.SSLError)):
            LeaseClient(s, tls=client_tls(ca, bad)).request("GET", "/v1/")
    with pytest.raises((OSError, http.client.HTTPException)):
        LeaseClient(s).request("GET", "/v1/")
    # A new certificate is shown from the next connection on; those who wait do not notice.
    with good.poll(good.snapshot()["cursor"]) as p:
        fresh = ca.issue("server", addresses=["127.0.0.1"])
        assert fresh.cert == cert.cert
        s.process.signal(signal.SIGHUP)
        serial = lambda: good.connect().sock.getpeercert()["serialNumber"]
        old = p.connection.sock.getpeercert()["serialNumber"]
        wait_until(lambda: serial() != old, 10, "the new certificate")
        assert p.waits()
        cert.key.write_text("no key")
        s.process.signal(signal.SIGHUP)
        s.process.wait_log("the previous certificate, CA and CRL stay in use")
        assert good.renew(lease).status == 200
        good.acquire("192.0.2.7")
        assert p.answer().json()["events"]
    s.stop()
    for flags, sentence in ((("--lease-cert", cert.cert), "need each other"),
                            (("--lease-client-ca", ca.cert), "needs --lease-cert"),
                            (("--lease-client-crl", ca.cert), "needs --lease-client-ca"),
                            (("--lease-listen", "0.0.0.0:10253"), "--lease-allow-anonymous"),
                            (("--lease-listen", "10253,[::]:10254", "--lease-cert", cert.cert,
                              "--lease-key", cert.key), "is not on loopback"),
                            (("--lease-operator", "ops"), "is no name of a client"),
                            (("--lease-cert", cert.cert, "--lease-key", cert.key), "server.key")):
        done = node.run([build / "roost-controller", *etcd.flags(), "--lease-listen", "10253", *flags],
                        check=False)
        assert done.returncode and sentence in done.stderr + done.stdout


def attack(thief, victim_address, lease, own_address):
    """What another client may try against a lease, and against the pool: all of it is refused."""
    key, attrs = in_path(lease["Subnet"]), thief.attrs(victim_address, MAC % 9)
    other = {"Subnet": "10.5.250.0/24", "PublicIP": victim_address}
    for method, path, body in (
            ("POST", "leases", attrs), ("PUT", f"leases/{key}", {**lease, "Attrs": attrs}),
            ("DELETE", f"leases/{key}", None), ("POST", "reservations", other),
            ("DELETE", f"reservations/{key}", None)):
        thief.request(method, f"{thief.base}/{path}", body).refused(403)
    taken = thief.request("PUT", f"{thief.base}/leases/{key}",
                          {**lease, "Attrs": thief.attrs(own_address)})
    assert "lease taken" in taken.refused(500)
    # To drain the pool: many subnets for its own address at once.
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        got = list(pool.map(lambda i: thief.renew(
            {"Subnet": f"10.5.{i}.0/24", "Attrs": thief.attrs(own_address)}).status, range(200, 220)))
    assert set(got) <= {200, 403, 500} and got.count(200) <= 2, got


@pytest.mark.limit(120)
def test_without_certificates_a_lease_belongs_to_its_address(lab, etcd, build):
    overlay(etcd)
    node = lab.node("c1")
    s = LeaseServer(node, build, etcd, "--lease", "2", "--lease-allow-anonymous",
                    address=etcd.join(node)).start()
    v, t = lab.node("v1"), lab.node("t1")
    v_at, t_at = etcd.join(v), etcd.join(t)
    victim, thief = LeaseClient(s, node=v), LeaseClient(s, node=t)
    # Before the victim comes, too.
    assert "is not the address of the client" in thief.request(
        "POST", "/v1/_/leases", thief.attrs(v_at)).refused(403)
    lease = victim.acquire(v_at, MAC % 5)
    key = f"{PREFIX}block/default/{in_path(lease['Subnet'])}"
    assert json.loads(etcd.get(key))["lease"]["owner"] == f"address:{v_at}"
    assert f"address:{v_at}" in Ctl(lab.node("op"), build, etcd)(f"lease show {lease['Subnet']}")
    before = etcd.get(key), etcd.get(f"{PREFIX}node/lease-{v_at}")
    attack(thief, v_at, lease, t_at)
    # Many that it makes up.
    for i in range(9):
        thief.request("POST", "/v1/_/leases", thief.attrs(f"198.51.100.{i}")).refused(403)
    assert (etcd.get(key), etcd.get(f"{PREFIX}node/lease-{v_at}")) == before
    assert s.metrics()['roost_lease_refusals_total{reason="forbidden"}'] >= 15
    assert "lease-forbidden" in s.get("/readyz")[1]
    # Its own client does all of it; a lease from before there were owners is bound by a renewal.
    block = aged(etcd, in_path(lease["Subnet"]))
    del block["lease"]["owner"]
    etcd.put(key, json.dumps(block))
    path = f"/v1/_/leases/{in_path(lease['Subnet'])}"
    wait_until(lambda: "has no owner yet" in thief.request("DELETE", path).refused(403), 10, "the record")
    assert victim.renew(lease).status == 200
    assert json.loads(etcd.get(key))["lease"]["owner"] == f"address:{v_at}"
    assert victim.acquire(v_at, MAC % 6)["Subnet"] == lease["Subnet"]
    assert victim.request("DELETE", f"/v1/_/leases/{in_path(lease['Subnet'])}").status == 200


@pytest.mark.limit(150)
def test_a_lease_belongs_to_a_certificate_and_authorities_change_by_reload(lab, etcd, build):
    overlay(etcd)
    ca, next_ca = Authority(lab), Authority(lab, "next")
    node, v, t = lab.node("c1"), lab.node("v1"), lab.node("t1")
    at, v_at, t_at = (etcd.join(n) for n in (node, v, t))
    cert = ca.issue("server", addresses=[at])
    ours = lab.dir / "clients.crt"
    ours.write_text(ca.cert.read_text())
    crl = ca.revoke()
    s = LeaseServer(node, build, etcd, "--lease", "2", "--lease-cert", cert.cert, "--lease-key",
                    cert.key, "--lease-client-ca", ours, "--lease-client-crl", crl,
                    "--lease-operator", "CN:ops,DNS:ops.lab", address=at)
    s.start_plainly()
    client = lambda n, c: LeaseClient(s, node=n, tls=client_tls(ca, c))
    victim = client(v, ca.issue("victim", dns=["victim.lab"]))
    stolen = ca.issue("thief", dns=["thief.lab"])
    thief = client(t, stolen)
    operator = client(t, ca.issue("ops", subject="/O=roost-lab/CN=ops"))
    wait_until(lambda: victim.request("GET", "/v1/").status == 200, 30, "an answer", errors=(OSError,))
    lease = victim.acquire(v_at, MAC % 5)
    key = f"{PREFIX}block/default/{in_path(lease['Subnet'])}"
    assert json.loads(etcd.get(key))["lease"]["owner"] == "DNS:victim.lab"
    before = etcd.get(key), etcd.get(f"{PREFIX}node/lease-{v_at}")
    attack(thief, v_at, lease, t_at)
    assert "--lease-quota allows 2" in thief.request(
        "POST", "/v1/_/leases", thief.attrs("198.51.100.1")).refused(403)
    assert "names nobody" in client(t, ca.issue("nameless")).request(
        "POST", "/v1/_/leases", thief.attrs("198.51.100.1")).refused(403)
    assert (etcd.get(key), etcd.get(f"{PREFIX}node/lease-{v_at}")) == before
    # An operator reserves for a node that comes later, and may help any client.
    for subnet, ip in (("10.5.240.0/24", t_at), (lease["Subnet"], v_at)):
        assert operator.request("POST", "/v1/_/reservations",
                                {"Subnet": subnet, "PublicIP": ip}).status == 200
    assert json.loads(etcd.get(key))["lease"]["owner"] == "DNS:victim.lab"
    assert operator.request("DELETE", f"/v1/_/reservations/{in_path(lease['Subnet'])}").status == 200

    # A revoked certificate: who waits is cut off, and does not get in again. Others do not notice.
    cursor = victim.snapshot()["cursor"]
    with victim.poll(cursor) as waits, thief.poll(cursor) as cut:
        assert waits.waits() and cut.waits()
        ca.revoke(stolen)
        s.process.signal(signal.SIGHUP)
        with pytest.raises((OSError, http.client.HTTPException)):
            cut.answer()
        with pytest.raises((OSError, ssl.SSLError)):
            thief.request("GET", "/v1/")
        assert waits.waits()
        # Two authorities, then only the next one: no restart, and nobody waits in vain.
        ours.write_text(ca.cert.read_text() + next_ca.cert.read_text())
        crl.write_text(crl.read_text() + next_ca.revoke(name="next").read_text())
        s.process.signal(signal.SIGHUP)
        fresh = client(v, next_ca.issue("victim-next", dns=["victim.lab"]))
        wait_until(lambda: fresh.request("GET", "/v1/").status == 200, 10, "the next authority",
                   errors=(OSError,))
        assert waits.waits() and fresh.renew(lease).status == 200
        # A file that cannot be read changes nothing.
        text = ours.read_text()
        ours.write_text("nothing")
        s.process.signal(signal.SIGHUP)
        s.process.wait_log("the previous certificate, CA and CRL stay in use")
        assert victim.request("GET", "/v1/").status == 200 and waits.waits()
        assert text
        with fresh.poll(fresh.snapshot()["cursor"]) as stays:
            ours.write_text(next_ca.cert.read_text())
            crl.write_text(next_ca.revoke(name="last").read_text())
            s.process.signal(signal.SIGHUP)
            with pytest.raises((OSError, http.client.HTTPException)):
                waits.answer()
            assert stays.waits()
    with pytest.raises((OSError, ssl.SSLError)):
        victim.request("GET", "/v1/")
    assert fresh.renew(lease).status == 200


@pytest.mark.limit(150)
def test_leases_that_are_not_renewed_are_freed_by_the_leader(lab, etcd, build):
    overlay(etcd)
    put(etcd, "pool/web", cidr="10.1.0.0/24")
    quick = ("--lease", "2", "--minute", "400", "--lease-ttl", "60")
    servers = [LeaseServer(lab.node(f"c{i}"), build, etcd, *quick).start() for i in (1, 2)]
    c, ctl = LeaseClient(servers[1]), Ctl(lab.node("op"), build, etcd)
    kept, gone, reserved = (c.acquire(f"192.0.2.{i}", MAC % i) for i in (1, 2, 3))
    c.request("POST", "/v1/_/reservations", {"Subnet": reserved["Subnet"], "PublicIP": "192.0.2.3"})
    # Nothing that keeps house stumbles over nodes without agents.
    leader = wait_until(lambda: next((s for s in servers if s.leads()), None), 30, "a leader")
    wait_until(lambda: leader.metrics().get("roost_controller_comparisons_total", 0) > 2, 30, "audits")
    m = leader.metrics()
    assert not [k for k, v in m.items() if k.startswith("roost_cluster_findings") and v], m
    assert m['roost_cluster_nodes{state="lease"}'] == 3 and not m['roost_cluster_nodes{state="silent"}']
    listed = ctl("node list")
    assert listed.count(" lease ") == 3 and "silent" not in listed
    assert ctl.run("ipam check").returncode == 0
    # As if an hour had passed for two of them; one of these is renewed.
    cursor = c.snapshot()["cursor"]
    for lease in (kept, gone):
        key = f"{PREFIX}block/default/{in_path(lease['Subnet'])}"
        block = json.loads(etcd.get(key))
        block["lease"]["expires"] = "2026-01-01T00:00:00Z"
        if lease is gone:
            etcd.put(key, json.dumps(block))
    assert c.renew(kept).status == 200
    with c.poll(cursor) as p:
        removed = p.answer().json()
    assert removed["events"] == [{"type": "removed", "lease": {"Subnet": gone["Subnet"]}}]
    assert {k[len(PREFIX):] for k in etcd.dump(f"{PREFIX}node/")} == {
        "node/lease-192.0.2.1", "node/lease-192.0.2.3"}
    assert not etcd.dump(f"{PREFIX}host/lease-192.0.2.2/")
    assert c.subnets() == {kept["Subnet"], reserved["Subnet"]}
    wait_until(lambda: leader.metrics()["roost_controller_leases_freed_total"] == 1, 10, "the count")
    # Freed, but nobody has it: whoever had it gets it back by renewing.
    assert c.renew(gone).json()["Subnet"] == gone["Subnet"]
    # What an operator sees, and can do.
    rows = {r["subnet"]: r for r in ctl.json("lease list")}
    assert set(rows) == {x["Subnet"] for x in (kept, gone, reserved)} and not ctl.json("lease list two")
    assert rows[reserved["Subnet"]]["expires"] == "never"
    assert rows[kept["Subnet"]] == ctl.json(f"lease show {kept['Subnet']}")
    assert rows[kept["Subnet"]]["backendData"] == {"VNI": 1, "VtepMAC": MAC % 1}
    with c.poll(c.snapshot()["cursor"]) as p:
        assert ctl.run(f"lease delete {gone['Subnet']} --yes").returncode == 0
        assert p.answer().json()["events"][0]["type"] == "removed"
    # Kept for its holder, unless its machine is off.
    assert ctl.json(f"lease show {gone['Subnet']}")["state"] == "revoked"
    assert "lease taken" in c.renew({**gone, "Attrs": c.attrs("192.0.2.9")}).refused(500)
    assert ctl.run(f"lease delete {gone['Subnet']} --now --yes").returncode == 0
    assert not etcd.dump(f"{PREFIX}node/lease-192.0.2.2") and not etcd.dump(f"{PREFIX}host/lease-192.0.2.2/")
    assert "no node has a block" in ctl.refuses(f"lease show {gone['Subnet']}", 4)


@pytest.mark.limit(200)
@pytest.mark.slow(10)
def test_two_thousand_clients(lab, etcd, build, record_property):
    overlay(etcd, cidr="10.64.0.0/12", blockSize=24)
    s = LeaseServer(lab.node("c1"), build, etcd).start()
    told = load(s, build, 2000, 2000)
    assert told["acquire"]["wrong"] == told["snapshot"]["wrong"] == told["wake"]["wrong"] == 0
    assert told["distinct"] == 2000
    # Every metric of its own is explained, and nothing is that does not exist.
    page = pathlib.Path(__file__).resolve().parent.parent / "docs/LEASES.md"
    assert set(re.findall(r"^\| `(roost_\w+)", page.read_text(), re.M)) == {
        k for k in (re.match(r"\w+", x)[0] for x in s.metrics()) if k.startswith("roost_lease_")}
    record_property("told", figures(told))


class Flanneld:
    """What flanneld 0.7.1 keeps of a server's answers: its own lease, and an FDB by MAC."""

    def __init__(self, client, ip, mac):
        self.client, self.ip, self.mac = client, ip, mac
        self.fdb, self.leases = {}, {}
        self.ask()
        self.cursor = self.take(client.snapshot())

    def ask(self):
        self.lease = self.client.acquire(self.ip, self.mac)
        got = self.client.request("GET", self.client.base + self.path).json()
        assert got["snapshot"] == [self.lease]
        self.own_cursor = got["cursor"]

    @property
    def path(self):
        return f"/leases/{in_path(self.lease['Subnet'])}"

    def take(self, got):
        if not got["events"]:
            shot = {x["Subnet"]: x for x in got["snapshot"]}
            events = [("added", x) for s, x in shot.items() if s not in self.leases]
            events += [("removed", {"Subnet": s}) for s in self.leases if s not in shot]
        else:
            events = [(e["type"], e["lease"]) for e in got["events"]]
        for kind, lease in events:
            if kind == "added":
                self.leases[lease["Subnet"]] = lease["Attrs"]
                self.fdb[lease["Attrs"]["BackendData"]["VtepMAC"]] = lease["Attrs"]["PublicIP"]
            else:
                attrs = self.leases.pop(lease["Subnet"])
                self.fdb.pop(attrs["BackendData"]["VtepMAC"], None)
        return got["cursor"]

    def follow(self):
        self.cursor = self.take(self.client.next(self.cursor))

    def watch_own(self):
        """One round of its own lease: asks again when the first event says that it is gone."""
        got = self.client.next(self.own_cursor, self.path)
        if got["snapshot"] or got["events"][0]["type"] == "added":
            self.own_cursor = got["cursor"]
            return "kept"
        self.ask()
        return "asked again"


def test_nobody_gets_the_mac_of_another(server, etcd):
    """Other clients would send that node's packets to whoever has its MAC."""
    c = LeaseClient(server)
    etcd_txn(etcd, {"node/n1": {"ipv4": "192.0.2.1/24"}})
    victim = c.acquire("192.0.2.5", MAC % 5)
    cursor = c.snapshot()["cursor"]
    for mac, owner in ((MAC % 5, "lease-192.0.2.5"), (MAC_OF_N1, "n1")):
        said = c.request("POST", "/v1/_/leases", c.attrs("192.0.2.6", mac)).refused(500)
        assert f"{mac} is the tunnel MAC of node {owner}" in said
    mine = c.acquire("192.0.2.6", MAC % 6)
    said = c.renew({**mine, "Attrs": c.attrs("192.0.2.6", MAC % 5)}).refused(500)
    assert "tunnel MAC of node lease-192.0.2.5" in said
    data = {"VNI": 1, "VtepMAC": MAC % 6, "vtepmac": MAC % 5}
    said = c.request("POST", "/v1/_/leases", {**c.attrs("192.0.2.6", MAC % 6), "BackendData": data})
    assert "only in case" in said.refused(400)
    assert c.acquire("192.0.2.5", MAC % 5)["Subnet"] == victim["Subnet"]
    # A node's record that claims the MAC of another is not shown to clients.
    etcd_txn(etcd, {"node/n2": {"ipv4": "192.0.2.2/24", "vtep": {"mac": MAC_OF_N1}},
                    "block/default/10.5.78.0-24": {"node": "n2", "pool": "over"}})
    assert "10.5.78.0/24" not in c.subnets()
    assert all("removed" != e["type"] for e in c.next(cursor)["events"])


def test_a_node_that_gives_back_one_of_several_blocks_stays_reachable(server, etcd):
    key = lambda i: f"10.5.{i}.0-24"
    etcd_txn(etcd, {"node/n1": {"ipv4": "192.0.2.1/24", "vtep": {"mac": MAC_OF_N1}}, **{
        k: v for i in (1, 2) for k, v in {
            f"block/default/{key(i)}": {"node": "n1", "pool": "over"},
            f"host/n1/ipv4/block/default/{key(i)}": {"pool": "over"}}.items()}})
    c = LeaseClient(server)
    wait_until(lambda: len(c.subnets()) == 2, 10, "both blocks")
    flanneld = Flanneld(c, "192.0.2.5", MAC % 5)
    assert flanneld.fdb[MAC_OF_N1] == "192.0.2.1"
    etcd_txn(etcd, (), [f"block/default/{key(2)}", f"host/n1/ipv4/block/default/{key(2)}"])
    flanneld.follow()
    assert "10.5.2.0/24" not in flanneld.leases and flanneld.fdb[MAC_OF_N1] == "192.0.2.1"
    etcd_txn(etcd, (), [f"block/default/{key(1)}", f"host/n1/ipv4/block/default/{key(1)}"])
    flanneld.follow()
    assert MAC_OF_N1 not in flanneld.fdb


@pytest.mark.limit(120)
@pytest.mark.parametrize("how", ["deleted", "lost", "given"])
def test_who_lost_its_lease_while_the_server_was_down_asks_again(lab, etcd, build, how):
    """In a pool of one subnet: nobody else gets it before its holder has asked."""
    overlay(etcd, cidr="10.5.7.0/24")
    s = LeaseServer(lab.node("c1"), build, etcd, "--lease", "2").start()
    c, key = LeaseClient(s), "10.5.7.0-24"
    flanneld = Flanneld(c, "192.0.2.5", MAC % 5)
    s.stop()
    if how == "deleted":
        assert Ctl(lab.node("op"), build, etcd).run("lease delete 10.5.7.0/24 --yes").returncode == 0
    else:
        etcd.delete(f"{PREFIX}block/default/{key}")
    if how == "given":
        etcd_txn(etcd, {f"block/default/{key}": {"node": "lease-192.0.2.6", "pool": "over", "lease": {
            "publicIP": "192.0.2.6", "backendType": "vxlan", "expires": "2036-01-01T00:00:00Z"}}})
        overlay(etcd, cidr="10.5.6.0/23")
        etcd.delete(f"{PREFIX}extent/default/over")
    s.start()
    if how != "given":
        assert "every subnet" in c.request("POST", "/v1/_/leases", c.attrs("192.0.2.6")).refused(500)
    assert flanneld.watch_own() == "asked again"
    assert flanneld.lease["Subnet"] == ("10.5.6.0/24" if how == "given" else "10.5.7.0/24")
    with c.poll(flanneld.own_cursor, flanneld.path) as p:
        assert p.waits()


def test_a_renewal_storm_costs_etcd_nothing_and_is_reported(lab, etcd, build):
    """A lease of an hour, renewed an hour before its end: as fast as it is answered."""
    overlay(etcd)
    s = LeaseServer(lab.node("c1"), build, etcd, "--lease", "2", "--lease-ttl", "3600").start()
    c = LeaseClient(s)
    lease = c.acquire("192.0.2.5", MAC % 5)
    key = f"{PREFIX}block/default/{in_path(lease['Subnet'])}"
    for _ in range(3):
        assert c.renew(lease).json() == lease
    assert [kv.version for kv in etcd.list(key)] == [1]
    assert s.metrics()['roost_lease_changes_total{kind="repeated"}'] == 3
    s.process.wait_log("client 192.0.2.5 keeps renewing its lease of .* longer --lease-ttl")
    # What counts as a proof is asked of etcd itself.
    etcd.kill()
    assert c.renew(lease).status == 503

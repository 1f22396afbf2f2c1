# SPDX-License-Identifier: Apache-2.0
"""The lease server: every row of the API, several servers over one etcd, turmoil."""

import concurrent.futures
import ipaddress
import json
import ssl

import pytest

from lab.agent import PREFIX, put
from lab.controller import etcd_txn
from lab.ctl import Ctl
from lab.lease import NEVER, LeaseClient, LeaseServer, Poll, client_tls, in_path
from lab.tls import Authority
from lab.wait import wait_until

MAC = "02:00:00:00:00:0%d"


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
    assert "no cursor" in c.request("GET", "/v1/_/leases?next=x").refused(500)
    # One lease: its snapshot, its changes alone, renewals included.
    one = f"/leases/{key}"
    got = c.request("GET", c.base + one).json()
    assert got["snapshot"] == [again]
    with c.poll(got["cursor"], one) as p, c.poll(got["cursor"]) as everything:
        c.acquire("192.0.2.8")
        assert everything.answer().json()["events"][0]["lease"]["Attrs"]["PublicIP"] == "192.0.2.8"
        assert p.waits()
        server.node.run(["sleep", "1.1"])  # expirations count in seconds
        renewed = c.renew(again).json()
        assert p.answer().json()["events"] == [{"type": "added", "lease": renewed}]
    assert renewed["Expiration"] > again["Expiration"] and renewed["Attrs"] == again["Attrs"]
    # To all others a renewal is no change: the next one is.
    cursor = c.snapshot()["cursor"]
    with c.poll(cursor) as p:
        c.renew(renewed).json()
        assert p.waits()
        c.acquire("192.0.2.8", MAC % 8)
        assert p.answer().json()["events"][0]["lease"]["Attrs"]["PublicIP"] == "192.0.2.8"
    c.request("GET", "/v1/_/leases/10.5.255.0-24").refused(500)
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
    etcd_txn(etcd, {"node/n1": {"ipv4": "192.0.2.1/24", "vtep": {"mac": MAC % 1}},
                    "block/default/10.5.77.0-24": {"node": "n1", "pool": "over"},
                    "host/n1/ipv4/block/default/10.5.77.0-24": {"pool": "over"}})
    added = c.next(before)["events"]
    assert added == [{"type": "added", "lease": {
        "Subnet": "10.5.77.0/24", "Expiration": NEVER, "Attrs": {
            "PublicIP": "192.0.2.1", "BackendType": "vxlan",
            "BackendData": {"VNI": 4096, "VtepMAC": MAC % 1}}}}]
    assert "whose agent alone" in c.request("DELETE", "/v1/_/leases/10.5.77.0-24").refused(500)
    assert "lease taken" in c.renew({**added[0]["lease"]}).refused(500)
    assert len(listed()) == 1
    cursor = c.snapshot()["cursor"]
    etcd_txn(etcd, {"node/n1": {"ipv4": "192.0.2.2/24", "vtep": {"mac": MAC % 1}}})
    assert c.next(cursor)["events"][0]["lease"]["Attrs"]["PublicIP"] == "192.0.2.2"


def networks(c, cursor):
    return Poll(c.send("GET", f"/v1/?next={cursor}"))

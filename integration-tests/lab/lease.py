# SPDX-License-Identifier: Apache-2.0
"""A client of the lease server, written from docs/LEASES.md and nothing else.

    server = LeaseServer(lab.node("c1"), build, etcd).start()       # a controller that serves leases
    client = LeaseClient(server)
    lease = client.acquire("192.0.2.5", mac="02:00:00:00:00:05")
    client.snapshot()                           # {"events": [], "snapshot": [...], "cursor": "7"}
    with client.poll("7") as waiting:           # a long poll under way
        waiting.answer()
    client.request("GET", "/v1/_/config")       # Answer(status, type, text, headers)
"""

import http.client
import json
import os
import pathlib
import select
import socket
import ssl
import subprocess
import typing

from . import cost
from .controller import Controller
from .wait import wait_until

PORT = 10253
NEVER = "0001-01-01T00:00:00Z"


class Answer(typing.NamedTuple):
    status: int
    type: str
    text: str
    headers: dict

    def json(self):
        assert self.status == 200, self
        assert self.type == "application/json; charset=utf-8", self
        return json.loads(self.text)

    def refused(self, status):
        assert self.status == status, self
        assert self.type.startswith("text/plain"), self
        assert ("Retry-After" in self.headers) == (status == 503), self
        return self.text


class LeaseServer(Controller):
    """On loopback its clients are the tests, each of which speaks for many nodes."""

    def __init__(self, node, build, etcd, *flags, address="127.0.0.1"):
        self.address = address
        own = () if "--lease-operator" in flags else ("--lease-operator", "address:127.0.0.1")
        super().__init__(node, build, etcd, "--lease-listen", f"{address}:{PORT}", *own, *flags)

    def start_plainly(self):
        """Without a look whether it answers."""
        return super().start()

    def start(self):
        super().start()
        wait_until(lambda: LeaseClient(self).request("GET", "/v1/").status == 200, 30,
                   "the lease server to answer", errors=(OSError,))
        return self


class Poll:
    def __init__(self, connection):
        self.connection = connection

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.connection.close()

    def waits(self, seconds=0.2):
        """Whether no answer has come within that time."""
        return not select.select([self.connection.sock], [], [], seconds)[0]

    def answer(self):
        return LeaseClient.read(self.connection)


class LeaseClient:
    def __init__(self, server, network="_", tls=None, node=None):
        self.server, self.base, self.tls = server, f"/v1/{network}", tls
        self.node = node or server.node

    def connect(self, timeout=20):
        address = self.server.address
        sock = self.node.socket(socket.AF_INET, socket.SOCK_STREAM)
        sock.settimeout(timeout)
        sock.connect((address, PORT))
        c = http.client.HTTPConnection(address, PORT)
        c.sock = self.tls.wrap_socket(sock, server_hostname=address) if self.tls else sock
        return c

    @staticmethod
    def read(connection):
        r = connection.getresponse()
        text = r.read().decode()
        return Answer(r.status, r.getheader("Content-Type", ""), text, dict(r.getheaders()))

    def send(self, method, path, body=None):
        c = self.connect()
        if body is not None and not isinstance(body, str):
            body = json.dumps(body)
        c.request(method, path, body)
        return c

    def request(self, method, path, body=None):
        c = self.send(method, path, body)
        try:
            return self.read(c)
        finally:
            c.close()

    @staticmethod
    def attrs(ip, mac=None, **more):
        data = {"BackendType": "vxlan", "BackendData": {"VNI": 1, "VtepMAC": mac}} if mac else {}
        return {"PublicIP": ip, **data, **more}

    def acquire(self, ip, mac=None):
        return self.request("POST", f"{self.base}/leases", self.attrs(ip, mac)).json()

    def renew(self, lease):
        return self.request("PUT", f"{self.base}/leases/{in_path(lease['Subnet'])}", lease)

    def snapshot(self):
        got = self.request("GET", f"{self.base}/leases").json()
        assert set(got) == {"events", "snapshot", "cursor"} and got["events"] == []
        assert got["cursor"].isdigit()
        return got

    def subnets(self):
        return {x["Subnet"] for x in self.snapshot()["snapshot"]}

    def poll(self, cursor, path="/leases"):
        return Poll(self.send("GET", f"{self.base}{path}?next={cursor}"))

    def next(self, cursor, path="/leases"):
        with self.poll(cursor, path) as p:
            return p.answer().json()


def in_path(subnet):
    return subnet.replace("/", "-")


def client_tls(authority, certificate=None):
    context = ssl.create_default_context(cafile=str(authority.cert))
    if certificate:
        context.load_cert_chain(certificate.cert, certificate.key)
    return context


def load(server, build, acquirers, polls):
    """The figures of lease-load, with the server's memory and processor time."""
    def seconds():
        stat = pathlib.Path(f"/proc/{server.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")

    def status(key):
        return cost.status(server.process.pid, key) // 1024
    p = server.node.popen([build / "lease-load", "127.0.0.1", PORT, acquirers, polls],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True)
    line = p.stderr.readline()
    assert "waiting" in line, line + p.stderr.read()
    wait_until(lambda: server.metrics().get("roost_lease_polls") == polls, 60, "all to wait")
    before, memory = seconds(), status("VmRSS")
    out, err = p.communicate("\n", timeout=150)
    assert p.returncode == 0, err
    return {**json.loads(out), "memory": memory, "peak": status("VmHWM"), "cpu": seconds() - before}


def figures(told):
    a, s, w = told["acquire"], told["snapshot"], told["wake"]
    return (f"{a['n']} leases acquired in {a['seconds']:.1f} s (p99 {a['p99_ms']:.0f} ms), "
            f"{s['n']} snapshots of {told['snapshot_bytes'] // 1024} KiB in {s['seconds']:.1f} s, one "
            f"change heard by {w['n']} in {w['seconds'] * 1000:.0f} ms ({told['cpu'] * 1000:.0f} ms of "
            f"processor time), memory {told['memory']} MB with all waiting, {told['peak']} at most")

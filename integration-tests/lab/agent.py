# SPDX-License-Identifier: Apache-2.0
"""roostd on a node, and its local API as the plugins speak it.

    agent = Agent(n1, build, etcd).start()       # joins etcd's switch, returns when it serves
    agent.assign("c1")                           # ["10.1.0.5"]; agent.release("c1")
    reply = agent.api("POST", "/v1/ipam/assign", {...})   # reply.status, reply.body
    agent.kill(); agent.start(); agent.stop()
    agent.held()                                 # address -> container; agent.wait_agreed()
"""

import collections
import http.client
import json
import pathlib
import signal
import socket
import subprocess

from . import cni
from .wait import wait_until

RUN = "/run/roost"
TEMPLATES = pathlib.Path(__file__).resolve().parent.parent.parent / "templates"
PREFIX = "/roost/v1/"
Reply = collections.namedtuple("Reply", "status body")


class ApiError(AssertionError):
    """The agent refused: .status, .code, .text."""

    def __init__(self, reply):
        self.status, self.code, self.text = reply.status, reply.body["code"], reply.body["error"]
        super().__init__(f"{self.status}, code {self.code}: {self.text}")


class _Connection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


class Agent:
    """One node's agent: a program that is started, killed and started again."""

    def __init__(self, node, build, etcd, *flags, bird=None):
        """bird: the program of the BIRD that it manages; without one it leaves BIRD alone."""
        self.node, self.build, self.etcd, self.flags = node, build, etcd, list(flags)
        if "--bird-config" not in flags:
            self.flags += (["--bird-program", bird, "--template-dir", TEMPLATES] if bird
                           else ["--bird-config", "none"])
        self.process = None
        self.run_dir = flags[flags.index("--run-dir") + 1] if "--run-dir" in flags else RUN
        if node not in etcd.switch.ports and not getattr(node, "routed", False):
            etcd.join(node)

    def __repr__(self):
        return f"<agent of {self.node.name}>"

    # --- life -----------------------------------------------------------------------------------

    def spawn(self, *flags):
        """Start the process without waiting for anything."""
        etcd = self.etcd.flags(f"node {self.node.name}")
        self.process = self.node.spawn("roostd", [self.build / "roostd", *etcd, *self.flags, *flags],
                                       expect_clean=True)
        return self

    def start(self, *flags, timeout=20):
        self.spawn(*flags)
        return self.wait_ready(timeout)

    def stop(self):
        """SIGTERM; its exit code must be 0."""
        assert self.process.stop() == 0, self.process.log
        return self

    def kill(self):
        self.process.kill()
        return self

    def restart(self, how="kill"):
        getattr(self, how)()
        return self.start()

    def reload(self):
        self.process.signal(signal.SIGHUP)

    def wait_ready(self, timeout=20):
        def ready():
            assert self.process.alive, f"the agent ended: {self.process.log}"
            return self.status()["ready"]
        wait_until(ready, timeout, f"{self} to serve", errors=OSError)
        return self

    @property
    def socket(self):
        """Its path as the test can connect to it."""
        return self.node.path(f"{self.run_dir}/agent.sock")

    @property
    def log(self):
        return self.process.log

    # --- the API --------------------------------------------------------------------------------

    def api(self, method, path, body=None, timeout=20):
        """One request. body: an object, or bytes as they are. The reply's body is JSON."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        connection = _Connection(self.socket, timeout)
        try:
            connection.request(method, path, data)
            reply = connection.getresponse()
            return Reply(reply.status, json.loads(reply.read() or "null"))
        finally:
            connection.close()

    def get(self, path, timeout=20):
        """(status, body as text) of a GET: for what is not JSON."""
        connection = _Connection(self.socket, timeout)
        try:
            connection.request("GET", path)
            reply = connection.getresponse()
            return Reply(reply.status, reply.read().decode())
        finally:
            connection.close()

    def metrics(self):
        """{'name{label="value"}': number} of all samples."""
        return samples(self.get("/metrics").body)

    def call(self, path, **body):
        """A POST that must succeed; raises ApiError."""
        reply = self.api("POST", f"/v1/ipam/{path}", body)
        if reply.status != 200:
            raise ApiError(reply)
        return reply.body

    def assign_full(self, container="c1", interface="eth0", network="pods", **more):
        return self.call("assign", network=network, container=container, interface=interface,
                         **more)

    def assign(self, *args, **more):
        """The addresses, as texts."""
        return [a["address"] for a in self.assign_full(*args, **more)["addresses"]]

    def release(self, container="c1", interface="eth0", network="pods"):
        return self.call("release", network=network, container=container,
                         interface=interface)["released"]

    def refuses(self, *args, **more):
        """The ApiError that this assign must end with."""
        try:
            got = self.assign(*args, **more)
        except ApiError as e:
            return e
        raise AssertionError(f"was not refused but got {got}")

    def status(self):
        return self.api("GET", "/v1/status").body

    def health(self):
        """{part: reason}."""
        health = self.status()["health"]
        return {} if health == "ok" else {h["part"]: h["reason"] for h in health}

    def list(self):
        return self.api("GET", "/v1/ipam/list").body

    def blocks(self):
        """{block: state}."""
        return {b["block"]: b["state"] for b in self.list()["blocks"]}

    def held(self):
        """{address: container} of everything that is in use."""
        return {a["address"]: x["container"] for x in self.list()["attachments"]
                for a in x["addresses"]}

    def wait_health(self, part, words="", timeout=10):
        """Until this part is in trouble for a reason with these words; returns the reason."""
        def told():
            reason = self.health().get(part, "")
            return reason if words in reason else None
        return wait_until(told, timeout, f"{part}: ...{words}... in {self}'s health",
                          errors=OSError)

    def wait_well(self, part, timeout=10):
        wait_until(lambda: part not in self.health(), timeout, f"{part} of {self} to be well")

    # --- what others see ------------------------------------------------------------------------

    def plugin(self, verb, container="c1", ipam=None, conf=None, **env):
        """roost-ipam on this node, as a runtime runs it."""
        return cni.call(self.node, self.build / "roost-ipam", verb,
                        conf or cni.conf("1.0.0", "x", ipam), container=container, **env)

    def keys(self, kind):
        """{rest of the key: record} below host/<node>/<kind>/ in etcd."""
        start = f"{PREFIX}host/{self.node.name}/{kind}/"
        return {k[len(start):]: json.loads(v) for k, v in self.etcd.dump(start).items()}

    def agrees(self):
        """Whether etcd, files and memory tell the same: raises, or returns True."""
        held = {f"{a['network']}/{a['address']}": x["container"]
                for x in self.list()["attachments"] for a in x["addresses"]}
        keys = {k: v["container"] for k, v in self.keys("address").items()}
        assert keys == held, f"etcd has {keys}, the agent {held}"
        blocks = {f"{b['network']}/{b['block'].replace('/', '-')}"
                  for b in self.list()["blocks"] if b["state"] == "owned"}
        index = {**self.keys("ipv4/block"), **self.keys("ipv6/block")}
        assert set(index) == blocks, f"the index has {set(index)}, the agent {blocks}"
        own = {k[len(PREFIX + "block/"):] for k, v in self.etcd.dump(PREFIX + "block/").items()
               if json.loads(v)["node"] == self.node.name}
        assert own == blocks, f"etcd gives it {own}, the agent has {blocks}"
        folder = self.node.path(f"{self.run_dir}/blocks")
        files = {str(p.relative_to(folder)) for p in folder.glob("*/*") if p.name[0] != "."}
        assert files == blocks, f"there are files of {files}, the agent has {blocks}"
        n = len([p for p in self.node.path(f"{self.run_dir}/attachments").iterdir()
                 if p.name[0] != "."])
        assert n == len(self.list()["attachments"]), f"{n} attachment files"
        return True

    def wait_agreed(self, timeout=10):
        # A key damaged by a test is no JSON until it is written again.
        return wait_until(self.agrees, timeout, f"etcd, files and {self} to agree",
                          errors=(AssertionError, OSError, ValueError))


def samples(text):
    """Of an exposition text, each sample by its name with labels."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def check_metrics(text):
    """An exposition text is one that Prometheus takes."""
    checked = subprocess.run(["promtool", "check", "metrics"], input=text, text=True,
                             capture_output=True, check=False)
    assert checked.returncode == 0 and not checked.stderr, checked.stderr
    # Prometheus drops all but one of two samples with one name; promtool does not look for them.
    names = [line.rsplit(" ", 1)[0] for line in text.splitlines() if not line.startswith("#")]
    assert sorted(names) == sorted(set(names))


def put(etcd, key, **record):
    """A record below our prefix; returns the revision."""
    return etcd.put(PREFIX + key, json.dumps(record))


def pool(etcd, name="web", cidr="10.1.0.0/16", **fields):
    return put(etcd, f"pool/{name}", cidr=cidr, **fields)

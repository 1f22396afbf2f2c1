# SPDX-License-Identifier: Apache-2.0
"""roost-controller on a node, and nodes that exist in etcd only.

    c = Controller(n1, build, etcd, "--lease", 2).start()
    c.leads(); c.metrics()["roost_cluster_blocks"]; c.kill(); c.pause(); c.resume()
    etcd_txn(etcd, puts={...}, deletes=[...])       # many keys in few transactions
    Simulated(etcd, "s1", [0, 1, 2]).add()          # node, status, blocks 0 to 2 of 10.0.0.0/8 by /26
    acts(etcd)                                      # what controllers did, by etcd's history
"""

import collections
import ipaddress
import json

from .agent import PREFIX, samples
from .gateway import b64
from .wait import wait_until

PORT = 9641
LEADER = PREFIX + "leader/controller"


class Controller:
    def __init__(self, node, build, etcd, *flags):
        self.node, self.build, self.etcd, self.flags = node, build, etcd, list(flags)
        self.process = None
        if node not in etcd.switch.ports:
            etcd.join(node)

    def __repr__(self):
        return f"<controller on {self.node.name}>"

    def start(self):
        self.process = self.node.spawn("roost-controller", [
            self.build / "roost-controller", *self.etcd.flags("controller"), "--name", self.node.name,
            "--metrics", PORT, *self.flags], expect_clean=True)
        return self

    def stop(self):
        assert self.process.stop() == 0, self.process.log

    def kill(self):
        self.process.kill()

    def get(self, path):
        """(status, text) by its port; 0 while nobody listens there."""
        done = self.node.run(["curl", "-s", "-w", "\n%{http_code}",
                              f"http://127.0.0.1:{PORT}{path}"], check=False)
        body, status = done.stdout.rsplit("\n", 1)
        return int(status), body

    def metrics(self):
        return samples(self.get("/metrics")[1])

    def leads(self):
        """Whether etcd says that it does."""
        return leader_id(self.etcd).startswith(self.node.name + "-")

    def wait_leads(self, timeout=30):
        wait_until(self.leads, timeout, f"{self} to lead")
        return self


def leader_id(etcd):
    value = etcd.get(LEADER)
    return json.loads(value)["id"] if value else ""


def etcd_txn(etcd, puts=(), deletes=()):
    """puts: {relative key: object}. At most 128 in a transaction, in order."""
    ops = [{"request_put": {"key": b64(PREFIX + k), "value": b64(json.dumps(v))}}
           for k, v in dict(puts).items()]
    ops += [{"request_delete_range": {"key": b64(PREFIX + k)}} for k in deletes]
    for i in range(0, len(ops), 128):
        etcd.call("/v3/kv/txn", {"success": ops[i:i + 128]})


def revoke_status(etcd, node):
    """As if its lease had run out, which takes a minute."""
    status = next(kv for kv in etcd.list(f"{PREFIX}status/node/{node}"))
    etcd.call("/v3/lease/revoke", {"ID": str(status.lease)})


def owned(etcd, node):
    """The keys of its blocks."""
    return {k for k, v in etcd.dump(PREFIX + "block/").items() if json.loads(v)["node"] == node}


BLOCK = 26
_FIRST = int(ipaddress.ip_address("10.0.0.0"))


def block_name(i):
    return f"{ipaddress.ip_address(_FIRST + (i << 32 - BLOCK))}-{BLOCK}"


class Simulated:
    """A node as etcd knows it: record, status, blocks with an address each."""

    def __init__(self, etcd, name, blocks, alive=True):
        self.etcd, self.name, self.alive = etcd, name, alive
        self.blocks = [block_name(i) for i in blocks]

    def keys(self):
        keys = {f"node/{self.name}": {"ipv4": "192.0.2.1/24", "machine": self.name, "boot": "b"}}
        if self.alive:
            keys[f"status/node/{self.name}"] = {"health": "ok"}
        for b in self.blocks:
            keys[f"block/default/{b}"] = {"node": self.name, "pool": "all", "token": "t"}
            keys[f"host/{self.name}/ipv4/block/default/{b}"] = {"pool": "all"}
        return keys

    def add(self):
        etcd_txn(self.etcd, self.keys())
        return self


def pool_of_all(etcd):
    shape = {"cidr": "10.0.0.0/8", "blockSize": BLOCK}
    etcd_txn(etcd, {"pool/all": shape, "extent/default/all": shape})


Act = collections.namedtuple("Act", "revision leader keys")


def acts(etcd):
    """([Act], [(revision, leader)] of elections): each transaction of a controller puts the leader's
    key with its own text. Raises when one was made in another's reign."""
    by_revision = collections.defaultdict(list)
    for e in etcd.history(PREFIX):
        by_revision[e.revision].append(e)
    reign, done, elections = None, [], []
    for revision, events in sorted(by_revision.items()):
        key = next((e for e in events if e.key == LEADER), None)
        if not key:
            continue
        if key.type == "DELETE":
            reign = None
            continue
        writer = json.loads(key.value)["id"]
        others = [e.key for e in events if e is not key]
        if reign is None:
            assert not others, f"{writer} acted at {revision} while nobody led: {others}"
            reign = writer
            elections.append((revision, writer))
        else:
            assert writer == reign, f"{writer} wrote at {revision} while {reign} led"
            done.append(Act(revision, writer, others))
    return done, elections

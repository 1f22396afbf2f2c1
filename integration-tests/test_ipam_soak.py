# SPDX-License-Identifier: Apache-2.0
"""Ten agents, eighty clients and a minute in which nothing stays up.

Clients (tools/ipam_load.c) ADD, ADD again and DEL at random. Meanwhile agents are killed,
stopped and cut off, so are members of etcd, and pools are edited, deleted and made anew. The
judge is the clients' own log: an address has an owner from the moment an ADD's reply was
received until its DEL is sent, and never two. Afterwards files, etcd and memory tell the same
as that log.

The pools are scarce and their blocks small, so that blocks change hands all the time: network
`float` has one address to a block at first, asked for by number too. It lies over the
same addresses as `default`, which must not matter.
"""

import collections
import ipaddress
import itertools
import json
import os
import random
import re
import subprocess
import threading
import time

import pytest

from lab import EtcdError, wait_until
from lab.agent import PREFIX, Agent, pool
from lab.gateway import b64, prefix_end

SECONDS = int(os.environ.get("ROOST_SOAK_SECONDS", "40"))
# It goes on until there were that many, for at most four times the time.
OPERATIONS = int(os.environ.get("ROOST_SOAK_OPERATIONS", "0"))
SEED = int(os.environ.get("ROOST_SOAK_SEED", time.time_ns() % 100000))
NODES, WORKERS, SLOTS = 10, 8, 4
# A client's longest pause in ms: some 1,000 operations a second leave etcd its part of two cores.
THINK = 120

# Which network of ours a CNI network's addresses lie in: as ipam_load.c asks for them.
NETWORK = {"pods": "default", "float": "float"}
MAIN = dict(cidr="10.1.0.0/23", blockSize=28, cooldownSeconds=1)
SPARE = dict(cidr="10.2.0.0/23", blockSize=29, cooldownSeconds=1)
FLOAT = dict(cidr="10.1.0.0/26", network="float", blockSize=32, cooldownSeconds=0)
NOBODY = "has(nobody)"


# --- the judge -----------------------------------------------------------------------------------


class Operation(collections.namedtuple(
        "Operation", "begin end worker verb via network container code addresses text")):
    """A line of a client's log; times are ns of CLOCK_MONOTONIC."""

    @classmethod
    def parse(cls, line):
        begin, end, worker, verb, via, network, container, code, addresses, text = \
            line.rstrip("\n").split(" ", 9)
        return cls(int(begin), int(end), int(worker), verb, via, network, container, int(code),
                   frozenset(addresses.split(",")) - {"-"}, text)


class Life:
    """What one client held, from when it knew until it gave it back."""

    def __init__(self, op):
        self.network, self.container, self.addresses = op.network, op.container, op.addresses
        self.since, self.until = op.end, None

    def __repr__(self):
        return (f"{self.network}/{self.container} from {self.since} to {self.until or 'the end'}"
                f" {','.join(sorted(self.addresses))}")


def lives(operations, wrong):
    """[Life] of everybody. Each container belongs to one client, which does one thing at a time."""
    told = []
    for (network, container), ops in itertools.groupby(
            sorted(operations, key=lambda o: (o.network, o.container, o.begin)),
            key=lambda o: (o.network, o.container)):
        life = None
        for op in ops:
            if op.verb == "del":
                if op.code != 0:
                    wrong.append(f"a DEL failed: {op}")
                if life:
                    life.until = op.begin
                life = None
            elif op.code == 0 and not op.addresses:
                wrong.append(f"an ADD without addresses: {op}")
            elif op.code == 0 and life is None:
                life = Life(op)
                told.append(life)
            elif op.code == 0 and op.addresses != life.addresses:
                wrong.append(f"another address at the second time: {life}; {op}")
    return told


def find_double(told, wrong):
    """Whoever got an address before the one who had it sent its DEL."""
    holders = collections.defaultdict(list)
    for life in told:
        for address in life.addresses:
            holders[NETWORK[life.network], address].append(life)
    for (network, address), those in holders.items():
        those.sort(key=lambda life: life.since)
        for one, next_one in itertools.pairwise(those):
            if one.until is None or one.until > next_one.since:
                wrong.append(f"{address} of network {network} has two owners: {one}; {next_one}")


def find_odd_errors(operations, wrong):
    """Being full, not ready, or beaten to it is allowed; only a killed agent gives no answer."""
    for op in operations:
        if op.code not in (0, 11, 100, 102) and not (op.via == "api" and op.code == -1):
            wrong.append(f"an odd error: {op}")


def judge(operations):
    """Those who hold something at the end; raises with all that is wrong."""
    wrong = []
    told = lives(operations, wrong)
    find_double(told, wrong)
    find_odd_errors(operations, wrong)
    assert not wrong, f"{len(wrong)} things are wrong\n" + "\n".join(wrong[:20])
    return [life for life in told if life.until is None]


# --- the clients ---------------------------------------------------------------------------------


class Load:
    """The clients of one node."""

    def __init__(self, node, build, seed):
        node.pod("load")
        self.node, self.path = node, node.lab.dir / f"{node.name}.load.log"
        self.path.touch()
        self._file, self.count = open(self.path, "rb"), 0
        self._popen = node.popen([build / "ipam-load", node.name, build / "roost-ipam", self.path,
                                  seed, WORKERS, SLOTS, THINK],
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def progress(self):
        """How many operations there were so far."""
        self.count += self._file.read().count(b"\n")
        return self.count

    def order(self, command):
        self._popen.stdin.write(command + "\n")
        self._popen.stdin.flush()

    def wait(self, answer):
        said = self._popen.stdout.readline().strip()
        assert said == answer, f"the clients of {self.node} said {said!r}"

    def close(self):
        self._popen.stdin.close()
        assert self._popen.wait(10) == 0
        self._popen.stdout.close()
        self._file.close()

    def operations(self):
        return [Operation.parse(line) for line in self.path.read_text().splitlines()]


def all_of(loads, command, answer):
    """The same for everybody, at once."""
    for load in loads:
        load.order(command)
    for load in loads:
        load.wait(answer)


# --- the turmoil ---------------------------------------------------------------------------------


class Turmoil(threading.Thread):
    """One kind of misfortune after the other; always leaves a way back."""

    def __init__(self, name, seed, stop, story):
        super().__init__(name=name, daemon=True)
        self.random, self.stop, self.story = random.Random(seed), stop, story
        self.broken, self.counts = None, collections.Counter()

    def note(self, what, text=""):
        self.counts[f"{self.name}: {what}"] += 1
        self.story.append(f"{time.monotonic():.2f} {self.name}: {what} {text}")

    def pause(self, low, high):
        """Time passes; less of it when the end has come."""
        self.stop.wait(self.random.uniform(low, high))

    def run(self):
        try:
            while not self.stop.is_set():
                self.strike()
        except BaseException as e:  # for the main thread to see
            self.broken = e


class OnAgents(Turmoil):
    def __init__(self, agents, switch, *args):
        super().__init__("agents", *args)
        self.agents, self.switch = agents, switch

    def strike(self):
        agent = self.random.choice(self.agents)
        kind = self.random.choice(["kill", "kill", "kill", "stop", "cut"])
        self.note(kind, agent.node.name)
        if kind == "cut":
            self.switch.cut(agent.node)
            self.pause(0.2, 3)
            self.switch.restore(agent.node)
        else:
            assert agent.process.alive, f"{agent} ended by itself: {agent.process.returncode}"
            code = getattr(agent.process, kind)()
            # -15: so young that nsenter had not become roostd yet.
            assert kind == "kill" or code in (0, -15), f"{agent}: exit {code}"
            if self.random.random() < 0.5:
                self.pause(0, 1.5)
            agent.spawn()
        self.pause(0, 0.5)


class OnEtcd(Turmoil):
    def __init__(self, etcd, *args):
        super().__init__("etcd", *args)
        self.etcd, self.switch = etcd, etcd.switch

    def strike(self):
        """One member, seldom two at once: then nobody can write."""
        victims = self.random.sample(self.etcd.members, 2 if self.random.random() < 0.2 else 1)
        kind = self.random.choice(["pause", "pause", "kill", "stop", "isolate", "cut"])
        self.note(kind, " ".join(m.name for m in victims))
        if kind == "isolate":
            self.switch.partition(*[[m.node] for m in victims])
        for m in victims:
            if kind == "cut":
                self.switch.cut(m.node)
            elif kind != "isolate":
                getattr(m, kind)()
        self.pause(0.3, 3)
        if kind == "isolate":
            self.switch.heal()
        for m in victims:
            if kind == "pause":
                m.resume()
            elif kind == "cut":
                self.switch.restore(m.node)
            elif kind != "isolate":
                m.launch()
        self.pause(0.5, 2)


class OnPools(Turmoil):
    """As an operator who cannot make up his mind, and with the controller's part in it."""

    def __init__(self, etcd, *args):
        super().__init__("pools", *args)
        self.etcd, self.float, self.size = etcd, "float-a", FLOAT["blockSize"]

    def put(self, name, **record):
        self.etcd.put(f"{PREFIX}pool/{name}", json.dumps(record))

    def delete(self, name):
        self.etcd.delete(f"{PREFIX}pool/{name}")

    def strike(self):
        try:
            self.random.choice([self.make_anew, self.make_another, self.edit, self.move,
                                self.move])()
        except (OSError, EtcdError) as e:
            self.note("given up", str(e))
        self.pause(0.5, 2)

    def make_anew(self):
        """Deleted, and made with the same name; the size it asks for has no effect any more."""
        self.note("made anew", "main")
        self.delete("main")
        self.pause(0, 2)
        self.put("main", **{**MAIN, "blockSize": self.random.choice([27, 28, 29])})

    def make_another(self):
        """The same addresses under another name, while blocks of the old one are in use."""
        self.note("made another", "main")
        self.delete("main")
        self.put("main-b", **{**MAIN, "blockSize": 27})
        self.pause(0.5, 3)
        self.delete("main-b")
        self.put("main", **MAIN)

    def edit(self):
        self.note("edited", "spare")
        self.put("spare", **{**SPARE, "disabled": self.random.random() < 0.3,
                             "nodeSelector": self.random.choice(["", "", NOBODY])})
        self.pause(0.5, 3)
        self.put("spare", **SPARE)

    def move(self):
        """Emptied, deleted, and then cut anew under another name and in another size."""
        old, record = self.float, {**FLOAT, "blockSize": self.size}
        self.put(old, **record, nodeSelector=NOBODY)
        end = time.monotonic() + 10
        while not self.forget_extent(old):
            if self.stop.is_set() or time.monotonic() > end:
                self.note("not moved", f"{old}: still in use")
                self.put(old, **record)
                return
            self.pause(0.1, 0.3)
        self.delete(old)
        self.pause(0, 0.5)
        self.float = {"float-a": "float-b", "float-b": "float-a"}[old]
        self.size = self.random.choice([30, 31, 32, 32])
        self.put(self.float, **{**record, "blockSize": self.size})
        self.note("moved", f"{old} to {self.float}, blocks of /{self.size}")

    def forget_extent(self, name):
        """What the controller does when the last block is gone, in one transaction."""
        blocks = f"{PREFIX}block/float/"
        reply = self.etcd.call("/v3/kv/txn", {
            "compare": [{"target": "CREATE", "result": "LESS", "create_revision": "1",
                         "key": b64(blocks), "range_end": b64(prefix_end(blocks))}],
            "success": [{"request_delete_range": {"key": b64(f"{PREFIX}extent/float/{name}")}}]})
        return reply.get("succeeded", False)


# --- the end -------------------------------------------------------------------------------------


def bring_all_up(etcd, agents):
    etcd.switch.heal()
    for m in etcd.members:
        etcd.switch.restore(m.node)
        if not m.alive:
            m.launch()
        m.resume()
    etcd.wait_healthy()
    for agent in agents:
        etcd.switch.restore(agent.node)
        if not agent.process.alive:
            agent.spawn()
    for agent in agents:
        agent.wait_ready(30)


def check_blocks(etcd, agents):
    """Each has one owner who knows of it, and none lies within another."""
    networks, names = collections.defaultdict(list), {a.node.name for a in agents}
    for key, value in etcd.dump(PREFIX + "block/").items():
        network, block = key[len(PREFIX + "block/"):].split("/")
        assert json.loads(value)["node"] in names, f"{key}: {value}"
        networks[network].append(ipaddress.ip_network(block.replace("-", "/")))
    for blocks in networks.values():
        for one, next_one in itertools.pairwise(sorted(blocks)):
            assert not one.overlaps(next_one), f"{one} and {next_one}"


def check_held(agents, holding):
    """Every agent knows of exactly what the clients of its node hold."""
    clients = {(a.node.name, life.network, life.container): life.addresses
               for a in agents for life in holding
               if life.container.startswith(a.node.name + "-")}
    known = {(a.node.name, x["network"], x["container"]):
             frozenset(y["address"] for y in x["addresses"])
             for a in agents for x in a.list()["attachments"]}
    assert known == clients, (
        f"agents alone: { {k: v for k, v in known.items() if clients.get(k) != v} }, "
        f"clients alone: { {k: v for k, v in clients.items() if known.get(k) != v} }")


def check_calm(etcd, agents, holding):
    def settled(agent):
        # Blocks may still be on their way back.
        return agent.agrees() and set(agent.blocks().values()) <= {"owned"}
    for agent in agents:
        wait_until(lambda a=agent: not any(a.node.path("/run/roost/spool").glob("*.json")), 10,
                   f"the spool of {agent} to be read")
        wait_until(lambda a=agent: settled(a), 20, f"etcd, files and {agent} to agree",
                   errors=AssertionError)
    check_held(agents, holding)
    check_blocks(etcd, agents)


def check_logs(agents):
    """Nobody ever saw another's block among his own, or two holders of one address."""
    for agent in agents:
        found = re.search(r"^.*(belongs to node .* now|is held by .* and by).*$", agent.log, re.M)
        assert not found, f"{agent}: {found.group()}"


# --- tests ---------------------------------------------------------------------------------------


def test_the_judge_sees_what_is_wrong():
    def log(*lines):
        return [Operation.parse(line) for line in lines]
    a, b = "1 5 0 add exec pods n1-0-0-1 0 10.1.0.1 ", "9 9 0 del api pods n1-0-0-1 0 - "
    assert judge(log(a, b)) == [] and len(judge(log(a))) == 1
    # From the DEL on it may be given to others, however long the DEL takes.
    judge(log(a, "9 20 0 del api pods n1-0-0-1 0 - ", "2 10 0 add exec pods n2-0-0-1 0 10.1.0.1 "))
    # Another network is another world; one that failed is no owner.
    judge(log(a, "6 7 0 add exec float n2-0-0-1 0 10.1.0.1 "))
    judge(log(a, "6 7 0 add exec pods n2-0-0-1 11 - not ready"))
    for line, what in [("6 7 0 add api pods n2-0-0-1 0 10.1.0.1 ", "two owners"),
                       ("2 3 0 add api pods n2-0-0-1 0 10.1.0.1,10.1.0.2 ", "two owners"),
                       ("6 7 0 again exec pods n1-0-0-1 0 10.1.0.2 ", "at the second time"),
                       ("6 7 0 again exec pods n1-0-0-1 5 - out of memory", "odd error"),
                       ("6 7 0 add exec pods n2-0-0-1 -1 - ", "odd error"),
                       ("6 7 0 del exec pods n2-0-0-1 11 - ", "DEL failed"),
                       ("6 7 0 add exec pods n2-0-0-1 0 - ", "without addresses")]:
        with pytest.raises(AssertionError, match=what):
            judge(log(a, line, b))


@pytest.mark.limit(4 * SECONDS + 150)
def test_no_address_has_two_owners_whatever_happens(lab, build):
    etcd = lab.etcd(members=3)
    pool(etcd, "main", **MAIN)
    pool(etcd, "spare", **SPARE)
    pool(etcd, "float-a", **FLOAT)
    agents = [Agent(node, build, etcd).spawn() for node in lab.nodes(NODES)]
    for agent in agents:
        agent.wait_ready()
    loads = [Load(a.node, build, SEED + 100 * i) for i, a in enumerate(agents)]

    stop, story, begin = threading.Event(), [], time.monotonic()
    turmoils = [OnAgents(agents, etcd.switch, SEED + 1, stop, story),
                OnEtcd(etcd, SEED + 2, stop, story), OnPools(etcd, SEED + 3, stop, story)]
    for t in turmoils:
        t.start()
    try:
        while True:
            stop.wait(0.5)
            done, spent = sum(load.progress() for load in loads), time.monotonic() - begin
            broken = [t.broken for t in turmoils if t.broken]
            if broken or spent > SECONDS and (done >= OPERATIONS or spent > 4 * SECONDS):
                break
    finally:
        stop.set()
        for t in turmoils:
            t.join(60)
        print(f"seed {SEED}", *story, sep="\n")
    assert not broken, broken
    bring_all_up(etcd, agents)
    all_of(loads, "hold", "held")

    operations = [op for load in loads for op in load.operations()]
    done = collections.Counter(op.verb for op in operations if op.code == 0)
    failed = collections.Counter(op.code for op in operations if op.code != 0)
    counts = sum((t.counts for t in turmoils), collections.Counter())
    print(f"{len(operations)} operations in {spent:.0f} s: {dict(done)}, failed: {dict(failed)}, "
          f"{dict(counts)}")
    held = judge(operations)
    check_calm(etcd, agents, held)
    all_of(loads, "drain", "drained")
    assert judge([op for load in loads for op in load.operations()]) == []
    check_calm(etcd, agents, [])
    check_logs(agents)
    for load in loads:
        load.close()
    assert done["del"] > 100 and counts["agents: kill"] > 2, "there was no turmoil to speak of"

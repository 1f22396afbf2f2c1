# SPDX-License-Identifier: Apache-2.0
"""Ten agents, eighty clients and a minute in which nothing stays up.

Clients (tools/ipam_load.c) ADD, ADD again and DEL at random. Meanwhile agents are killed,
stopped and cut off, so are members of etcd, which also goes back to a snapshot, and pools are
edited, deleted and made anew. A node is removed while its agent is stopped or cut off, and
comes back; another one's name is taken by a copy of its machine. The
judge is the clients' own log: an address has an owner from the moment an ADD's reply was
received until its DEL is sent, and never two. Only what a node held that was silent for
reclaimAfter, and then lost its blocks, is another's (class Void). Afterwards files, etcd and
memory tell the same as that log.

A minute of agents and controller lasts MINUTE ms, so that reclaimAfter (900 s) is 6 s, and agents
are stopped for longer than that.

The pools are scarce and their blocks small, so that blocks change hands all the time: network
`float` has one address to a block at first, asked for by number too. It lies over the
same addresses as `default`, which must not matter.
"""

import collections
import contextlib
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
from lab.agent import PREFIX, Agent, pool, put
from lab.controller import Controller, revoke_status
from lab.ctl import Ctl
from lab.gateway import b64, prefix_end

SECONDS = int(os.environ.get("ROOST_SOAK_SECONDS", "40"))
# It goes on until there were that many, for at most four times the time.
OPERATIONS = int(os.environ.get("ROOST_SOAK_OPERATIONS", "0"))
SEED = int(os.environ.get("ROOST_SOAK_SEED", time.time_ns() % 100000))
NODES, WORKERS, SLOTS = 10, 8, 4
# A client's longest pause in ms: some 1,000 operations a second leave etcd its part of two cores.
THINK = 120
MINUTE = 400
RECLAIM = 15 * MINUTE / 1000

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


class Void(collections.namedtuple("Void", "clients begin end")):
    """These clients' node was silent from begin on, and had lost its name or blocks at the end."""

    def apply(self, life):
        if life.container.startswith(self.clients + "-") and life.since < self.end and (
                life.until is None or life.until > self.begin):
            life.until = max(self.begin, life.since)


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


def judge(operations, voids=()):
    """Those who hold something at the end; raises with all that is wrong."""
    wrong = []
    told = lives(operations, wrong)
    for void in voids:
        for life in told:
            void.apply(life)
    find_double(told, wrong)
    find_odd_errors(operations, wrong)
    assert not wrong, f"{len(wrong)} things are wrong\n" + "\n".join(wrong[:20])
    return [life for life in told if life.until is None]


# --- the clients ---------------------------------------------------------------------------------


class Load:
    """The clients of one node."""

    def __init__(self, node, build, seed, name=None):
        """name: with what its containers' names begin."""
        self.node, self.name = node, name or node.name
        if not node.path("/run/netns/load").exists():
            node.pod("load")
        self.path = node.lab.dir / f"{self.name}.load.log"
        self.path.touch()
        self._file, self.count = open(self.path, "rb"), 0
        self._popen = node.popen([build / "ipam-load", self.name, build / "roost-ipam", self.path,
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
        kind = self.random.choice(["kill", "kill", "kill", "stop", "cut", "pause"])
        lasts = self.random.uniform(1, 1.5 * RECLAIM)
        long = kind == "pause" and lasts > RECLAIM
        self.note("pause beyond reclaimAfter" if long else kind, agent.node.name)
        if kind == "pause":
            agent.process.pause()
            self.pause(lasts, lasts)
            agent.process.resume()
        elif kind == "cut":
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
    def __init__(self, etcd, pools, *args):
        """pools: nobody cuts a pool another way between a snapshot and its return."""
        super().__init__("etcd", *args)
        self.etcd, self.switch, self.pools, self.strikes = etcd, etcd.switch, pools, 0

    def strike(self):
        self.strikes += 1
        if self.strikes % 6 == 3:
            self.go_back()
        else:
            self.hit()

    def go_back(self):
        with self.pools:
            snapshot = self.etcd.save()
            self.pause(1, 4)
            self.note("restore")
            self.etcd.restore(snapshot, new_id=self.random.random() < 0.5)
        self.pause(3, 5)

    def hit(self):
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

    def __init__(self, etcd, pools, *args):
        super().__init__("pools", *args)
        self.etcd, self.float, self.size = etcd, "float-a", FLOAT["blockSize"]
        self.pools = pools

    def put(self, name, **record):
        self.etcd.put(f"{PREFIX}pool/{name}", json.dumps(record))

    def delete(self, name):
        self.etcd.delete(f"{PREFIX}pool/{name}")

    def strike(self):
        try:
            with self.pools:
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


class OnNodes(Turmoil):
    """Nodes with clients of their own, who have given everything back when a round has ended."""

    def __init__(self, name, etcd, build, *args):
        super().__init__(name, *args)
        self.etcd, self.build, self.rounds = etcd, build, 0
        self.loads, self.voids = [], []

    def load(self, agent):
        self.rounds += 1
        self.loads.append(Load(agent.node, self.build, self.rounds, f"{self.name}{self.rounds}"))
        return self.loads[-1]

    def end(self, load):
        for command, answer in ("hold", "held"), ("drain", "drained"):
            load.order(command)
            load.wait(answer)
        load.close()

    def silence(self, agent):
        """Its status is gone, as after a minute without a word."""
        def gone():
            if self.etcd.get(f"{PREFIX}status/node/{agent.node.name}"):
                revoke_status(self.etcd, agent.node.name)
            return True
        wait_until(gone, 60, "the status to go", errors=(OSError, EtcdError, StopIteration))

    def until(self, fn, seconds):
        """Whether it came true, unless the end comes first."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self.stop.is_set():
            try:
                if fn():
                    return True
            except (OSError, EtcdError):
                pass
            time.sleep(0.1)
        return False


class OnRemovals(OnNodes):
    """A node is removed while it is silent, and comes back when its blocks are others'."""

    def __init__(self, agent, ctl, *args):
        super().__init__("removed", *args)
        self.agent, self.ctl, self.key = agent, ctl, f"{PREFIX}removed/{agent.node.name}"

    def strike(self):
        agent, load = self.agent, self.load(self.agent)
        self.pause(0.5, 2)
        kind = self.random.choice(["pause", "pause", "kill", "cut"])
        begin = time.monotonic_ns()
        if kind == "cut":
            self.etcd.switch.cut(agent.node)
        else:
            getattr(agent.process, kind)()
        self.silence(agent)
        asked = self.until(lambda: self.ctl.run(
            f"node delete {agent.node.name} --yes").returncode == 0, 30)
        freed = asked and self.until(lambda: self.etcd.get(self.key) is None, 60)
        self.voids.append(Void(load.name, begin, time.monotonic_ns()))
        self.note(f"after {kind}" if freed else "not removed")
        if kind == "cut":
            self.etcd.switch.restore(agent.node)
        elif kind == "pause":
            agent.process.resume()
        else:
            agent.spawn()
        self.take_back()
        self.pause(1, 3)
        self.end(load)

    def take_back(self):
        """Also one that a restore brought back."""
        wait_until(lambda: self.etcd.delete(self.key) >= 0, 60, "the removal to be undone",
                   errors=(OSError, EtcdError))


class OnNames(OnNodes):
    """Two machines of one name, made from one image."""

    def __init__(self, machines, *args):
        super().__init__("copied", *args)
        self.holder, self.other = machines

    def strike(self):
        if self.random.random() < 0.4:
            self.start_a_copy()
        else:
            self.take_over()
        self.pause(0, 1)

    def start_a_copy(self):
        load = self.load(self.holder)
        self.pause(0, 1)
        self.other.spawn()
        copies = self.load(self.other)
        self.pause(1, 3)
        self.note("copy beside")
        self.end(copies), self.end(load)
        self.other.kill()

    def take_over(self):
        holder, other = self.holder, self.other
        load = self.load(holder)
        self.pause(0.5, 2)
        begin = time.monotonic_ns()
        self.etcd.switch.cut(holder.node)
        self.silence(holder)
        other.spawn()
        taken = self.until(lambda: other.status()["ready"], 60)
        self.voids.append(Void(load.name, begin, time.monotonic_ns()))
        self.note("taken over" if taken else "not taken over")
        copies = self.load(other)
        self.pause(0.5, 1)
        self.etcd.switch.restore(holder.node)
        self.pause(1, 3)
        self.end(load), self.end(copies)
        if taken:
            self.holder, self.other = other, holder
        self.other.kill()


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
        agent.process.resume()
        agent.wait_ready(60)


def check_blocks(etcd, agents):
    """Each has one owner who knows of it, and none lies within another."""
    networks, names = collections.defaultdict(list), {a.node.name for a in agents}
    for key, value in etcd.dump(PREFIX + "block/").items():
        network, block = key[len(PREFIX + "block/"):].split("/")
        assert json.loads(value)["node"] in names | {"gone", "copy"}, f"{key}: {value}"
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
        # A recovery may be open for 60 minutes.
        wait_until(lambda a=agent: settled(a), 60, f"etcd, files and {agent} to agree",
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
    # Nor what a node held that has lost its blocks meanwhile, but what it gives after that does.
    late = "6 7 0 add api pods n2-0-0-1 0 10.1.0.1 "
    judge(log(a, late), [Void("n1", 5, 6)])
    with pytest.raises(AssertionError, match="two owners"):
        judge(log(a, late), [Void("n1", 2, 4)])
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
@pytest.mark.slow(50)
@pytest.mark.xdist_group("processor")
def test_no_address_has_two_owners_whatever_happens(lab, build, capsys):
    etcd = lab.etcd(members=3)
    pool(etcd, "main", **MAIN)
    pool(etcd, "spare", **SPARE)
    pool(etcd, "float-a", **FLOAT)
    put(etcd, "config", reclaimAfter=900)
    Controller(lab.node("c1"), build, etcd, "--lease", "2", "--minute", MINUTE).start()
    agents = [Agent(node, build, etcd, "--minute", MINUTE).spawn() for node in lab.nodes(NODES)]
    # Those of other clients: they come and go.
    gone = Agent(lab.node("gone"), build, etcd, "--minute", MINUTE).spawn()
    first = lab.node("copy")
    copies = [Agent(node, build, etcd, "--minute", MINUTE)
              for node in (first, lab.node("copy", machine_id=first.machine_id))]
    copies[0].spawn()
    for agent in (*agents, gone, copies[0]):
        agent.wait_ready()
    loads = [Load(a.node, build, SEED + 100 * i) for i, a in enumerate(agents)]

    stop, story, begin = threading.Event(), [], time.monotonic()
    pools = threading.Lock()
    nodes = [OnRemovals(gone, Ctl(lab.node("op"), build, etcd), etcd, build, SEED + 4, stop, story),
             OnNames(copies, etcd, build, SEED + 5, stop, story)]
    turmoils = [OnAgents(agents, etcd.switch, SEED + 1, stop, story),
                OnEtcd(etcd, pools, SEED + 2, stop, story),
                OnPools(etcd, pools, SEED + 3, stop, story), *nodes]
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
            t.join(120)
        print(f"seed {SEED}", *story, sep="\n")
    assert not broken, broken
    nodes[0].take_back()
    bring_all_up(etcd, [*agents, gone, nodes[1].holder])
    all_of(loads, "hold", "held")

    voids = [void for t in nodes for void in t.voids]
    passing = [op for t in nodes for load in t.loads for op in load.operations()]
    operations = passing + [op for load in loads for op in load.operations()]
    done = collections.Counter(op.verb for op in operations if op.code == 0)
    failed = collections.Counter(op.code for op in operations if op.code != 0)
    counts = sum((t.counts for t in turmoils), collections.Counter())
    # `make soak` shows it also when all is well.
    with capsys.disabled() if OPERATIONS else contextlib.nullcontext():
        print(f"\nseed {SEED}: {len(operations)} operations in {spent:.0f} s: {dict(done)}, "
              f"failed: {dict(failed)}, {sum(counts.values())} faults: {dict(counts)}")
    held = judge(operations, voids)
    check_calm(etcd, agents, held)
    all_of(loads, "drain", "drained")
    assert judge(passing + [op for load in loads for op in load.operations()], voids) == []
    check_calm(etcd, agents, [])
    check_logs(agents)
    for load in loads:
        load.close()
    assert done["del"] > 100 and counts["agents: kill"] > 2, "there was no turmoil to speak of"

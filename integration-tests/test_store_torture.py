# SPDX-License-Identifier: Apache-2.0
"""A minute in which etcd's members die, stop, come back and compact under its clients.

One client watches, one claims and releases through settled transactions, a writer changes
keys of known sequence, and an independent observer keeps etcd's own history. Afterwards the
watcher's view equals etcd's, and what the claimer believes of each transaction equals what
the history says.
"""

import os
import random
import threading
import time

import pytest
from lab import EtcdError, wait_until
from lab.gateway import Gateway, b64
from lab.observer import Observer

SECONDS = int(os.environ.get("ROOST_TORTURE_SECONDS", "60"))
WORKERS = 4


class Writer(threading.Thread):
    """Puts and deletes numbered values; remembers at which revision each was acknowledged."""

    def __init__(self, etcd, stop):
        super().__init__(daemon=True)
        self.etcd, self.stop, self.acknowledged = etcd, stop, {}

    def run(self):
        gateways = [Gateway(m.node, m.address) for m in self.etcd.members]
        n = 0
        while not self.stop.is_set():
            n += 1
            key = f"/t/w/{n % 97}"
            body, path = {"key": b64(key), "value": b64(str(n))}, "/v3/kv/put"
            if n % 7 == 0:
                body, path = {"key": b64(key)}, "/v3/kv/deleterange"
            try:
                reply = gateways[n % len(gateways)].request(path, body, timeout=0.5)
                if path.endswith("put"):
                    self.acknowledged[int(reply["header"]["revision"])] = (key, str(n))
            except (OSError, EtcdError):
                pass  # lost or late: etcd's history will tell
            self.stop.wait(0.002)


class Claimer(threading.Thread):
    """Claims and releases one block over and over, as an agent does, and notes what it believes."""

    def __init__(self, number, store, etcd, stop):
        super().__init__(daemon=True)
        self.number, self.store, self.stop = number, store, stop
        self.fence, self.block = f"/t/b/node-{number}", f"/t/b/block-{number}"
        self.believed = []  # (verb, token, outcome, was_lost)
        self.fence_revision = etcd.put(self.fence, "node")
        self.broken = None

    def run(self):
        try:
            n = 0
            while not self.stop.is_set():
                n += 1
                self.once(f"{self.number}.{n}")
        except Exception as e:  # for the main thread to see
            self.broken = e

    def settled(self, verb, token, **txn):
        # Waits past the end of the turmoil: every transaction is to be settled.
        reply = self.store.call("txn", wait=SECONDS + 60, fence=0, witness=0, **txn)
        self.believed.append((verb, token, reply.outcome, reply.was_lost))
        return reply

    def once(self, token):
        reply = self.settled("claim", token, compare=[
            dict(key=self.fence, target="mod", relation="=", number=self.fence_revision),
            dict(key=self.block, target="create", relation="=", number=0),
        ], success=[dict(put=self.block, value=token)])
        if reply.was_lost:
            self.fence_revision = reply.fence_revision
        if reply.outcome != "applied":
            return
        revision = reply.witness["mod"] if reply.was_lost else reply.revision
        while True:
            reply = self.settled("release", token, compare=[
                dict(key=self.block, target="mod", relation="=", number=revision),
            ], success=[dict(delete=self.block)])
            if reply.outcome == "applied":
                return
            # Fencing raised it, so it is still ours and can be released by its new revision.
            assert reply.was_lost and reply.witness["value"] == token, reply
            revision = reply.witness["mod"]


class Turmoil:
    """What happens to the members. Always leaves a way back."""

    def __init__(self, etcd, observer, watching, claiming, seed):
        self.etcd, self.observer, self.random = etcd, observer, random.Random(seed)
        self.watching, self.claiming = watching, claiming
        self.story = []

    def note(self, text):
        self.story.append(f"{time.monotonic():.2f} {text}")

    def in_use_by(self, store):
        endpoint = store.stats()["endpoint"]
        return next(m for m in self.etcd.members if m.url == endpoint)

    def compact(self):
        revision = self.observer.seen
        try:
            self.etcd.call("/v3/kv/compaction", {"revision": str(revision)}, timeout=5)
            self.note(f"compacted at {revision}")
        except (OSError, EtcdError) as e:
            self.note(f"compaction at {revision}: {e}")

    def silence(self, seconds):
        """The member that carries the watch stream says nothing for long; history goes on."""
        member = self.in_use_by(self.watching)
        self.note(f"long pause of {member}")
        member.pause()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(3)
            self.compact()
        member.resume()

    def strike(self):
        """One misfortune, seldom two at once."""
        victims = [self.in_use_by(self.claiming) if self.random.random() < 0.6
                   else self.random.choice(self.etcd.members)]
        if self.random.random() < 0.15:
            victims.append(self.random.choice([m for m in self.etcd.members if m not in victims]))
        kind = self.random.choice(["pause", "pause", "kill", "stop", "compact"])
        self.note(f"{kind} {victims}")
        if kind == "compact":
            self.compact()
        elif kind == "pause":
            for m in victims:
                m.pause()
            time.sleep(self.random.uniform(1.0, 4.0))
            for m in victims:
                m.resume()
        else:
            for m in victims[:1]:
                getattr(m, kind)()
                time.sleep(self.random.uniform(0.2, 1.5))
                m.launch()
        time.sleep(self.random.uniform(0.3, 1.5))

    def run(self, seconds):
        end = time.monotonic() + seconds
        if seconds >= 40:
            self.silence(30)
        while time.monotonic() < end:
            self.strike()


def history_of(claimer, events):
    """{token: "claimed" or "released"} as etcd has it."""
    fate, current = {}, None
    for e in events:
        if e.key != claimer.block:
            continue
        if e.type == "DELETE":
            fate[current] = "released"
        else:
            current = e.value
            fate.setdefault(current, "claimed")
    return fate


def check_beliefs(claimer, events):
    fate = history_of(claimer, events)
    for verb, token, outcome, was_lost in claimer.believed:
        what = f"{verb} of {token}: believed {outcome} (lost: {was_lost}), history: {fate.get(token)}"
        if verb == "claim":
            assert (outcome == "applied") == (token in fate), what
        elif outcome == "applied":
            assert fate[token] == "released", what
    released = {token for verb, token, outcome, _ in claimer.believed
                if verb == "release" and outcome == "applied"}
    for token, what in fate.items():
        assert (what == "released") == (token in released), f"{token}: {what} in etcd's history"


def check_order(watch, store):
    """After a cut nothing older than what was delivered before it appears."""
    cuts = [(n.at, None) for n in store.notices if n.name == "trouble"]
    floor = newest = 0
    for at, event in sorted(cuts + [(e.at, e) for e in watch.events], key=lambda x: x[0]):
        if event is None:
            floor = newest
        else:
            assert event.revision >= floor, f"{event} after revision {floor}"
            newest = max(newest, event.revision)


@pytest.mark.limit(SECONDS + 150)
@pytest.mark.slow(65)
def test_watch_and_settled_transactions_survive_a_minute_of_turmoil(lab, store_driver, request):
    etcd = lab.etcd(members=3)
    node = lab.node("client")
    etcd.join(node)
    watching = store_driver(etcd, node=node, name="watching")
    claiming = store_driver(etcd, node=node, name="claiming")
    observer = Observer(etcd, "/t/")
    stop = threading.Event()
    watch = watching.watch("/t/w/")
    watch.wait_sync()
    writer = Writer(etcd, stop)
    claimers = [Claimer(i, claiming, etcd, stop) for i in range(WORKERS)]
    for t in [writer, *claimers]:
        t.start()

    seed = int(os.environ.get("ROOST_TORTURE_SEED", time.time_ns() % 100000))
    turmoil = Turmoil(etcd, observer, watching, claiming, seed)
    try:
        turmoil.run(SECONDS)
    finally:
        print(f"seed {seed}", *turmoil.story, sep="\n")
        stop.set()
    for t in [writer, *claimers]:
        t.join(90)
        assert not t.is_alive(), f"{t} is still waiting for an outcome"
    for m in etcd.members:
        if not m.alive:
            m.launch()
    etcd.wait_healthy()

    # What a stopped member still held back is applied by now: each has been heard of since.
    for m in etcd.members:
        last = int(etcd.call("/v3/kv/put", {"key": b64("/t/end"), "value": b64(m.name)},
                             member=m)["header"]["revision"])
    observer.finish(last)
    wait_until(lambda: watch.state == etcd.dump("/t/w/"), 40, "the watcher's view to equal etcd's")
    watch.check()
    check_order(watch, watching)
    for event in watch.events:
        if event.kind == "put" and event.revision in writer.acknowledged:
            assert writer.acknowledged[event.revision] == (event.key, event.value)
    for c in claimers:
        assert c.broken is None, c.broken
        check_beliefs(c, observer.events)

    lost = sum(was_lost for c in claimers for *_, was_lost in c.believed)
    print(f"{len(watch.events)} events, {len(watch.syncs)} listings, "
          f"{sum(len(c.believed) for c in claimers)} transactions, {lost} lost and settled")
    assert len(watch.events) > 100 and lost > 0, "there was no turmoil to speak of"
    if SECONDS >= 40:
        assert len(watch.syncs) > 1, "the watch was never compacted away"

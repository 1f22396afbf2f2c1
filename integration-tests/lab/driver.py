# SPDX-License-Identifier: Apache-2.0
"""The store under test, at the test's command: Python around build/store-driver.

    store = store_driver(etcd)                   # the fixture; node=n1: inside that node
    store.call("put", key="/a", value="1").must().revision
    reply = store.call("txn", compare=[dict(key="/a", target="mod", number=7)],
                       success=[dict(put="/a", value="2")])
    assert reply.err == "ETIMEDOUT" and reply.unknown
    later = store.start("put", key="/b", value="1")     # later.wait() -> the reply
    watch = store.watch("/")
    watch.wait_sync()                                   # .wait_key("/a", "2") .wait_gone("/a")
    watch.state, watch.events, watch.syncs              # watch.check(): none twice, rising
    store.wait_notice("trouble"); store.stats()["endpoint"]

The operations are those of tools/store_driver.c.
"""

import collections
import time

from . import process
from .lines import JsonLines

Event = collections.namedtuple("Event", "kind key value revision at")
Event.__doc__ = """kind: "put" or "deleted"; at: time.monotonic() of its arrival."""
Sync = collections.namedtuple("Sync", "revision puts deletes at")
Notice = collections.namedtuple("Notice", "name text at")


class Reply(dict):
    """What the driver said, by attribute: .err (a name, "" for none), .text, .unknown, .ops, ..."""

    __getattr__ = dict.__getitem__

    def must(self):
        """Itself, if it went well."""
        assert not self.err, f"{self.err}: {self.text}"
        return self

    @property
    def kvs(self):
        """The keys of the first operation, of all pages for a list."""
        return [kv for page in self["pages"] for kv in (page["ops"][0]["kvs"] if page["ops"] else ())]


class Call:
    """A request under way."""

    def __init__(self, store, op, args):
        self.store, self.op, self.args = store, op, args
        self.pages, self.reply = [], None
        self.started = time.monotonic()

    @property
    def done(self):
        return self.reply is not None

    def wait(self, timeout=30):
        """The reply; .seconds says how long it took, .pages holds all pages of a list."""
        self.store.wait(lambda: self.done, timeout, f"the reply to {self.op}")
        return self.reply

    def take(self, message, at):
        self.pages.append(message)
        if not message.get("more"):
            self.reply = Reply({"unknown": False, "ops": [], **message}, pages=self.pages,
                               seconds=at - self.started)


class Watch:
    """Everything that one watch was told."""

    def __init__(self, store, id, prefix):
        self.store, self.id, self.prefix = store, id, prefix
        self.events, self.syncs = [], []
        self.state = {}      # key -> value, by the events
        self.revisions = {}  # key -> revision of its last event
        self.wrong = []      # broken promises
        self.last_at = None

    def take(self, message, at):
        self.last_at = at
        if "in_sync" in message:
            self.syncs.append(Sync(message["revision"], message["puts"], message["deletes"], at))
            return
        if "put" in message:
            kv = message["kv"]
            event = Event("put", kv["key"], kv["value"], kv["mod"], at)
        else:
            event = Event("deleted", message["key"], None, message["revision"], at)
        self.events.append(event)
        if event.revision <= self.revisions.get(event.key, 0):
            self.wrong.append(f"{event}: after revision {self.revisions[event.key]}")
        if event.kind == "deleted" and event.key not in self.state:
            self.wrong.append(f"{event}: was not there")
        self.revisions[event.key] = event.revision
        if event.kind == "put":
            self.state[event.key] = event.value
        else:
            self.state.pop(event.key, None)

    def new_era(self):
        """Revisions start anew: etcd was wiped or restored."""
        self.revisions = {}

    def wait(self, fn, timeout=30, what=""):
        return self.store.wait(fn, timeout, what or f"the watch of {self.prefix}")

    def wait_sync(self, n=1, timeout=30):
        """Until the n-th in_sync has come (1: the first); returns it."""
        self.wait(lambda: len(self.syncs) >= n, timeout, f"in_sync no. {n} of {self.prefix}")
        return self.syncs[n - 1]

    def wait_key(self, key, value, timeout=30):
        self.wait(lambda: self.state.get(key) == value, timeout, f"{key} = {value}")

    def wait_gone(self, key, timeout=30):
        self.wait(lambda: key not in self.state, timeout, f"{key} to go")

    def wait_state(self, state, timeout=30):
        """Until it holds exactly these keys and values."""
        self.wait(lambda: self.state == state, timeout, f"{len(state)} keys of {self.prefix}")

    def of(self, key):
        """[(kind, value)] of one key, in order."""
        return [(e.kind, e.value) for e in self.events if e.key == key]

    def check(self):
        """Per key: rising revisions, nothing twice, no deletion of what was not there."""
        with self.store.changed:
            assert not self.wrong, "\n".join(self.wrong[:10])

    def end(self):
        self.store.send(id=self.id, op="unwatch")


class StoreDriver(JsonLines):
    """One store-driver process."""

    def __init__(self, lab, program, flags, node=None, name="store"):
        """flags: as etcd.flags() makes them. node: where it runs; None: on the host, which
        does for unix sockets."""
        # The programs call it --etcd-cacert, the driver --cacert.
        flags = [str(f).replace("--etcd-", "--", 1) for f in flags if f != "--etcd-insecure"]
        self.lab = lab
        self.notices, self.watches = [], {}
        self._calls, self._stats, self._next_id = {}, {}, 1
        name = f"{node.name}.{name}" if node else name
        super().__init__(name, lab.log_path(name), node.popen if node else self._on_host,
                         [program, *flags])

    def _on_host(self, command, **kwargs):
        started = process.popen(process.command(command), env=process.environment(self.lab.id),
                                **kwargs)
        self.lab.popens.append(started)
        return started

    def said_last(self):
        return f"notices: {self.notices[-5:]}"

    # --- what it says ---------------------------------------------------------------------------

    def _take(self, message, at):
        if "notice" in message:
            self.notices.append(Notice(message["notice"], message["text"], at))
            if message["notice"] in ("cluster-changed", "revision-went-back"):
                for w in self.watches.values():
                    w.new_era()
        elif "reply" in message:
            self._calls[message["reply"]].take(message, at)
        elif "stats" in message:
            self._stats[message["stats"]] = message
        else:
            kind = next(k for k in ("put", "deleted", "in_sync") if k in message)
            self.watches[message[kind]].take(message, at)

    def wait_notice(self, name, n=1, timeout=30):
        """Until the n-th notice of this name; returns it."""
        self.wait(lambda: self.count_notices(name) >= n, timeout, f"notice {name} no. {n}")
        return [x for x in self.notices if x.name == name][n - 1]

    def count_notices(self, name):
        return sum(x.name == name for x in self.notices)

    # --- what it is told ------------------------------------------------------------------------

    def _id(self):
        self._next_id += 1
        return self._next_id - 1

    def start(self, op, **args):
        """Start a request; returns the Call."""
        with self.changed:
            id, call = self._id(), Call(self, op, args)
            self._calls[id] = call
        self.send(id=id, op=op, **args)
        return call

    def call(self, op, wait=30, **args):
        """A request and its Reply. timeout: the store's own limit in ms; wait: the test's, in s."""
        return self.start(op, **args).wait(wait)

    def txn(self, compare=(), success=(), failure=(), **args):
        return self.call("txn", compare=list(compare), success=list(success),
                         failure=list(failure), **args)

    def watch(self, prefix, **args):
        """Follow all keys that begin with prefix."""
        with self.changed:
            id = self._id()
            watch = self.watches[id] = Watch(self, id, prefix)
        self.send(id=id, op="watch", key=prefix, **args)
        return watch

    def stats(self):
        with self.changed:
            id = self._id()
        self.send(id=id, op="stats")
        self.wait(lambda: id in self._stats, 10, "stats")
        return self._stats.pop(id)

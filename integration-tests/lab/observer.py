# SPDX-License-Identifier: Apache-2.0
"""An independent witness of etcd's history, whatever happens to its members.

Follows a prefix through one member after the other, by plain gateway streams, and keeps
every event. Nothing may be compacted that it has not seen: ask `seen` first.
"""

import threading

from .etcd import Event
from .gateway import EtcdError, Gateway, b64, prefix_end, unb64
from .wait import wait_until


class Observer:
    def __init__(self, etcd, prefix):
        self.etcd, self.prefix = etcd, prefix
        self.events = []  # in the order of their revisions
        self._next = etcd.revision() + 1
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def seen(self):
        """The newest revision that is certainly in its hands."""
        return self._next - 1

    def _run(self):
        while not self._stop.is_set():
            for member in self.etcd.members:
                if self._stop.is_set():
                    return
                try:
                    self._follow(Gateway(member.node, member.address))
                except (OSError, EtcdError, ValueError):
                    self._stop.wait(0.02)

    def _follow(self, gateway):
        body = {"create_request": {"key": b64(self.prefix), "range_end": b64(prefix_end(self.prefix)),
                                   "start_revision": str(self._next)}}
        # The workload never pauses for long, so a second of silence means a stopped member.
        for message in gateway.stream("/v3/watch", body, timeout=1.0):
            assert "compact_revision" not in message, "the witness was compacted away"
            for e in message.get("events", ()):
                kv = e["kv"]
                revision = int(kv["mod_revision"])
                if revision >= self._next:
                    self.events.append(Event(revision, e.get("type", "PUT"), unb64(kv["key"]),
                                             unb64(kv.get("value"))))
            if message.get("events"):
                self._next = int(message["events"][-1]["kv"]["mod_revision"]) + 1
            if self._stop.is_set():
                return

    def finish(self, revision):
        """Wait until it has seen that revision (of a key below its prefix), then end."""
        wait_until(lambda: self.seen >= revision, 30, f"the observer to see revision {revision}")
        self._stop.set()
        self._thread.join(10)

# SPDX-License-Identifier: Apache-2.0
"""The control-socket client under test, driven from Python (tools/bird_driver.c)."""

import itertools
import json
import subprocess
import threading


class BirdDriver:
    """One bird-driver process on a node. All it says is kept in order, in messages."""

    def __init__(self, node, program, socket="/run/bird/bird.ctl", name="bird-driver"):
        self.log_path = node.lab.log_path(f"{node.name}.{name}")
        with open(self.log_path, "ab") as log:
            self._popen = node.popen([program, socket], stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, stderr=log)
        self.pid = self._popen.pid
        self.messages, self.changed = [], threading.Condition()
        self._ids, self._ended = itertools.count(1), False
        self._reader = threading.Thread(target=self._read, name=name, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self._popen.stdout:
            with self.changed:
                self.messages.append(json.loads(line))
                self.changed.notify_all()
        with self.changed:
            self._ended = True
            self.changed.notify_all()

    def wait(self, fn, timeout=60, what=""):
        """Until fn(messages) is true; returns that."""
        with self.changed:
            self.changed.wait_for(lambda: self._ended or fn(self.messages), timeout)
            result = fn(self.messages)
            assert result, (f"waited for {what or fn}; "
                            f"{'it ended: ' + self.log_path.read_text() if self._ended else ''}"
                            f" last: {self.messages[-5:]}")
            return result

    def events(self, kind):
        """The texts of all events of a kind: "connected", "disconnected"."""
        return [m["text"] for m in self.messages if m.get("event") == kind]

    def wait_event(self, kind, text="", since=0, timeout=60):
        """The first event of a kind with this in its text, at or after messages[since]."""
        def found(messages):
            return next((m["text"] for m in messages[since:]
                         if m.get("event") == kind and text in m["text"]), None)
        return self.wait(found, timeout, f"{kind} {text!r}")

    def start(self, op):
        """Give a command; its id."""
        id = next(self._ids)
        self._popen.stdin.write(f"{id} {op}\n".encode())
        self._popen.stdin.flush()
        return id

    def answer(self, id, timeout=60):
        return self.wait(lambda ms: next((m for m in ms if m.get("id") == id), None), timeout,
                         f"the answer to no. {id}")

    def ask(self, op, timeout=60):
        return self.answer(self.start(op), timeout)

    def show(self, command):
        """The records of a view: a list, or the whole answer for `show status`."""
        answer = self.ask(f"show {command}")
        assert answer["err"] == "", answer
        return answer if command == "show status" else answer["list"]

    def close(self):
        """Quit and insist on exit 0: the sanitizers speak at the end."""
        self.start("quit")
        code = self._popen.wait(60)
        self._reader.join(10)
        self._popen.stdin.close()
        self._popen.stdout.close()
        assert code == 0, f"exit {code}\n{self.log_path.read_text()}"

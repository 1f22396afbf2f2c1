# SPDX-License-Identifier: Apache-2.0
"""A driver of JSON lines (tools/json_lines.h): commands on its stdin, what it says on its stdout.

One thread reads; all waiting is for what the driver says, none by time. The end of the test insists
on exit 0, so that the sanitizers' checks at exit count.
"""

import json
import subprocess
import threading
import time


class JsonLines:
    """One process. A subclass has _take(message, at), which is called under self.changed."""

    def __init__(self, name, log_path, popen, command):
        """popen(command, **kwargs) starts it where it belongs."""
        self.name, self.log_path = name, log_path
        self.changed = threading.Condition()
        self._ended = False
        self._broken = None  # what the reader could not make sense of
        with open(log_path, "ab") as log:
            self._popen = popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
        self.pid = self._popen.pid
        self._reader = threading.Thread(target=self._read, name=f"{name} reader", daemon=True)
        self._reader.start()

    def _read(self):
        try:
            for line in self._popen.stdout:
                message = json.loads(line.decode(errors="surrogateescape"))
                with self.changed:
                    self._take(message, time.monotonic())
                    self.changed.notify_all()
        except Exception as e:  # reported by wait() and close()
            self._broken = e
        with self.changed:
            self._ended = True
            self.changed.notify_all()

    def said_last(self):
        """For the message of a wait that fails."""
        return ""

    def wait(self, fn, timeout=30, what=""):
        """Until fn() is true; it is asked whenever the driver has said something."""
        with self.changed:
            self.changed.wait_for(lambda: self._ended or fn(), timeout)
            result = fn()
            assert result or not self._ended, \
                f"the driver ended while waiting for {what}: {self._broken or self.log}"
            assert result, f"waited {timeout} s for {what}; {self.said_last()}"
            return result

    @property
    def log(self):
        return self.log_path.read_text(errors="replace")

    def send(self, **command):
        self._popen.stdin.write(json.dumps(command).encode() + b"\n")
        self._popen.stdin.flush()

    @property
    def alive(self):
        return self._popen.poll() is None

    def kill(self):
        self._popen.kill()
        self._popen.wait()
        self._close_pipes()

    def wait_end(self, timeout=20):
        """For one that is to refuse its options: its exit code."""
        code = self._popen.wait(timeout)
        self._close_pipes()
        return code

    def close(self, timeout=20):
        """Quit and insist on exit 0: the sanitizers speak at the end."""
        if self._popen.stdin.closed:
            return
        try:
            self.send(op="quit")
            code = self._popen.wait(timeout)
        except BrokenPipeError:
            code = self._popen.wait(timeout)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            self._popen.wait()
            raise AssertionError(f"{self.name} did not quit within {timeout} s") from None
        finally:
            self._close_pipes()
        assert code == 0, f"{self.name}: exit {code}\n{self.log}"
        assert self._broken is None, f"{self.name} said something odd: {self._broken!r}"

    def _close_pipes(self):
        self._reader.join(10)
        for pipe in self._popen.stdin, self._popen.stdout:
            try:
                pipe.close()
            except BrokenPipeError:
                pass

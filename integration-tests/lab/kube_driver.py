# SPDX-License-Identifier: Apache-2.0
"""The Kubernetes client under test, at the test's command: Python around build/kube-driver.

    kube = KubeDriver(node, program, "--kubeconfig", path)
    kube.wait_sync(); kube.wait_node("n1", zone="a"); kube.wait_gone("n1")
    kube.nodes, kube.gone, kube.said          # name -> what was told last; [(name, uid)]; all lines
    kube.wait_trouble("403"); kube.wait_well(); kube.expect("n1", uid); kube.stats()["lists"]

All waiting is for what the driver says. The end of the test insists on exit 0, so that the
sanitizers' checks at exit count.
"""

import json
import subprocess
import threading

from .wait import wait_until


class KubeDriver:
    def __init__(self, node, program, *flags, env=None):
        self.log_path = node.lab.log_path(f"{node.name}.kube")
        command = ["env", *[f"{k}={v}" for k, v in (env or {}).items()], program, *flags]
        with open(self.log_path, "ab") as log:
            self._popen = node.popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     stderr=log)
        self.changed = threading.Condition()
        self.said, self.nodes, self.gone, self.troubles = [], {}, [], []
        self.syncs, self._stats, self._ended, self._broken = 0, [], False, None
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        try:
            for line in self._popen.stdout:
                message = json.loads(line)
                with self.changed:
                    self._take(message)
                    self.changed.notify_all()
        except Exception as e:  # whoever waits shall see it
            self._broken = e
        with self.changed:
            self._ended = True
            self.changed.notify_all()

    def _take(self, message):
        if "stats" in message:
            self._stats.append(message)
            return
        self.said.append(message)
        if "node" in message:
            self.nodes[message["node"]] = message
        elif "gone" in message:
            self.gone.append((message["gone"], message["uid"]))
            if self.nodes.get(message["gone"], {}).get("uid") == message["uid"]:
                del self.nodes[message["gone"]]
        elif "trouble" in message:
            self.troubles.append(message["trouble"])
        else:
            self.syncs += 1

    def wait(self, fn, timeout=30, what=""):
        with self.changed:
            self.changed.wait_for(lambda: self._ended or fn(), timeout)
            result = fn()
            assert result or not self._ended, \
                f"the driver ended while waiting for {what}: {self._broken or self.log}"
            assert result, f"waited {timeout} s for {what}; said last: {self.said[-5:]}"
            return result

    def wait_sync(self, n=1):
        self.wait(lambda: self.syncs >= n, what=f"in_sync no. {n}")

    def wait_node(self, name, uid=None, **labels):
        """Until the Node is told with these labels (None: without)."""
        def told():
            node = self.nodes.get(name)
            return node and uid in (None, node["uid"]) and all(
                node["labels"].get(k) == v for k, v in labels.items()) and node
        return self.wait(told, what=f"node {name} {labels}")

    def wait_gone(self, name, uid):
        self.wait(lambda: (name, uid) in self.gone, what=f"{name} to be gone")

    def wait_trouble(self, text):
        """Until there has been such trouble; returns it."""
        return self.wait(lambda: next((t for t in self.troubles if text in t), None),
                         what=f"trouble with {text}")

    def wait_well(self):
        self.wait(lambda: not self.troubles or self.troubles[-1] == "", what="no trouble")

    def send(self, **command):
        self._popen.stdin.write(json.dumps(command).encode() + b"\n")
        self._popen.stdin.flush()

    def expect(self, name, uid):
        self.send(op="expect", name=name, uid=uid)

    def stats(self):
        with self.changed:
            n = len(self._stats)
        self.send(op="stats")
        self.wait(lambda: len(self._stats) > n, what="stats")
        return self._stats[-1]

    def wait_stats(self, fn, timeout=30):
        """Until fn(stats) is true: what nobody is told of must be asked for."""
        return wait_until(lambda: fn(self.stats()), timeout)

    @property
    def log(self):
        return self.log_path.read_text(errors="replace")

    def wait_end(self, timeout=20):
        """For one that is to refuse its options: its exit code."""
        code = self._popen.wait(timeout)
        self._close_pipes()
        return code

    def close(self, timeout=20):
        """Quit and insist on exit 0."""
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
            raise AssertionError(f"kube-driver did not quit within {timeout} s") from None
        finally:
            self._close_pipes()
        assert code == 0, f"kube-driver: exit {code}\n{self.log}"
        assert self._broken is None, f"kube-driver said something odd: {self._broken!r}"

    def _close_pipes(self):
        self._reader.join(10)
        for pipe in self._popen.stdin, self._popen.stdout:
            try:
                pipe.close()
            except BrokenPipeError:
                pass

# SPDX-License-Identifier: Apache-2.0
"""The Kubernetes client under test, at the test's command: Python around build/kube-driver.

    kube = KubeDriver(node, program, "--kubeconfig", path)
    kube.wait_sync(); kube.wait_node("n1", zone="a"); kube.wait_gone("n1")
    kube.nodes, kube.gone, kube.said          # name -> what was told last; [(name, uid)]; all lines
    kube.wait_trouble("403"); kube.wait_well(); kube.expect("n1", uid); kube.stats()["lists"]

"""

from .lines import JsonLines
from .wait import wait_until


class KubeDriver(JsonLines):
    def __init__(self, node, program, *flags, env=None):
        self.said, self.nodes, self.gone, self.troubles = [], {}, [], []
        self.syncs, self._stats = 0, []
        command = ["env", *[f"{k}={v}" for k, v in (env or {}).items()], program, *flags]
        super().__init__("kube-driver", node.lab.log_path(f"{node.name}.kube"), node.popen, command)

    def said_last(self):
        return f"said last: {self.said[-5:]}"

    def _take(self, message, at):
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

# SPDX-License-Identifier: Apache-2.0
"""The lab of one test: it makes everything and takes everything down."""

import shutil

from . import cgroups, process
from .bird import Bird
from .etcd import EtcdCluster
from .links import Cable, Switch
from .node import Node
from .systemd import Machine
from .tls import Authority

class Lab:
    """Owns a folder, processes and namespaces. Labs share nothing, not even addresses."""

    def __init__(self, id, folder):
        self.id, self.dir = id, folder
        self.processes, self.popens, self.namespaces = [], [], []
        self._authority = None

    # --- makers ---------------------------------------------------------------------------------

    def node(self, name=None, **kwargs):
        """A machine (node.py), by default called n1, n2, ..."""
        return self._add(Node(self, name or f"n{self._count(Node) + 1}", **kwargs))

    def machine(self, name):
        """A node with a systemd of its own (systemd.py)."""
        return self._add(Machine(self, name))

    def nodes(self, n):
        return [self.node() for _ in range(n)]

    def link(self, a, b, addrs_a=(), addrs_b=()):
        """A cable between two nodes; addresses like "10.0.0.1/24"."""
        return Cable(a, b, addrs_a, addrs_b)

    def switch(self, nodes=(), subnet="192.168.50.0/24", subnet6=None):
        """A switch with these nodes on it; the n-th gets the n-th address."""
        switch = self._add(Switch(self, f"switch{self._count(Switch) + 1}", subnet, subnet6))
        for node in nodes:
            switch.add(node)
        return switch

    def etcd(self, members=1, **kwargs):
        """A running etcd (etcd.py says what else can be asked for)."""
        return EtcdCluster(self, members, **kwargs).start()

    def bird(self, node, config, program="bird"):
        """A running BIRD on a node."""
        return Bird(node, config, program=program).start()

    @property
    def authority(self):
        """This lab's certificate authority, made when first needed."""
        self._authority = self._authority or Authority(self)
        return self._authority

    # --- book-keeping ---------------------------------------------------------------------------

    def _count(self, kind):
        return sum(isinstance(n, kind) for n in self.namespaces)

    def _add(self, namespace):
        self.namespaces.append(namespace)
        return namespace

    def add_process(self, p):
        self.processes.append(p)
        return p

    def log_path(self, name):
        """One file per name: a restarted process writes on where the former one ended."""
        return self.dir / f"{name.replace('/', '_')}.log"

    def run(self, cmd, input=None, check=True, timeout=30):
        """Run a tool on the host, for work on files only."""
        return process.run(process.command(cmd), process.environment(self.id),
                           input, check, timeout)

    def tails(self, lines=60):
        """(name, last lines of the log) of every process: what a failed test shows."""
        for path in sorted(self.dir.glob("*.log")):
            said = path.read_text(errors="replace").splitlines()[-lines:]
            ended = [str(p.returncode) for p in self.processes
                     if p.log_path == path and not p.alive]
            yield (path.stem + (f" (ended: {', '.join(ended)})" if ended else ""),
                   "\n".join(said) or "(wrote nothing)")

    def copy_logs(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        for path in self.dir.glob("*.log"):
            shutil.copy(path, folder)

    def remove_files(self):
        """Last of all: a failed test's report still wants the logs."""
        shutil.rmtree(self.dir, ignore_errors=True)

    # --- the end --------------------------------------------------------------------------------

    def close(self):
        """Take all down; then raise if a program misbehaved at its end."""
        wrong = []
        try:
            self._stop_clean(wrong)
        finally:
            for p in self.processes:
                p.kill_soon()
            for p in self.popens:
                p.kill()
            for p in self.processes:
                p.wait()
            for p in self.popens:
                p.wait()
            for n in self.namespaces:
                n.destroy()
            # Grandchildren, and what a KeyboardInterrupt kept us from noting down.
            process.kill_marked(self.id)
            cgroups.remove(self.id)
        for path in sorted(self.dir.glob("*.log")):
            text = path.read_text(errors="replace")
            wrong += [f"{path.stem}: {line}" for line in process.sanitizer_errors(text)]
        assert not wrong, "\n".join(wrong)

    def _stop_clean(self, wrong):
        for p in self.processes:
            if p.expect_clean and p.alive:
                try:
                    code = p.stop()
                    if code != 0:
                        wrong.append(f"{p.name}: exit {code} after SIGTERM")
                except AssertionError as e:
                    wrong.append(str(e))

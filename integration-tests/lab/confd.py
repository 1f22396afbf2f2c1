# SPDX-License-Identifier: Apache-2.0
"""roost-confd on a node: resources, templates, its process, the files that come out."""

import json
import signal

from .agent import samples

PORT = 9642
PREFIX = "/roost/v1/"
RESOURCES, TEMPLATES, OUT = "/etc/roost/confd.d", "/etc/roost/templates", "/run/out"


class Confd:
    """start() runs it as a daemon; once(), dry_run() and data() run it to its end."""

    def __init__(self, node, build, etcd):
        self.node, self.program, self.etcd, self.process = node, build / "roost-confd", etcd, None
        if etcd:
            etcd.join(node)
        node.path(OUT).mkdir()
        node.path(RESOURCES).mkdir(parents=True, exist_ok=True)

    def resource(self, name="web", text=None, **fields):
        """A resource, and its template if a text is given. The destination is out("<name>")."""
        if text is not None:
            self.template(name, text)
        fields = {"template": name, "dest": f"{OUT}/{name}", "prefixes": [""], **fields}
        self.node.write(f"{RESOURCES}/{name}.json", json.dumps(fields))

    def template(self, name, text):
        self.node.write(f"{TEMPLATES}/{name}.mustache", text)

    def put(self, key, value):
        value = value if isinstance(value, str) else json.dumps(value)
        return self.etcd.put(PREFIX + key, value)

    # --- running it -----------------------------------------------------------------------------

    def _flags(self):
        return self.etcd.flags() if self.etcd else []

    def start(self, *flags):
        self.process = self.node.spawn("roost-confd", [self.program, *self._flags(), *flags],
                                       expect_clean=True)
        return self

    def run(self, *flags, **kwargs):
        return self.node.run([self.program, *self._flags(), *flags], check=False, **kwargs)

    def reload(self):
        self.process.signal(signal.SIGHUP)

    def get(self, path):
        """(status, text) by --metrics PORT."""
        done = self.node.run(["curl", "-s", "-w", "\n%{http_code}",
                              f"http://127.0.0.1:{PORT}{path}"], check=False)
        body, status = done.stdout.rsplit("\n", 1)
        return int(status), body

    def metrics(self):
        return samples(self.get("/metrics")[1])

    # --- what comes out -------------------------------------------------------------------------

    def path(self, name="web"):
        return self.node.path(f"{OUT}/{name}")

    def out(self, name="web"):
        """The text of a file, or None."""
        try:
            return self.path(name).read_text()
        except FileNotFoundError:
            return None

    def files(self):
        """All names in the folder, hidden ones too."""
        return sorted(p.name for p in self.node.path(OUT).iterdir())

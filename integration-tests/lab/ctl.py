# SPDX-License-Identifier: Apache-2.0
"""roostctl on a node, as an operator types it.

    ctl = Ctl(n1, build, etcd)
    ctl("pool create web cidr=10.1.0.0/16")      # its output; an exit code other than 0 raises
    ctl.json("pool list")                        # with -o json, parsed
    ctl.refuses("pool show x", 4)                # must end with this exit code; its one sentence
    ctl.process("pool list --watch")             # goes on in the background
"""

import json
import os
import pathlib
import shlex


class Ctl:
    def __init__(self, node, build, etcd=None):
        # The sanitizer build where there is one: these calls are short.
        build = pathlib.Path(os.environ.get("ROOST_BUILD_SANITIZE", build)).resolve()
        self.node, self.program, self.etcd = node, build / "roostctl", etcd
        if etcd and node not in etcd.switch.ports:
            etcd.join(node)

    def command(self, line):
        words = shlex.split(line) if isinstance(line, str) else list(line)
        return [self.program, *words, *(self.etcd.flags("operator") if self.etcd else [])]

    def run(self, line, env=None, **kwargs):
        # What an editor leaves behind goes with the node.
        return self.node.run(self.command(line), check=False, env={"TMPDIR": "/run", **(env or {})},
                             **kwargs)

    def __call__(self, line, **kwargs):
        done = self.run(line, **kwargs)
        assert done.returncode == 0, f"{line}: {done.returncode}, {done.stderr}"
        assert done.stderr == "", f"{line}: {done.stderr}"
        return done.stdout

    def json(self, line, **kwargs):
        line = shlex.split(line) if isinstance(line, str) else list(line)
        return json.loads(self([*line, "-o", "json"], **kwargs))

    def refuses(self, line, code=1, **kwargs):
        """The sentence, without the program's name."""
        done = self.run(line, **kwargs)
        assert done.returncode == code, f"{line}: {done.returncode} {done.stdout} {done.stderr}"
        *said, last = done.stderr.splitlines() or [""]
        assert last.startswith("roostctl: "), done.stderr
        return last[len("roostctl: "):]

    def process(self, line, **kwargs):
        return self.node.spawn("roostctl", self.command(line), **kwargs)

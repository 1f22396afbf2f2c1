# SPDX-License-Identifier: Apache-2.0
"""Control groups that container runtimes make for a lab: the one thing they leave on the host.

Runtimes are told to put theirs below /<lab id>, so that whoever cleans up, be it the
janitor after a killed pytest, knows them by name.
"""

import os
import pathlib
import time

ROOT = pathlib.Path("/sys/fs/cgroup")


def parent(lab_id):
    """What a runtime gets as its cgroup parent."""
    return f"/{lab_id}"


class Weighted:
    """A group of one lab with a share of the CPU, as kubelet and systemd give it.

    At the top, beside the kernel's own threads: below one with a large share, work that those do
    for us (a namespace's end, a lock's release) would wait for the busy ones.

        Weighted(lab.id, "pod", shares=1024).add(pid)
    """

    def __init__(self, lab_id, name, shares):
        """shares: cpu.shares of cgroup v1; in v2 the weight that kubelet makes of it."""
        v1 = ROOT / "cpu"
        self.folder = (v1 if v1.exists() else ROOT) / f"{lab_id}.{name}"
        if not v1.exists():
            (ROOT / "cgroup.subtree_control").write_text("+cpu")
        self.folder.mkdir()
        value = shares if v1.exists() else 1 + (shares - 2) * 9999 // 262142
        (self.folder / ("cpu.shares" if v1.exists() else "cpu.weight")).write_text(str(value))

    def add(self, pid):
        """This process with its threads, and its children of now and later."""
        for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            self.add(int(child))
        (self.folder / "cgroup.procs").write_text(str(pid))


def found(prefix):
    """Folders of labs whose id is, or begins with, prefix and a dot, in every hierarchy."""
    return [p for top in (ROOT, *ROOT.iterdir()) if top.is_dir()
            for pattern in (prefix, f"{prefix}.*") for p in top.glob(pattern)]


def remove(prefix, timeout=10):
    """Remove them, children first. Their processes are dead; the kernel may still be at it."""
    deadline = time.monotonic() + timeout
    for top in found(prefix):
        for folder, _, _ in os.walk(top, topdown=False):
            _remove_one(folder, deadline)


def _remove_one(folder, deadline):
    while True:
        try:
            os.rmdir(folder)
            return
        except FileNotFoundError:
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)

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

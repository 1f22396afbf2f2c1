# SPDX-License-Identifier: Apache-2.0
"""One pytest process (or xdist worker): its folder, its janitor, its promise to the host."""

import fcntl
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from . import cgroups, host, process
from .lab import Lab

_PREFIX = "roost-lab-"


class Session:
    """Makes labs; close() proves that nothing is left of them."""

    def __init__(self):
        sweep()
        self.host_before = host.state()
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
        self.id = self.dir.name
        self._lock = _lock(self.dir)
        self._janitor = subprocess.Popen(
            [sys.executable, "-I", "-S", "-B", pathlib.Path(__file__).with_name("janitor.py"),
             self.id, self.dir], stdin=subprocess.PIPE, start_new_session=True, cwd="/",
            # It may outlive whoever reads our output, and must not keep them waiting.
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._labs = 0

    def lab(self):
        self._labs += 1
        folder = self.dir / str(self._labs)
        folder.mkdir()
        return Lab(f"{self.id}.{self._labs}", folder)

    def close(self):
        """Remove what is left; raises if a process outlived its lab or the host changed."""
        left = [(pid, _command_line(pid)) for pid in process.marked(self.id)]
        process.kill_marked(self.id)
        groups = cgroups.found(self.id)
        cgroups.remove(self.id)
        shutil.rmtree(self.dir, ignore_errors=True)
        os.close(self._lock)
        self._janitor.stdin.close()
        self._janitor.wait(10)
        changed = host.differences(self.host_before, host.state())
        assert not left, f"processes outlived their test: {left}"
        assert not groups, f"control groups outlived their test: {groups}"
        assert not changed, "this run changed the host:\n" + "\n".join(changed)


def _lock(folder):
    """Hold a lock on a session's folder as long as we live: that is what sweep looks at.

    A pid in the name would not do: pids are given out again, and another container may
    share /tmp. The lock is taken under another name, so nobody sees it unlocked.
    """
    fd = os.open(folder / "lock.new", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(fd, fcntl.LOCK_EX)
    os.rename(folder / "lock.new", folder / "lock")
    return fd


def sweep():
    """Remove folders of sessions that died together with their janitor (a power cut, say)."""
    for folder in pathlib.Path(tempfile.gettempdir()).glob(_PREFIX + "*"):
        try:
            fd = os.open(folder / "lock", os.O_RDWR | os.O_CLOEXEC)
        except OSError:  # just being made, or just being removed
            continue
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
        else:
            process.kill_marked(folder.name)
            cgroups.remove(folder.name)
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(fd)


def _command_line(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return "(gone)"

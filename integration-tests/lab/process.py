# SPDX-License-Identifier: Apache-2.0
"""Processes of the lab: how they are started, watched and ended.

Every child carries ROOST_LAB=<lab id> in its environment. That is how we find
also the grandchildren that nobody told us about, and only those: never by name.
Every child asks the kernel to be killed when its parent dies, so that a
SIGKILLed pytest takes the lab with it.
"""

import concurrent.futures
import ctypes
import os
import re
import select
import shlex
import signal
import subprocess
import time

from .wait import wait_until

MARK = "ROOST_LAB"
PR_SET_PDEATHSIG = 1

# A proxy or etcd's own variables in the developer's shell must not leak into a test.
# The search path is Debian's for root, not the developer's with shims and toolchains.
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_NOT_INHERITED = re.compile(r"(?i)^(.*_proxy|ETCD_.*|ETCDCTL_.*|ROOST_.*|CNI_.*|NOTIFY_SOCKET)$")

# The kernel's parent-death signal is tied to the *thread* that forked, so a process
# started from a short-lived thread of a test would die with that thread. One thread
# that lives as long as the interpreter starts them all.
_starter = concurrent.futures.ThreadPoolExecutor(max_workers=1, thread_name_prefix="starter")

_SANITIZER = re.compile(r"^.*(?:ERROR: \w+Sanitizer|runtime error: ).*$", re.M)


class CommandError(AssertionError):
    """A command failed; the message holds all that it said."""


def command(cmd):
    """A list of strings from a list (of strings, paths, numbers) or a shell-like string."""
    return shlex.split(cmd) if isinstance(cmd, str) else [str(c) for c in cmd]


def environment(mark, extra=None):
    """What a child of the lab sees: ours, cleaned, marked, in plain C locale."""
    env = {k: v for k, v in os.environ.items() if not _NOT_INHERITED.match(k)}
    env.update({"LC_ALL": "C.UTF-8", "PATH": _PATH, MARK: mark})
    env.update({k: str(v) for k, v in (extra or {}).items()})
    return env


def sanitizer_errors(text):
    """The lines in which ASan, LSan or UBSan reports what a program did."""
    return _SANITIZER.findall(text)


def popen(argv, **kwargs):
    """Popen for everything in the lab.

    setpriv sets the parent-death signal and then becomes the command (same pid). An
    own session keeps Ctrl-C for pytest alone, which then takes the lab down in order.
    """
    argv = ["setpriv", "--pdeathsig", "KILL", "--", *argv]
    return _starter.submit(subprocess.Popen, argv, start_new_session=True, **kwargs).result()


def die_with_parent():
    """For an xdist worker: it would notice a dead controller only after some 15 s."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def run(argv, env, input=None, check=True, timeout=30):
    """Run to the end; returns CompletedProcess with text. Raises CommandError if it fails, and on
    a sanitizer's report also where a failure is expected."""
    stdin = subprocess.PIPE if input is not None else subprocess.DEVNULL
    with popen(argv, env=env, stdin=stdin, stdout=subprocess.PIPE,
               stderr=subprocess.PIPE, text=True, errors="replace") as p:
        try:
            out, err = p.communicate(input, timeout)
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, signal.SIGKILL)
            out, err = p.communicate()
            raise CommandError(f"{shlex.join(argv)}: still running after {timeout} s\n"
                               f"{out}{err}") from None
        except BaseException:
            os.killpg(p.pid, signal.SIGKILL)
            raise
    if check and p.returncode != 0 or sanitizer_errors(err):
        raise CommandError(f"{shlex.join(argv)}: exit {p.returncode}\n{out}{err}")
    return subprocess.CompletedProcess(argv, p.returncode, out, err)


class Process:
    """A background process with its output in a log file."""

    def __init__(self, name, argv, env, log, expect_clean=False):
        """expect_clean: at the end of the test stop it by SIGTERM and insist on exit 0,
        so that leak checkers and shut-down code of the program run too."""
        self.name, self.argv, self.log_path, self.expect_clean = name, argv, log, expect_clean
        with open(log, "ab") as out:
            self._popen = popen(argv, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        self.pid = self._popen.pid

    def __repr__(self):
        return f"<{self.name} pid {self.pid} {'runs' if self.alive else self.returncode}>"

    @property
    def alive(self):
        return self._popen.poll() is None

    @property
    def returncode(self):
        """None while it runs; negative: the signal that ended it."""
        return self._popen.poll()

    @property
    def log(self):
        """All it has written, standard output and error together."""
        return self.log_path.read_text(errors="replace")

    def wait_log(self, pattern, timeout=10):
        """Wait until a line matches the regular expression; returns the match."""
        def found():
            match = re.search(pattern, self.log, re.M)
            assert match or self.alive, f"{self.name} ended ({self.returncode})\n{self.log}"
            return match
        return wait_until(found, timeout, f"{pattern!r} in the log of {self.name}")

    def signal(self, sig):
        """To it alone, not to its children."""
        if self.alive:
            os.kill(self.pid, sig)

    def wait(self, timeout=10):
        """Wait for its end; returns the exit code."""
        try:
            return self._popen.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} still runs after {timeout} s") from None

    def stop(self, timeout=10):
        """SIGTERM and wait; returns the exit code. Not ending in time is an error."""
        self.signal(signal.SIGTERM)
        self.signal(signal.SIGCONT)
        return self.wait(timeout)

    def kill(self):
        """SIGKILL to it and to the children that stayed in its session."""
        self.kill_soon()
        return self.wait()

    def kill_soon(self):
        """Like kill without waiting, so that many can be killed at once."""
        if self.alive:
            os.killpg(self.pid, signal.SIGKILL)

    def pause(self):
        """SIGSTOP; returns when the kernel has really stopped it."""
        self.signal(signal.SIGSTOP)
        wait_until(lambda: self._state() in "TZX", 5, f"{self.name} to stop")

    def resume(self):
        self.signal(signal.SIGCONT)

    def _state(self):
        try:
            with open(f"/proc/{self.pid}/stat") as f:
                return f.read().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return "X"


def is_marked(pid, prefix, only=lambda pid: True):
    """Whether a process's mark is prefix, or begins with it and a dot; and only() agrees."""
    wanted = f"{MARK}={prefix}".encode()
    try:
        with open(f"/proc/{pid}/environ", "rb") as f:
            env = f.read().split(b"\0")
        return any(e == wanted or e.startswith(wanted + b".") for e in env) and only(pid)
    except OSError:  # it ended, or is no business of ours
        return False


def marked(prefix, only=lambda pid: True):
    """pids of all processes with this mark, whoever started them."""
    pids = [int(p) for p in os.listdir("/proc") if p.isdigit()]
    return [p for p in pids if is_marked(p, prefix, only)]


def kill_marked(prefix, only=lambda pid: True, timeout=10):
    """SIGKILL every process with this mark, again and again until none is left."""
    deadline = time.monotonic() + timeout
    while pids := marked(prefix, only):
        for pid in pids:
            try:
                fd = os.pidfd_open(pid)
            except ProcessLookupError:
                continue
            try:
                # The descriptor is bound to one process; only now is the pid sure to be ours.
                if is_marked(pid, prefix, only):
                    signal.pidfd_send_signal(fd, signal.SIGKILL)
                    select.select([fd], [], [], max(0, deadline - time.monotonic()))
            finally:
                os.close(fd)
        if time.monotonic() > deadline:
            raise AssertionError(f"processes do not die: {pids}")

# SPDX-License-Identifier: Apache-2.0
"""A demo that goes on: who keeps it, how it is entered and how it ends.

The folder holds `lock`, locked as long as a demo lives and with the pid of its keeper inside, and
`nodes.json`: for each machine the pid whose namespaces are its own. The lock, not the pid, tells whether
there is a demo: pids are given out again.
"""

import fcntl
import json
import os
import pathlib
import select
import shutil
import signal
import sys

DIR = pathlib.Path(os.environ.get("ROOST_DEMO", "/run/roost-demo"))
HERE = pathlib.Path(__file__).resolve().parent
_lock = None


class Ended(BaseException):
    """A signal asked for the end."""


def end(number, frame):
    raise Ended


def deaf():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def claim():
    """Whether this demo is the only one here; if so it is from now on, and its children are."""
    global _lock
    DIR.mkdir(mode=0o755, parents=True, exist_ok=True)
    _lock = os.open(DIR / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(_lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def sign():
    """This process is the one to be ended."""
    os.ftruncate(_lock, 0)
    os.pwrite(_lock, str(os.getpid()).encode(), 0)


def tell_nodes(stage):
    nodes = {name: node.pid for name, node in stage.nodes().items()}
    (DIR / "nodes.json").write_text(json.dumps({"env": stage.env(), "nodes": nodes}))


def hints(stage):
    enter = os.path.relpath(HERE / "enter")
    pod = "nsenter --net=/run/netns/web1"
    sudo = "sudo " if "SUDO_UID" in os.environ else ""  # as make demo itself came here
    yield f"{sudo}{enter} n1                      # a shell on a node: {', '.join(stage.nodes())}"
    yield f"{sudo}{enter} tor ip route            # or one command"
    yield f"{sudo}{enter} n1 {pod} ping 10.250.0.2"
    yield f"{sudo}nsenter --target={stage.members[0].node.pid} --net --mount --uts   # the same by hand"
    yield "make demo-stop                                        # ends it all"


def leave_terminal(pipe):
    """The story has ended: let our parent go, and write to no terminal any more."""
    sys.stdout.flush()
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.write(pipe, b"k")
    os.close(pipe)
    os.chdir("/")


def rest():
    """Until a signal says that it is enough; that is the good end of a kept demo."""
    try:
        while True:
            signal.pause()
    except Ended:
        pass
    finally:
        forget()


def forget():
    """Others may hold the lock's file open: they find it gone from its place, or unlocked."""
    shutil.rmtree(DIR, ignore_errors=True)


def stop(seconds=60):
    """End the demo that runs; returns whether there was one. Raises if it does not end."""
    try:
        fd = os.open(DIR / "lock", os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        forget()  # its keeper was killed; the lab's janitor has done the rest
        return False
    except BlockingIOError:
        pass
    finally:
        pid = int(os.read(fd, 20) or 0)
        os.close(fd)
    if not pid:
        raise SystemExit("A demo begins just now; try again.")
    keeper = os.pidfd_open(pid)
    signal.pidfd_send_signal(keeper, signal.SIGTERM)
    if not select.select([keeper], [], [], seconds)[0]:
        raise SystemExit(f"The demo's keeper, process {pid}, still runs after {seconds} s.")
    return True


def enter(name, command):
    """Become a command on a machine of the demo that runs."""
    try:
        known = json.loads((DIR / "nodes.json").read_text())
    except FileNotFoundError:
        raise SystemExit("No demo is kept; start one with: sudo KEEP=1 make demo") from None
    if name not in known["nodes"]:
        raise SystemExit(f"There is no {name!r}: enter one of {', '.join(known['nodes'])}.")
    os.environ.update(known["env"], PS1=f"{name}# ", debian_chroot="")
    argv = ["nsenter", f"--target={known['nodes'][name]}", "--net", "--mount", "--uts", "--"]
    os.execvp("nsenter", argv + (command or ["bash", "--norc", "-i"]))

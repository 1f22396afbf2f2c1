# SPDX-License-Identifier: Apache-2.0
"""Network namespaces without names.

A namespace lives as long as its holder, a process that does nothing. No file in
/run/netns, no mount on the host: when the holder dies, whatever the reason, the
kernel takes all of it back. The holder reads a pipe of ours, so it ends by itself
when we are gone.
"""

import ctypes
import os
import socket
import subprocess
import threading

from . import ping, process

CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


def socket_in(path, *args):
    """A socket of the network namespace that this file stands for.

    A socket belongs to the namespace of the thread that made it, for good. A thread
    of its own goes there and ends there, so the test's thread never leaves home.
    """
    made = []

    def make():
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if _libc.setns(fd, CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "setns")
            made.append(socket.socket(*args))
        except OSError as e:
            made.append(e)
        finally:
            os.close(fd)

    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    if isinstance(made[0], OSError):
        raise made[0]
    return made[0]


class Namespace:
    """A network namespace with `lo` up; Node adds what makes a machine."""

    unshare = ["--net"]
    enter = ["--net"]
    script = "ip link set lo up"
    # `cat` ends at end-of-file, that is with us; it is the smallest thing that does.
    last = "exec cat"

    def __init__(self, lab, name):
        self.lab, self.name = lab, name
        self._hold()

    def __repr__(self):
        return f"<{type(self).__name__} {self.name}>"

    def _hold(self):
        """Start the holder and wait until it has set everything up."""
        script = f"set -e\n{self.script}\necho ready\n{self.last}"
        self._holder = process.popen(
            self.holder(["unshare", *self.unshare, "sh", "-c", script, "holder", *self.script_args()]),
            env=process.environment(self.lab.id), text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.pid = self._holder.pid
        said = ""
        while not said.endswith("ready\n"):
            line = self._holder.stdout.readline()
            assert line, f"{self} could not be set up: {said}"
            said += line

    def holder(self, argv):
        """The command that becomes the holder."""
        return argv

    def script_args(self):
        return []

    def destroy(self):
        """Kill the holder: the namespace goes with the last process in it."""
        self._holder.kill()
        self._holder.wait()
        self._holder.stdin.close()
        self._holder.stdout.close()

    # --- commands -------------------------------------------------------------------------------

    def _nsenter(self, cmd):
        return ["nsenter", f"--target={self.pid}", *self.enter, "--", *process.command(cmd)]

    def run(self, cmd, input=None, check=True, timeout=30, env=None):
        """Run a command in here to its end; result has .stdout, .stderr, .returncode."""
        return process.run(self._nsenter(cmd), process.environment(self.lab.id, env),
                           input, check, timeout)

    def popen(self, cmd, env=None, **kwargs):
        """A Popen in here, for those who want the pipes; killed with the lab."""
        p = process.popen(self._nsenter(cmd), env=process.environment(self.lab.id, env), **kwargs)
        self.lab.popens.append(p)
        return p

    def spawn(self, name, cmd, env=None, expect_clean=False):
        """A background Process with a log file, shown when the test fails."""
        return self.lab.add_process(process.Process(
            f"{self.name}.{name}", self._nsenter(cmd), process.environment(self.lab.id, env),
            self.lab.log_path(f"{self.name}.{name}"), expect_clean))

    def ip(self, *batch):
        """Lines for `ip -batch`: many changes for the price of one exec."""
        self.run(["ip", "-batch", "-"], input="\n".join(batch) + "\n")

    # --- sockets --------------------------------------------------------------------------------

    def socket(self, *args):
        """A socket of this namespace, for use by the test itself."""
        return socket_in(f"/proc/{self.pid}/ns/net", *args)

    def ping(self, address, timeout=1.0):
        """Whether an address answers one echo request; about 0.2 ms if it does."""
        return ping.ping(self.socket, address, timeout)

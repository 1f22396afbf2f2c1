# SPDX-License-Identifier: Apache-2.0
"""A machine whose first process is a real systemd, for the units.

    machine = lab.machine("n1")              # a Node: run, write, pod, ... all work
    machine.install(build)                   # programs in /opt/roost, units in /etc/systemd/system
    machine.systemctl("start", "roostd")

It is a node with process ids and control groups of its own. systemd finds no unit but those that the
test puts there and those of Debian's packages; nothing starts by itself, there is no journal and no
D-Bus: systemctl speaks with systemd directly.
"""

import pathlib
import shutil

from . import cgroups
from .node import SCRIPT, Node
from .wait import wait_until

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PREFIX = "/opt/roost"

# $4: the lab's folder, where logs go, because a failed test shows those; $5: this tree.
# - /proc and the control groups are those of this machine, and so is boot_id again.
# - systemd talks to /dev/console, and services with PrivateTmp= leave folders in /tmp: own ones.
#   A tree that lies there stays visible: tests run its programs here.
# - Shared, as systemd does it on a real machine: mounts of pods' namespaces reach the services.
MACHINE = SCRIPT + r"""
mount -t proc roost-lab /proc
mount --bind /run/.lab/boot_id /proc/sys/kernel/random/boot_id
mount -t cgroup2 roost-lab /sys/fs/cgroup
mkdir /run/.lab/logs
mount --bind "$4" /run/.lab/logs
case $5 in /tmp/* | /var/tmp/*)
  mkdir /run/.lab/tree
  mount --bind "$5" /run/.lab/tree
esac
mount -t tmpfs -o mode=1777 roost-lab /tmp
mount -t tmpfs -o mode=1777 roost-lab /var/tmp
[ ! -d /run/.lab/tree ] || { mkdir -p "$5" && mount --move /run/.lab/tree "$5"; }
: > /run/.lab/console
mount --bind /run/.lab/console /dev/console
echo "$1" > /etc/hostname
rm -rf /etc/systemd/system /etc/systemd/system.conf.d
mkdir -p /etc/systemd/system
printf '[Unit]\nDescription=nothing but what is started\n' > /etc/systemd/system/lab.target
mount --make-rshared /
"""


def why_not():
    """The reason why there can be no machine here, or None."""
    if not pathlib.Path("/lib/systemd/systemd").exists():
        return "systemd is not installed"
    if not _cgroup2():
        return "there is no cgroup2 hierarchy here"
    return None


def _cgroup2():
    """Where the host has the one hierarchy: alone, or beside the old ones."""
    for top in (cgroups.ROOT, cgroups.ROOT / "unified"):
        if (top / "cgroup.procs").exists():
            return top
    return None


class Machine(Node):
    enter = ["--net", "--mount", "--uts", "--pid", "--cgroup"]
    unshare = [*Node.unshare, "--cgroup", "--pid", "--fork", "--kill-child"]
    script = MACHINE
    last = ("exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin container=roost-lab "
            "/lib/systemd/systemd --system --unit=lab.target --log-target=console --show-status=no")

    def __init__(self, lab, name, **kwargs):
        # The janitor knows it by this name.
        self.group = _cgroup2() / lab.id / name
        self.group.mkdir(parents=True)
        super().__init__(lab, name, **kwargs)
        wait_until(lambda: self.run("systemctl is-system-running", check=False).stdout.strip()
                   in ("running", "degraded"), 60, f"systemd of {name}")

    def holder(self, argv):
        """A group's namespace begins where the process is that makes it."""
        return ["sh", "-c", f'echo $$ > {self.group}/cgroup.procs && exec "$@"', "holder", *argv]

    def _hold(self):
        super()._hold()
        # unshare waits for the first process of the machine, in whose namespaces we work.
        children = pathlib.Path(f"/proc/{self.pid}/task/{self.pid}/children")
        self.pid = int(children.read_text().split()[0])

    def script_args(self):
        return [*super().script_args(), str(self.lab.dir), str(ROOT)]

    def spawn(self, name, cmd, **kwargs):
        """nsenter forks into another pid namespace: a signal would reach nsenter alone."""
        raise NotImplementedError("start it by a unit")

    # --- units ----------------------------------------------------------------------------------

    def systemctl(self, *args, check=True):
        done = self.run(["systemctl", *args], check=False, timeout=90)
        assert not check or done.returncode == 0, f"{args}: {done.stdout}{done.stderr}"
        return done.stdout.strip()

    def show(self, unit, what):
        return self.systemctl("show", "--value", "-p", what, unit)

    def unit_log(self, unit):
        return self.lab.log_path(f"{self.name}.{unit}").read_text()

    def drop_in(self, unit, name, text):
        self.write(f"/etc/systemd/system/{unit}.service.d/{name}.conf", text)
        self.systemctl("daemon-reload")

    def install(self, build):
        """As make install with PREFIX=/opt/roost has it; /opt is the machine's own."""
        for program in ("roostd", "roost-confd", "roost-controller", "roost", "roost-ipam"):
            folder = "/opt/cni/bin" if program in ("roost", "roost-ipam") else f"{PREFIX}/sbin"
            self.path(folder).mkdir(parents=True, exist_ok=True)
            shutil.copy(build / program, self.path(folder) / program)
        shutil.copy(ROOT / "cni/roost-install", self.path(f"{PREFIX}/sbin/roost-install"))
        shutil.copytree(ROOT / "templates", self.path(f"{PREFIX}/share/roost/templates"),
                        ignore=shutil.ignore_patterns("cases", "*.c", "*.mk"))
        shutil.copy(ROOT / "systemd/10-roost.conflist", self.path(f"{PREFIX}/share/roost"))
        for unit in (ROOT / "systemd").glob("*.service"):
            text = unit.read_text().replace("/usr/local/sbin", f"{PREFIX}/sbin")
            self.write(f"/etc/systemd/system/{unit.name}", text)
            # There is no journal here.
            self.write(f"/etc/systemd/system/{unit.name}.d/log.conf",
                       f"[Service]\nStandardOutput=append:/run/.lab/logs/{self.name}.{unit.stem}.log\n"
                       "StandardError=inherit\n")
        shutil.copytree(ROOT / "systemd/bird.service.d",
                        self.path("/etc/systemd/system/bird.service.d"))
        self.systemctl("daemon-reload")

# SPDX-License-Identifier: Apache-2.0
"""A node: a machine as far as a routing agent can tell.

Own network, host name, /run, /etc, /var/lib and /opt, own machine id and boot id.
The folders are private copies: overlays whose upper part lies on a tmpfs of this mount
namespace. What a program writes there no other node and no host ever sees, and nobody
has to clean it up. /tmp, /dev and the rest are the host's.
"""

import os
import pathlib
import uuid

from . import process
from .namespace import Namespace
from .pod import Pod

# $1 host name, $2 machine id, $3 boot id.
# - /run starts empty: no journal, no D-Bus, no socket of the host to talk to by mistake.
# - A fresh /sys shows this namespace's links; the host's would show, and write to, the host's.
#   Container runtimes want the control groups, so those are carried over.
# - The folders that programs of ours and BIRD use start empty too, whatever is installed.
# - A new namespace inherits IPv4 settings from the host: put back the kernel's own.
SCRIPT = r"""
mount -t tmpfs -o mode=755 roost-lab /run
mkdir -p /run/netns /run/roost /run/bird /run/lock /run/.lab
for d in etc opt var/lib; do
  [ -d /$d ] || continue
  o=/run/.lab/$d
  mkdir -p $o/upper $o/work
  mount -t overlay roost-lab -o lowerdir=/$d,upperdir=$o/upper,workdir=$o/work /$d
done
mkdir /run/.lab/cgroup
mount --rbind /sys/fs/cgroup /run/.lab/cgroup
mount -t sysfs roost-lab /sys
mount --move /run/.lab/cgroup /sys/fs/cgroup
rm -rf /etc/roost /etc/bird /etc/cni /opt/cni /var/lib/cni /var/lib/roost
mkdir -p /etc/roost /etc/bird /etc/cni/net.d /opt/cni/bin /var/lib/cni
rm -f /etc/machine-id /etc/resolv.conf /etc/hosts
echo "$2" > /etc/machine-id
echo "127.0.0.1 localhost $1
::1 localhost" > /etc/hosts
: > /etc/resolv.conf
echo "$3" > /run/.lab/boot_id
mount --bind /run/.lab/boot_id /proc/sys/kernel/random/boot_id
echo "$1" > /proc/sys/kernel/hostname
cd /proc/sys/net/ipv4
echo 0 > ip_forward
echo 0 > conf/all/rp_filter
echo 0 > conf/default/rp_filter
cd /
ip link set lo up
"""

# What a reboot does not take away.
PERSISTENT = ["/etc/roost", "/etc/bird", "/etc/cni", "/opt/cni", "/var/lib/cni"]


class Node(Namespace):
    """See Namespace for run, popen, spawn, socket, ping."""

    unshare = ["--net", "--mount", "--uts", "--propagation", "private"]
    enter = ["--net", "--mount", "--uts"]
    script = SCRIPT

    def __init__(self, lab, name, machine_id=None):
        self.machine_id = machine_id or uuid.uuid4().hex
        self.boot_id = str(uuid.uuid4())
        self.plugs = []
        super().__init__(lab, name)

    def script_args(self):
        return [self.name, self.machine_id, self.boot_id]

    # --- files ----------------------------------------------------------------------------------

    def path(self, path):
        """A file of this node as the test can open it, also a unix socket.

        Not for /proc and /sys: those follow the *reader's* namespace, so writing a
        setting this way would write the host's. Use sysctl() or run().
        """
        path = pathlib.PurePosixPath(path)
        assert path.is_absolute() and path.parts[1] not in ("proc", "sys"), path
        root = pathlib.Path(f"/proc/{self.pid}/root")
        # An absolute link, such as /var/run, would be followed to the host's side.
        for part in (path, *path.parents[:-1]):
            assert not (root / part.relative_to("/")).is_symlink(), f"{part} is a symbolic link"
        return root / path.relative_to("/")

    def write(self, path, text, mode=0o644):
        """Write a file of this node, with its folders."""
        p = self.path(path)
        p.parent.mkdir(parents=True, exist_ok=True)
        p.write_text(text)
        p.chmod(mode)

    def read(self, path):
        return self.path(path).read_text()

    def sysctl(self, name, value=None):
        """Read, or set, a kernel setting of this node's network namespace."""
        assert name.startswith("net."), f"{name} would be the host's"
        if value is not None:
            self.run(["sysctl", "-qw", f"{name}={value}"])
        return self.run(["sysctl", "-n", name]).stdout.strip()

    # --- links ----------------------------------------------------------------------------------

    def next_interface(self):
        """eth0, eth1, ... in the order of plugging in."""
        return f"eth{len(self.plugs)}"

    def configure(self, interface, *addresses):
        """Addresses on an interface, and up. IPv6 is usable at once: no duplicate check."""
        lines = [f"addr add {a} dev {interface}" + (" nodad" if ":" in a else "")
                 for a in addresses]
        lines.append(f"link set {interface} up")
        # The link-local address would be checked too; without IPv6 there is no such file.
        self.run(["sh", "-c", f"f=/proc/sys/net/ipv6/conf/{interface}/accept_dad; "
                  "[ ! -e $f ] || echo 0 > $f; exec ip -batch -"],
                 input="\n".join(lines) + "\n")

    def pod(self, name):
        """A network namespace at /run/netns/NAME, as a container runtime makes it."""
        return Pod(self, name)

    # --- power ----------------------------------------------------------------------------------

    def kill_all(self):
        """SIGKILL everything that runs here, in pods too, but not the holder."""
        mine = os.readlink(f"/proc/{self.pid}/ns/mnt")
        process.kill_marked(self.lab.id, lambda pid: pid != self.pid and
                            os.readlink(f"/proc/{pid}/ns/mnt") == mine)

    def reboot(self):
        """Power off and on: processes, pods, routes, /run are gone, the boot id is new.

        The machine id, the configuration folders and the cables stay.
        """
        keep = self.lab.dir / f"{self.name}.keep.tar"
        self.run(["tar", "-C", "/", "-cf", keep, *[p[1:] for p in PERSISTENT]])
        self.kill_all()
        for p in self.plugs:
            p.unplug()
        self.destroy()
        self.boot_id = str(uuid.uuid4())
        self._hold()
        self.run(["tar", "-C", "/", "-xf", keep])
        for p in self.plugs:
            p.plug()

# SPDX-License-Identifier: Apache-2.0
"""The demo's cast: one etcd, a top-of-rack router, three nodes; and how commands are shown.

All of it is the lab's (lab/), in namespaces. Whatever is printed below a prompt is what that very
command said.
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

from lab.site import Site
from lab.wait import wait_until

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
STDIN = "/run/roost.conf"
ROUTER_AS = 64700

BOLD, DIM, GREEN, END = (("\033[1m", "\033[2m", "\033[32m", "\033[0m")
                         if sys.stdout.isatty() else ("",) * 4)

# eBGP with every node; what one tells, the others learn, with the router as the way.
ROUTER = """router id {self};
protocol device {{ }}
protocol kernel {{ ipv4 {{ import none; export all; }}; }}
template bgp node {{
	local {self} as {asn};
	connect retry time 1;
	ipv4 {{ import all; export all; next hop self; }};
}}
"""
NEIGHBOUR = "protocol bgp {name} from node {{ neighbor {address} as 64512; }}\n"


class Stage:
    def __init__(self, lab, build):
        self.lab, self.build, self.start = lab, build, time.monotonic()
        self.etcd = self.site = self.router = None

    # --- what the reader sees -------------------------------------------------------------------

    def say(self, text):
        print(f"\n{BOLD}[{time.monotonic() - self.start:5.1f} s] {text}{END}", flush=True)

    def prompt(self, where, text, ms=None):
        took = f"   {DIM}({ms:.0f} ms){END}" if ms is not None else ""
        print(f"  {GREEN}{where}# {text}{END}{took}", flush=True)

    def lines(self, text):
        """Blank lines are left out, nothing else."""
        for line in text.splitlines():
            if line.strip():
                print(f"    {line}", flush=True)

    def sh(self, node, command, pod=None, fails=False):
        """Run a shell line on a node, or in a pod of it, and show it with what it said.

        fails: it is part of the story that it does."""
        argv = ["sh", "-c", "exec 2>&1; " + command]
        where = node.name
        if pod:
            argv, where = pod.pod.command(argv), pod.name
        before = time.monotonic()
        done = node.run(argv, check=False, timeout=60, env=self.env())
        self.prompt(where, command, (time.monotonic() - before) * 1e3)
        self.lines(done.stdout)
        if (done.returncode != 0) != fails:
            raise AssertionError(f"{where}: {command}: exit {done.returncode}, which is not the story")
        return done.stdout

    def env(self):
        """As on a machine where all is installed and configured."""
        return {"PATH": f"{self.build}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                "ROOST_ETCD": self.etcd.endpoints, "ETCDCTL_ENDPOINTS": self.etcd.endpoints,
                "ETCDCTL_API": "3", "TERM": os.environ.get("TERM", "dumb")}

    def wait(self, fn, what, seconds=60):
        return wait_until(fn, seconds, what, errors=OSError)

    # --- machines -------------------------------------------------------------------------------

    def machines(self):
        """Nothing of ours runs yet."""
        self.etcd = self.lab.etcd()
        self.site = Site(self.lab, self.build, self.etcd)
        self.router = self.lab.node("tor")
        self.etcd.join(self.router)
        self.router.sysctl("net.ipv4.ip_forward", 1)
        self.router.sysctl("net.ipv4.conf.all.send_redirects", 0)
        self.router.sysctl("net.ipv4.conf.eth0.send_redirects", 0)
        for i in range(3):
            member = self.site.member(f"n{i + 1}")
            member.node.write("/etc/roost/agent.json", json.dumps({"etcd": self.etcd.endpoints}))
            member.node.write("/etc/iproute2/rt_protos.d/roost.conf",
                              (ROOT / "systemd/rt_protos.conf").read_text())
        # Two nodes reach each other by the router alone, as in a rack that is routed.
        self.etcd.switch.separate(*[m.node for m in self.members])

    @property
    def members(self):
        return self.site.members

    @property
    def control(self):
        """Where an operator sits: the machine of etcd."""
        return self.etcd.members[0].node

    def address(self, node):
        return self.etcd.switch.address(node)

    def nodes(self):
        """{name: node} of all that can be entered."""
        return {n.name: n for n in (self.control, self.router, *[m.node for m in self.members])}

    def start_router(self):
        config = ROUTER.format(self=self.address(self.router), asn=ROUTER_AS)
        for m in self.members:
            config += NEIGHBOUR.format(name=m.node.name, address=m.address())
        self.lab.bird(self.router, config)

    def install(self, member, shown):
        """The plugins and their configuration, by our own installer."""
        command = (f"{ROOT}/cni/roost-install --from {self.build} --bin-dir /opt/cni/bin "
                   "--also /usr/lib/cni/portmap --also /usr/lib/cni/loopback "
                   f"--conflist {ROOT}/systemd/10-roost.conflist")
        if shown:
            self.sh(member.node, command)
        else:
            member.node.run(command)
        # What a runtime takes out of the conflist for the first plugin, and gives it.
        conflist = json.loads(member.node.read("/etc/cni/net.d/10-roost.conflist"))
        conf = {k: v for k, v in conflist["plugins"][0].items() if k != "capabilities"}
        member.node.write(STDIN, json.dumps({"cniVersion": conflist["cniVersion"],
                                             "name": conflist["name"], **conf}))

    def pod(self, member, name, whole=False):
        """A pod as a container runtime makes it. whole: show all of the plugin's result."""
        return DemoPod(self, member, name, whole)

    def follow(self, pod, address):
        """A ping that runs until its finish()."""
        command = f"ping -n -q -i 0.05 {address}"
        self.prompt(pod.name, f"{command} &")
        running = pod.member.node.popen(pod.pod.command(command), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return Following(self, pod, command, running)


class Following:
    def __init__(self, stage, pod, command, process):
        self.stage, self.pod, self.command, self.process = stage, pod, command, process

    def finish(self):
        """ping's own count of what it sent and what came back."""
        self.process.send_signal(signal.SIGINT)
        said, _ = self.process.communicate(timeout=30)
        self.stage.prompt(self.pod.name, f"fg    # {self.command}; Ctrl-C")
        self.stage.lines(said)
        return said


class DemoPod:
    """A namespace on a node, attached by executing the plugin in /opt/cni/bin."""

    def __init__(self, stage, member, name, whole):
        self.stage, self.member, self.name = stage, member, name
        self.pod = member.node.pod(name)
        result = f"/run/{name}.result"
        only = "" if whole else """ | grep -o '"ips":[^]]*]'"""
        self._exec("ADD", f" | tee {result}{only}")
        said = json.loads(member.node.read(result))
        self.address = said["ips"][0]["address"].split("/")[0]

    def _exec(self, verb, then=""):
        self.stage.sh(self.member.node, f"CNI_COMMAND={verb} CNI_CONTAINERID={self.name} CNI_IFNAME=eth0 "
                      f"CNI_NETNS={self.pod.netns} CNI_PATH=/opt/cni/bin "
                      f"/opt/cni/bin/roost < {STDIN}{then}")

    def delete(self):
        self._exec("DEL")
        self.pod.delete()

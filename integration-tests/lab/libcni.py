# SPDX-License-Identifier: Apache-2.0
"""libcni's own driver: the library of the container runtimes, without a runtime around it.

    libcni = Libcni(node, build_driver(build), path="/opt/cni/bin")
    result = libcni.add(conflist, "c1", pod.netns, capabilities={"portMappings": [...]})
    libcni.check(...); libcni.delete(...)
"""

import fcntl
import json
import os
import pathlib
import shutil
import subprocess

from . import process

_SOURCE = pathlib.Path(__file__).resolve().parent.parent / "tools" / "cnidrv.go"
CACHE = "/var/lib/cni"


def missing():
    """Why the driver cannot be built here; empty if it can."""
    if not shutil.which("go"):
        return "Go is not installed (package golang-go)"
    if not os.path.isdir("/usr/share/gocode/src/github.com/containernetworking/cni/libcni"):
        return "libcni is not installed (package golang-github-appc-cni-dev)"
    return ""


def build_driver(build):
    """The program's path; built once, from Debian's packages alone, whoever comes first."""
    program, cache = build / "cnidrv", build / "go"
    cache.mkdir(exist_ok=True)
    with open(cache / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists() or program.stat().st_mtime < _SOURCE.stat().st_mtime:
            env = {"PATH": process.environment("")["PATH"], "HOME": str(cache),
                   "GO111MODULE": "off", "GOFLAGS": "", "GOPATH": "/usr/share/gocode",
                   "GOCACHE": str(cache / "cache"), "CGO_ENABLED": "0"}
            done = subprocess.run(["go", "build", "-o", program, _SOURCE], env=env, text=True,
                                  capture_output=True, timeout=600, check=False)
            assert done.returncode == 0, f"cnidrv does not build: {done.stderr}"
    return program


class LibcniError(AssertionError):
    """libcni returned an error; its text is what a runtime would show."""


class Libcni:
    def __init__(self, node, program, path="/opt/cni/bin"):
        self.node, self.program, self.path = node, program, path

    def __call__(self, verb, conflist, container="c1", netns="", ifname="eth0", capabilities=None,
                 args=""):
        """One verb; conflist: the file's path on the node. The result, None without one."""
        cmd = [self.program, verb, conflist, container, netns, ifname]
        if capabilities is not None:
            cmd.append(json.dumps(capabilities))
        done = self.node.run(cmd, check=False, timeout=90, env={
            "CNI_PATH": self.path, "CNI_ARGS": args, "CACHE": CACHE})
        if done.returncode != 0:
            raise LibcniError(done.stderr.strip())
        return json.loads(done.stdout) if done.stdout else None

    def add(self, *args, **kwargs):
        return self("add", *args, **kwargs)

    def check(self, *args, **kwargs):
        return self("check", *args, **kwargs)

    def delete(self, *args, **kwargs):
        return self("del", *args, **kwargs)

    def cached(self):
        """Names of the results it keeps: <network>-<container>-<interface>."""
        folder = self.node.path(f"{CACHE}/results")
        return sorted(p.name for p in folder.iterdir()) if folder.exists() else []

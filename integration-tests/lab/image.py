# SPDX-License-Identifier: Apache-2.0
"""A container image from Debian's static busybox: no registry, no network, two megabytes."""

import hashlib
import io
import json
import os
import tarfile

from . import process

NAME = "localhost/roost-lab:1"
PORT = 8080
PAGE = "a page of the lab\n"
_APPLETS = ["sh", "ip", "ping", "sleep", "cat", "wget", "httpd"]


def missing():
    """Why there can be no image; empty if there can."""
    return "" if os.path.exists("/bin/busybox") else "busybox is not installed (busybox-static)"


def _file(tar, name, data, mode=0o644):
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(data), mode
    tar.addfile(info, io.BytesIO(data))


def _layer():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for folder in "bin", "etc", "proc", "sys", "dev", "tmp", "www":
            info = tarfile.TarInfo(folder)
            info.type, info.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(info)
        with open("/bin/busybox", "rb") as f:
            _file(tar, "bin/busybox", f.read(), 0o755)
        for name in _APPLETS:
            info = tarfile.TarInfo(f"bin/{name}")
            info.type, info.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(info)
        _file(tar, "www/index.html", PAGE.encode())
    return out.getvalue()


def write(path, mark):
    """Write a docker archive. Its containers serve PAGE at PORT and carry the lab's mark, so that
    the lab finds them however they were started."""
    layer = _layer()
    config = {"architecture": "amd64", "os": "linux",
              "config": {"Cmd": ["/bin/httpd", "-f", "-p", str(PORT), "-h", "/www"],
                         "Env": ["PATH=/bin", f"{process.MARK}={mark}"]},
              "rootfs": {"type": "layers",
                         "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()]}}
    manifest = [{"Config": "config.json", "RepoTags": [NAME], "Layers": ["layer.tar"]}]
    with tarfile.open(path, "w") as tar:
        _file(tar, "manifest.json", json.dumps(manifest).encode())
        _file(tar, "config.json", json.dumps(config).encode())
        _file(tar, "layer.tar", layer)

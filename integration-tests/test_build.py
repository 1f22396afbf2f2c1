# SPDX-License-Identifier: Apache-2.0
"""What the build promises: static plugins, rebuilds of just what depends, installation."""

import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
# They compile the whole tree, beside other tests.
pytestmark = [pytest.mark.limit(600), pytest.mark.slow(70), pytest.mark.xdist_group("processor")]
# Our own make must not talk to the one that runs these tests.
ENV = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "SANITIZE")}


def make(tree, *args, check=True):
    return subprocess.run(["make", "-C", str(tree), *args], env=ENV, check=check,
                          capture_output=True, text=True, timeout=500)


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of the sources and of what is built from them already, to touch and build."""
    copy = tmp_path_factory.mktemp("tree") / "roost"
    shutil.copytree(ROOT, copy, ignore=lambda folder, names: [
        n for n in names if n in (".git", "__pycache__", "dist", "logs", "bird-versions") or
        n.startswith("build-") or n.startswith("results.")])
    return copy


@pytest.mark.plain("it is linked dynamically")
def test_the_plugins_link_rule_makes_small_static_programs(lab, build):
    probe = build / "static-probe"
    assert "statically linked" in subprocess.run(["file", probe], capture_output=True, text=True).stdout
    assert probe.stat().st_size < 1.5 * 1024 * 1024
    assert json.loads(lab.node().run([probe]).stdout) == {"links": 1}


def test_a_touched_file_rebuilds_what_depends_on_it_and_nothing_else(tree):
    make(tree, "-j2", "all", "tools")
    assert "CC" not in make(tree, "all", "tools").stdout
    (tree / "lib/base/base64.h").touch()
    built = {line.split()[1] for line in make(tree, "all", "tools").stdout.splitlines()
             if line.strip().startswith("CC")}
    assert "build/lib/base/base64.o" in built and "build/lib/etcd/etcd_decode.o" in built
    assert "build/lib/base/prefix.o" not in built


def test_the_tree_builds_without_a_warning_with_clang(tree):
    # Warnings are the same without what takes the compiler so long.
    done = make(tree, "-j2", "CC=clang", "BUILD=build-clang", "CFLAGS=-O1", "all", "tools")
    assert "warning" not in done.stdout + done.stderr


FOLDERS = {"PREFIX": "/usr", "CNI_BIN_DIR": "/usr/lib/cni", "SYSCONFDIR": "/usr/etc"}


def test_install_honours_its_folders_and_uninstall_takes_all_back(tree, tmp_path):
    where = [f"DESTDIR={tmp_path}", *[f"{k}={v}" for k, v in FOLDERS.items()]]
    make(tree, "install", *where)
    assert {p.name for p in tmp_path.iterdir()} == {"usr"}, "a folder was not honoured"
    usr = tmp_path / "usr"
    for there in ("sbin/roostd", "sbin/roost-install", "lib/cni/roost", "lib/systemd/system/roostd.service",
                  "lib/systemd/system/bird.service.d/roost.conf", "etc/roost/agent.json",
                  "etc/iproute2/rt_protos.d/roost.conf", "share/roost/10-roost.conflist",
                  "share/roost/templates/bird.conf.mustache", "share/doc/roost/README.md",
                  "bin/roostctl", "share/man/man8/roostctl.8", "share/bash-completion/completions/roostctl",
                  "share/zsh/site-functions/_roostctl"):
        assert (usr / there).exists(), there
    unit = (usr / "lib/systemd/system/roostd.service").read_text()
    assert "ExecStart=/usr/sbin/roostd" in unit and "/usr/local" not in unit
    said = subprocess.run([usr / "sbin/roost-install", "--help"], capture_output=True, text=True).stdout
    assert "(/usr/share/roost/10-roost.conflist)" in said and "(/usr/lib/cni)" in said
    for manifest in usr.rglob("*.yaml"):
        images = set(re.findall(r"image: (\S+)", manifest.read_text()))
        assert len(images) == 1 and re.fullmatch(r"localhost/roost:[0-9].*", images.pop()), manifest
    # What it installs runs on its own: the configuration as it came is one that the agent accepts.
    # What it refuses is looked at after the file; so it never starts here.
    done = subprocess.run([usr / "sbin/roostd", "--config", usr / "etc/roost/agent.json",
                           "--etcd-user", "x"], capture_output=True, text=True)
    assert done.returncode == 2 and "--etcd-password-file is missing" in done.stderr, done.stderr
    make(tree, "uninstall", *where)
    assert [p for p in tmp_path.rglob("*") if not p.is_dir() or "roost" in p.name] == []


def test_an_edited_configuration_outlives_install_and_uninstall(tree, tmp_path):
    config = tmp_path / "etc/roost/agent.json"
    make(tree, "install", f"DESTDIR={tmp_path}")
    config.write_text("{}")
    make(tree, "install", f"DESTDIR={tmp_path}")
    make(tree, "uninstall", f"DESTDIR={tmp_path}")
    assert [p for p in tmp_path.rglob("*") if not p.is_dir()] == [config]
    assert config.read_text() == "{}"


def test_help_lists_every_target(tree):
    shown = {line.split()[0] for line in make(tree, "help").stdout.splitlines()}
    assert {"all", "deps", "check", "check-quick", "check-unit", "check-integration", "soak", "bench", "demo",
            "demo-stop", "fuzz", "lint", "format", "install", "uninstall", "clean", "dist"} <= shown

# SPDX-License-Identifier: Apache-2.0
"""roostctl against a real etcd: what it shows, what it writes, what it refuses."""

import pytest

from lab.agent import pool, put
from lab.ctl import Ctl


@pytest.fixture
def ctl(etcd, node, build):
    return Ctl(node, build, etcd)


def test_pools_are_listed_and_shown(ctl, etcd):
    assert ctl("pool list").startswith("There are no pools yet")
    assert ctl.json("pool list") == []
    pool(etcd, "web", namespaces=["prod", "dev-*"])
    pool(etcd, "db", "10.2.0.0/24", blockSize=28, disabled=True)
    pool(etcd, "bad", "10.1.128.0/17")
    put(etcd, "pool/worse", cidr=7)
    lines = [line.split() for line in ctl("pool list").splitlines()]
    assert lines[0][:5] == ["NAME", "CIDR", "BLOCKSIZE", "NETWORK", "STATE"]
    assert lines[1][:5] == ["bad", "10.1.128.0/17", "26", "default", "invalid"]
    assert lines[2][:7] == ["db", "10.2.0.0/24", "28", "default", "disabled", "0", "16"]
    assert lines[4][:2] == ["worse", "-"]
    assert "prod,dev-*" in ctl("pool list -o wide")
    rows = {p["name"]: p for p in ctl.json("pool list")}
    assert "overlaps pool web" in rows["bad"]["problem"]
    assert rows["worse"]["problem"].startswith('pool/worse: field "cidr": 7')
    assert ctl("pool show db").splitlines()[0] == "name:           db"
    assert ctl.json("pool show db")["cidr"] == "10.2.0.0/24"
    assert ctl.refuses("pool show nobody", 4) == "there is no pool nobody: see roostctl pool list"


def test_without_etcd_it_says_so(node, build):
    ctl = Ctl(node, build)
    assert "is it running, and is --etcd right?" in ctl.refuses("pool list", 3)
    assert ctl("version").startswith("roostctl:  ")

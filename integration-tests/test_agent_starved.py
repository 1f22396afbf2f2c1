# SPDX-License-Identifier: Apache-2.0
"""What an ADD says when the agent cannot give an address, or does not get to run."""

import ctypes
import os
import pathlib
import re
import struct

import pytest

from lab import wait_until
from lab.agent import Agent, pool
from lab.cni import conf, failure

ROOT = pathlib.Path(__file__).resolve().parent.parent
SYS_SCHED_GETATTR = 315  # of x86_64


@pytest.fixture
def lonely(lab, build, node):
    """An agent on a node that has nothing but its loopback, and an etcd that it reaches all the same."""
    etcd = lab.etcd(unix=True)
    node.routed = True
    agent = Agent(node, build, etcd, "--etcd", f"unix://{etcd.members[0].socket}")
    agent.etcd_of = etcd
    return agent


def test_an_add_says_at_once_that_the_node_has_no_address(lonely, roost, node):
    """Not after the agent's 8 s that it is not registered, which names no cause."""
    pool(lonely.etcd_of, "web", "10.7.0.0/24")
    lonely.spawn()
    pod = node.pod("p1")
    wait_until(lambda: "no address for this node" in str(lonely.api("GET", "/v1/status").body), 20,
               "the agent has looked", errors=(OSError,))
    for program in ("roost", "roost-ipam"):
        error = failure(roost, "ADD", conf("1.0.0", "roost"), pod,
                        program=lonely.build / program)
        assert "no address for this node" in error.msg and "--address" in error.msg, error
        assert "within" not in error.msg, error


# --- weight --------------------------------------------------------------------------------------


def sched_runtime(pid):
    """What the kernel has as a task's own slice, in ns; 0: the usual one."""
    attr = ctypes.create_string_buffer(48)
    if ctypes.CDLL(None, use_errno=True).syscall(SYS_SCHED_GETATTR, pid, attr, len(attr), 0) < 0:
        raise OSError(ctypes.get_errno(), "sched_getattr")
    return struct.unpack("=IIQiIQQQ", attr.raw)[5]


@pytest.mark.skipif(os.uname().machine != "x86_64" or
                    tuple(int(n) for n in os.uname().release.split(".")[:2]) < (6, 12),
                    reason="kernels before 6.12 have one slice for all")
def test_the_agent_asks_for_early_turns_and_its_children_do_not(agent):
    """A short slice brings it to a core soon where others are busy, whatever its weight is."""
    usual = sched_runtime(os.getpid())
    children = [int(c) for c in pathlib.Path(
        f"/proc/{agent.process.pid}/task/{agent.process.pid}/children").read_text().split()]
    assert sched_runtime(agent.process.pid) == 100000 < usual
    assert children and all(sched_runtime(c) == usual for c in children)


def test_what_we_ship_gives_the_agent_a_weight():
    """With 20m it waited 26.7 s for 1.1 s of work on a busy node."""
    manifest = (ROOT / "docs/kubernetes/roost.yaml").read_text()
    for container, least in (("agent", 400), ("bird", 100)):
        cpu = re.search(rf"- name: {container}\n.*?requests: {{[^}}]*cpu: (\d+)m", manifest, re.S)[1]
        assert int(cpu) >= least, container
    for unit in ("roostd.service", "bird.service.d/roost.conf"):
        weight = re.search(r"^CPUWeight=(\d+)$", (ROOT / "systemd" / unit).read_text(), re.M)
        assert weight and int(weight[1]) > 100, unit

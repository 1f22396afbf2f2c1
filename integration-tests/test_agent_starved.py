# SPDX-License-Identifier: Apache-2.0
"""What an ADD says when the agent cannot give an address, or does not get to run."""

import pathlib
import re

import pytest

from lab import wait_until
from lab.agent import Agent, pool
from lab.cni import conf, failure

ROOT = pathlib.Path(__file__).resolve().parent.parent


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


def test_what_we_ship_gives_the_agent_a_weight():
    """With 20m it waited 26.7 s for 1.1 s of work on a busy node."""
    manifest = (ROOT / "docs/kubernetes/roost.yaml").read_text()
    for container, least in (("agent", 400), ("bird", 100)):
        cpu = re.search(rf"- name: {container}\n.*?requests: {{[^}}]*cpu: (\d+)m", manifest, re.S)[1]
        assert int(cpu) >= least, container
    for unit in ("roostd.service", "bird.service.d/roost.conf"):
        weight = re.search(r"^CPUWeight=(\d+)$", (ROOT / "systemd" / unit).read_text(), re.M)
        assert weight and int(weight[1]) > 100, unit

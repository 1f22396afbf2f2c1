# SPDX-License-Identifier: Apache-2.0
"""What an ADD says when the agent cannot give an address, or does not get to run."""

import pytest

from lab import wait_until
from lab.agent import Agent, pool
from lab.cni import conf, failure


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

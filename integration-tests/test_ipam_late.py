# SPDX-License-Identifier: Apache-2.0
"""What a dead agent left on its way must not come true under its successor."""

import json

import pytest

from lab import wait_until
from lab.agent import PREFIX, Agent, pool
from lab.gateway import b64


@pytest.fixture
def three(lab):
    return lab.etcd(members=3)


def in_use(agent):
    """The member that the agent speaks with."""
    return next(m for m in agent.etcd.members if m.url == agent.status()["etcd"]["endpoint"])


@pytest.mark.slow(15)
def test_a_late_release_takes_nothing_from_the_next_agent(lab, three, build):
    """The release lies in a stopped member while its sender dies and the block is used again."""
    one = dict(cidr="10.1.0.0/28", blockSize=32, cooldownSeconds=0)
    pool(three, "one", **one)
    agent = Agent(lab.node("n1"), build, three).start()
    agent.assign("a", addresses=["10.1.0.5"])
    stopped = in_use(agent)
    stopped.pause()
    agent.release("a")
    wait_until(lambda: agent.blocks().get("10.1.0.5/32") == "releasing", 2, "the release")
    agent.kill()
    pool(three, "one", **one, preallocate=1)  # else the next one gives it back as well
    agent.start()
    wait_until(lambda: agent.blocks().get("10.1.0.5/32") == "owned", 30, "the block again")
    agent.assign("b", addresses=["10.1.0.5"])

    stopped.resume()
    stopped.wait_healthy()
    # What it held back has been dealt with when it answers this.
    three.call("/v3/kv/put", {"key": b64("/end"), "value": ""}, member=stopped)
    agent.wait_agreed()
    assert json.loads(three.get(f"{PREFIX}block/default/10.1.0.5-32"))["node"] == "n1"
    assert "vanished" not in agent.log

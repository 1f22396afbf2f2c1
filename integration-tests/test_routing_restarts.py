# SPDX-License-Identifier: Apache-2.0
"""What goes down and comes back, or loses its memory, while pods of two nodes talk: none of
them notices."""

import pytest

from lab import wait_until
from lab.agent import PREFIX
from lab.site import Site
from lab.stream import Stream


def talking(site):
    """Two members whose pods reach each other."""
    site.put("pool/web", cidr="10.1.0.0/16")
    members = site.start(2)
    pods = [m.pod(f"p{i}") for i, m in enumerate(members)]
    for m, other in zip(members, reversed(members)):
        m.wait_route(other.blocks()[0], "proto bird")
    wait_until(lambda: pods[0].pings(pods[1], timeout=5), 60, "the first reply")
    return members, pods


def stream(pods):
    return Stream(pods[0].pod, pods[1].address)


def wait_established(member, n=1):
    wait_until(lambda: sum("Established" in p for p in member.bird.protocols().values()) == n, 60,
               f"{n} sessions of {member}", errors=OSError)


@pytest.fixture
def site(lab, etcd, build):
    return Site(lab, build, etcd)


def test_the_agent_is_killed(site):
    members, pods = talking(site)
    for m in members:
        m.wait_configured()
    before = [m.bird.reconfigured() for m in members]
    with stream(pods) as s:
        for m in members:
            m.agent.kill()
        s.wait_more()
        for m in members:
            m.agent.start()
            m.wait_configured()
    after = [m.bird.reconfigured() for m in members]
    assert after == pytest.approx(before, abs=0.2), "a new agent has no reason to reload"


@pytest.mark.slow(10)
def test_bird_is_killed(site):
    members, pods = talking(site)
    with stream(pods) as s:
        for m in members:
            m.bird.kill()
            s.wait_more()
            m.bird.start("-R")
            for other in members:
                wait_established(other)
            m.wait_configured()
            s.wait_more()


@pytest.mark.slow(10)
def test_bird_is_stopped_for_an_upgrade(site, bird_versions):
    """As the drop-in of its unit does it: `graceful restart`, which systemd follows with SIGTERM, and
    the next one is started with -R."""
    members, pods = talking(site)
    folder, _ = bird_versions
    newer = folder / "2.17/usr/sbin/bird" if folder else "bird"
    with stream(pods) as s:
        for m in members:
            m.bird.birdc("graceful restart")
            assert m.bird.stop() == 0
            s.wait_more()
            m.bird.program = newer
            m.bird.start("-R")
            for other in members:
                wait_established(other)
            m.wait_configured()
            s.wait_more()
    if folder:
        wait_until(lambda: members[0].status()["bird"]["version"].startswith("2.17"), 30)


@pytest.mark.parametrize("how", ["deleted", "another"])
@pytest.mark.slow(15)
def test_etcd_loses_everything(site, etcd, how):
    """Deleted by hand, or another cluster in its place: a vanished key is not a command."""
    members, pods = talking(site)
    blocks = [m.blocks() for m in members]
    since = [m.bird.up_since() for m in members]
    with stream(pods) as s:
        if how == "deleted":
            etcd.delete(PREFIX, prefix=True)
        else:
            etcd.wipe(new_id=True)
        for m in members:
            wait_until(lambda: etcd.get(f"{PREFIX}node/{m.node.name}"), 60, f"{m} to register")
            m.agent.wait_agreed(60)
        # Beyond the time for which a vanished node or extent counts on.
        s.wait_more(240, timeout=120)
    for m, b, other in zip(members, blocks, reversed(members)):
        assert m.blocks() == b
        assert other.routes()[b[0]].startswith("via"), other.routes()
    for m, times in zip(members, since):
        assert m.bird.up_since() == pytest.approx(times, abs=0.2), "sessions were touched"

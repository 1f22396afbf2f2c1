# SPDX-License-Identifier: Apache-2.0
"""No address is held by two live pods: machines of one name, etcd gone back, agents that were
stopped, and settings that change while a node is cut off.

Time is short here: a minute of the agents and controllers lasts MINUTE ms. reclaimAfter is 900 s at
least, so an agent stops five such minutes after its last proof, and the others wait for fifteen.
"""

import concurrent.futures
import ipaddress
import json
import threading
import time

import pytest

from lab.agent import PREFIX, Agent, ApiError, pool, put
from lab.controller import Controller, etcd_txn, owned, revoke_status
from lab.ctl import Ctl
from lab.lease_agent import LeaseServers
from lab.wait import wait_until

NOT_NOW, FULL = 11, 100


class Pods:
    """Pods that ask an agent for addresses, again and again, side by side, until there is one."""

    def __init__(self, agent, n, name="late"):
        self.agent, self.given, self.refused = agent, {}, {}
        self._over = threading.Event()
        self._pool = concurrent.futures.ThreadPoolExecutor(n)
        self._asking = [self._pool.submit(self._ask, f"{name}{i}") for i in range(n)]

    def _ask(self, container):
        while True:
            try:
                (address,) = self.agent.assign(container)
                self.given[address] = time.monotonic()
                return
            except ApiError as e:
                self.refused[container] = e
                if self._over.wait(0.1):
                    return

    def end(self):
        """The addresses that were given; those who got none may ask no more."""
        self._over.set()
        for asking in self._asking:
            asking.result(40)
        self._pool.shutdown()
        return set(self.given)


class Busy(threading.Thread):
    """A pod comes, another one goes: ADDs without an end. given: [(when the reply came, address)]."""

    def __init__(self, agent):
        super().__init__(daemon=True)
        self.agent, self.given, self.over = agent, [], threading.Event()
        self.start()

    def run(self):
        for i in range(100000):
            try:
                (address,) = self.agent.assign(f"busy{i}")
                self.given.append((time.monotonic(), address))
                self.agent.release(f"busy{i}")
            except ApiError as e:
                assert e.code in (NOT_NOW, FULL), e
            if self.over.wait(0.02):
                return

    def since(self, when):
        """What was given after that; ends it."""
        self.over.set()
        self.join(30)
        assert not self.is_alive() and self.given
        return [address for at, address in self.given if at > when]


def fill(agent, name="more"):
    """All that it gives, one after the other."""
    got = set()
    end = time.monotonic() + 30
    while time.monotonic() < end:
        try:
            got |= set(agent.assign(f"{name}{len(got)}"))
        except ApiError as e:
            if e.code == FULL:
                return got
            time.sleep(0.1)
    raise AssertionError(f"{agent} neither gives nor says that it is full")


def held(agent):
    return set(agent.held())


# --- machines of one name ------------------------------------------------------------------------


def test_another_machine_takes_the_name_of_one_that_is_cut_off(lab, etcd, agents):
    """It waits until the other one gives no address any more, and that stays so after healing."""
    pool(etcd, cidr="10.1.0.0/26", cooldownSeconds=0)
    put(etcd, "config", reclaimAfter=900)
    quick = ("--minute", "200")
    first = agents(*quick, node=lab.node("web1")).start()
    first.assign("a")
    first.wait_agreed()
    etcd.switch.isolate(first.node)
    pods = Busy(first)
    revoke_status(etcd, "web1")
    second = agents(*quick, node=lab.node("web1")).start(timeout=30)
    taken = time.monotonic()
    theirs = {second.assign(f"p{i}")[0] for i in range(20)}
    etcd.switch.heal()
    first.wait_health("registration", "which is alive", timeout=40)
    mine = {first.assign(f"q{i}")[0] for i in range(20) if first.status()["ready"]}
    late = pods.since(taken)
    assert not late and not mine, (f"both give addresses; twice: "
                                   f"{sorted(theirs & (set(late) | mine))}")
    assert first.refuses("r").code == NOT_NOW
    assert second.assign("s")


def test_a_copied_machine_is_not_a_reboot(lab, etcd, agents):
    """One image, one name, one machine id; the first one lives and is reached by all."""
    pool(etcd, cidr="10.1.0.0/27", blockSize=27, cooldownSeconds=0)
    first = agents(node=lab.node("web1")).start()
    first.assign("a")
    first.wait_agreed()
    second = agents(node=lab.node("web1", machine_id=first.node.machine_id)).spawn()

    def decided():
        return second.status()["ready"] or "registration" in second.health()
    wait_until(decided, 20, "the second to be taken or refused", errors=OSError)
    pods = Pods(second, 12)
    mine = {first.assign(f"p{i}")[0] for i in range(12)}
    theirs = pods.end()
    assert not mine & theirs, f"twice: {sorted(mine & theirs)}"
    assert not theirs and first.status()["ready"]
    assert "copied image" in second.wait_health("registration")
    assert {e.code for e in pods.refused.values()} == {NOT_NOW}


# --- etcd goes back ------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["restored", "emptied"])
def test_etcd_goes_back_while_pods_wait(etcd, agents, how):
    """One node needs blocks; another has not yet said that it uses some of them."""
    web = dict(cidr="10.1.0.0/27", blockSize=29, cooldownSeconds=0)
    pool(etcd, **web)
    slow, eager = agents().start(), agents().start()
    before = etcd.save()
    for i in range(8):
        slow.assign(f"p{i}"), eager.assign(f"p{i}")
    slow.wait_agreed(), eager.wait_agreed()
    etcd.stop()
    slow.process.pause()
    pods = Pods(eager, 24)
    if how == "restored":
        etcd.restore(before)
    else:
        etcd.wipe()
        pool(etcd, **web)
    # Either nobody gets a block before all have spoken, or there is nothing left to get.
    wait_until(lambda: etcd.get(PREFIX + "recovery") or len(pods.given) >= 16, 20, "a recovery")
    slow.process.resume()
    wait_until(lambda: len(pods.given) >= 8, 30, "pods to get addresses of free blocks")
    pods.end()
    assert not held(slow) & held(eager), f"twice: {sorted(held(slow) & held(eager))}"
    slow.wait_agreed(30), eager.wait_agreed(30)


def test_a_block_that_changed_hands_since_the_snapshot(etcd, agents):
    """A restore makes it the former owner's again, who has pods waiting; the new one's use it."""
    pool(etcd, cidr="10.1.0.0/28", blockSize=30, cooldownSeconds=0)
    former, owner = agents().start(), agents().start()
    for i in range(12):
        former.assign(f"p{i}")
    former.wait_agreed()
    snapshot = etcd.save()
    # Of one block all addresses stay in use, another one is kept for the next pod.
    stays = ipaddress.ip_network(min(former.blocks()))
    for address, container in former.held().items():
        if ipaddress.ip_address(address) not in stays:
            former.release(container)
    wait_until(lambda: len(former.blocks()) == 2, 10, "blocks to be given back")
    theirs = {owner.assign(f"p{i}")[0] for i in range(8)}
    owner.wait_agreed()
    etcd.stop()
    pods = Pods(former, 8)
    etcd.restore(snapshot)
    wait_until(lambda: '"done":true' in (etcd.get(PREFIX + "recovery") or "")
               or len(pods.given) > 4, 30, "the recovery to end")
    former.wait_agreed(30)
    mine = pods.end()
    assert not mine & theirs, f"twice: {sorted(mine & theirs)}"
    owner.wait_agreed(30)
    assert held(owner) == theirs and not held(former) & theirs
    assert set(owner.blocks().values()) == {"owned"}


@pytest.mark.slow(15)
def test_a_lease_that_changed_hands_since_the_snapshot(lab, etcd, build, agents):
    """A restore makes it the former holder's again; no server remembers that it is another's."""
    pool(etcd, "over", "10.5.0.0/28", blockSize=28, encapsulation="vxlan", cooldownSeconds=0,
         nodeSelector='role != "witness"')
    quick = ("--minute", "200")
    servers = LeaseServers(lab, etcd, build, 1, *quick)
    put(etcd, "spec/n1", labels={"role": "witness"})
    witness = agents(*quick).spawn()
    former = Agent(lab.node("n8"), build, servers, *quick).start()
    (subnet,) = servers.leased(former)
    wait_until(lambda: etcd.get(PREFIX + "status/node/n1"), 20, "the witness")
    snapshot = etcd.save()
    name, key = f"lease-{etcd.switch.address(former.node)}", subnet.replace("/", "-")
    former.process.pause()
    etcd_txn(etcd, {}, [f"block/default/{key}", f"host/{name}/ipv4/block/default/{key}",
                        f"node/{name}"])
    owner = Agent(lab.node("n9"), build, servers, *quick).start()
    theirs = {owner.assign(f"p{i}")[0] for i in range(8)}
    former.process.resume()
    wait_until(lambda: not former.status()["ready"] or subnet not in former.blocks(), 20,
               "the former holder to learn of it")
    servers[0].kill()
    etcd.restore(snapshot)
    wait_until(lambda: etcd.get(PREFIX + "recovery"), 30, "a recovery")
    servers[0].start()
    pods = Pods(former, 8)
    wait_until(lambda: '"done":true' in etcd.get(PREFIX + "recovery"), 60, "the recovery to end")
    owner.wait_well("lease-server", 30)
    mine = pods.end()
    assert not mine & theirs, f"twice: {sorted(mine & theirs)}"
    assert not mine and held(owner) >= theirs  # and its tunnel's
    assert servers.leased(owner) == {subnet} and owner.assign("one-more")
    assert witness.process.alive


# --- stopped -------------------------------------------------------------------------------------


def test_an_agent_that_was_stopped_while_its_node_was_removed(lab, etcd, build, agents):
    """Twelve ADDs wait in its socket when it goes on."""
    pool(etcd, cidr="10.1.0.0/28", blockSize=28, cooldownSeconds=0)
    put(etcd, "config", reclaimAfter=900)
    quick = ("--minute", "200")
    Controller(lab.node("c1"), build, etcd, "--lease", "2", *quick).start().wait_leads()
    ctl = Ctl(lab.node("op"), build, etcd)
    stopped, other = agents(*quick).start(), agents(*quick)
    stopped.assign("a")
    stopped.wait_agreed()
    stopped.process.pause()
    pods = Pods(stopped, 12)
    revoke_status(etcd, "n1")
    assert ctl.run("node delete n1 --yes").returncode == 0
    wait_until(lambda: not owned(etcd, "n1"), 30, "its block to be freed")
    theirs = fill(other.start())
    assert len(theirs) == 16
    stopped.process.resume()
    mine = pods.end()
    assert not mine, f"twice: {sorted(mine & theirs)}"
    assert len(pods.refused) == 12


@pytest.mark.slow(10)
def test_an_agent_that_was_stopped_while_its_lease_ran_out(lab, etcd, build):
    """Nobody needs to remove it: a lease that is not renewed is another's some time."""
    pool(etcd, "over", "10.5.0.0/28", blockSize=28, encapsulation="vxlan", cooldownSeconds=0)
    servers = LeaseServers(lab, etcd, build, 1, "--minute", "50", "--lease-ttl", "60")
    servers[0].wait_leads()
    stopped = Agent(lab.node("n1"), build, servers, "--minute", "200").start()
    stopped.assign("a")
    key, = etcd.dump(PREFIX + "block/default/")
    stopped.process.pause()
    paused = time.monotonic()
    pods = Pods(stopped, 8)
    # As if a minute had passed, which is the shortest that a lease lasts.
    record = json.loads(etcd.get(key))
    record["lease"]["expires"] = "2026-01-01T00:00:00Z"
    etcd_txn(etcd, {key[len(PREFIX):]: record})
    wait_until(lambda: not etcd.get(key), 20, "the lease to be freed")
    other = Agent(lab.node("n2"), build, servers, "--minute", "200").start()
    theirs = fill(other)
    assert len(theirs) > 8
    wait_until(lambda: time.monotonic() - paused > 1.5, 10, "the time of its last proof to be over")
    stopped.process.resume()
    mine = pods.end()
    assert not mine & theirs, f"twice: {sorted(mine & theirs)}"
    assert not mine and len(pods.refused) == 8


# --- what was promised ---------------------------------------------------------------------------


@pytest.mark.parametrize("before, after", [(3600, {"reclaimAfter": 900}),
                                           (10800, {"reclaimAfter": "3h"})],
                         ids=["lowered", "broken, and the controller starts again"])
@pytest.mark.slow(10)
def test_a_node_that_is_cut_off_counts_on_what_it_was_promised(lab, etcd, build, agents, before,
                                                               after):
    """It knows the former reclaimAfter alone, so nobody may use another one."""
    minute = 6000 // (before // 60)  # that time is 6 s
    pool(etcd, cidr="10.1.0.0/26", blockSize=26, cooldownSeconds=0)
    put(etcd, "config", reclaimAfter=before)
    quick = ("--minute", str(max(minute, 50)))
    c = Controller(lab.node("c1"), build, etcd, "--lease", "2", *quick).start().wait_leads()
    ctl = Ctl(lab.node("op"), build, etcd)
    alone, other = agents(*quick).start(), agents(*quick)
    alone.assign("a")
    alone.wait_agreed()
    etcd.switch.cut(alone.node)
    pods = Busy(alone)
    revoke_status(etcd, "n1")
    put(etcd, "config", **after)
    if isinstance(after["reclaimAfter"], str):
        c.kill()
        etcd.delete(PREFIX + "leader/controller")
        c.start().wait_leads()
    assert ctl.run("node delete n1 --yes").returncode == 0
    wait_until(lambda: not owned(etcd, "n1"), 40, "its block to be freed")
    freed = time.monotonic()
    theirs = fill(other.start())
    assert len(theirs) == 64
    late = pods.since(freed)
    assert not late, f"{len(late)} given after its block was freed, such as {late[0]}"

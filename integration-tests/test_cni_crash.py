# SPDX-License-Identifier: Apache-2.0
"""The agent is killed at random moments while pods come and go.

Workers behave like a runtime: a failed ADD is followed by a DEL, a DEL must succeed. A pod
whose ADD has succeeded has its address, route and link from then on until its DEL,
whatever happens to the agent; and when the agent is back, kernel, files and etcd
tell the same as the workers.
"""

import concurrent.futures
import os
import random
import threading
import time

import pytest

from lab import wait_until
from lab.cni import CniError

CALLS, PODS, WORKERS = 1000, 50, 10
SEED = int(os.environ.get("ROOST_CRASH_SEED", time.time_ns() % 100000))
# An agent that is away, or starting, or was killed under the call.
ALLOWED = {5, 11}


class Worker:
    """Some namespaces; in each a container that comes and goes, as podman's stop and start do."""

    def __init__(self, member, pods, calls, seed):
        self.member, self.pods, self.random = member, pods, random.Random(seed)
        self.calls = calls
        self.lives = {}  # netns -> (container, addresses)
        self.failed, self.made = [], 0

    def run(self):
        for _ in range(self.calls):
            netns = self.random.choice(self.pods).netns
            if netns in self.lives:
                self.delete(netns, self.lives.pop(netns)[0])
            else:
                self.add(netns, netns.rsplit("/")[-1])

    def add(self, netns, container):
        try:
            result = self.member.add(container, netns)
        except CniError as e:
            self.failed.append(e)
            self.delete(netns, container)
            return
        self.made += 1
        self.lives[netns] = container, {ip["address"].split("/")[0] for ip in result["ips"]}

    def delete(self, netns, container):
        """Now and then the namespace is not told, as after its end."""
        self.member.delete(container, self.random.choice([netns, netns, ""]))


def torment(agent, done, rng):
    """Kill and start until done; returns how often."""
    kills = 0
    while not done.wait(rng.uniform(0.01, 0.3)):
        agent.kill()
        kills += 1
        # Sometimes a plugin finds nobody, sometimes hardly notices.
        done.wait(rng.choice([0, 0, 0.1]))
        agent.spawn()
        if rng.random() < 0.7:
            agent.wait_ready()
    if not agent.process.alive:
        agent.spawn()
    return kills


def agree(agent, lives):
    """Raises unless kernel, files, memory and etcd hold just these lives; else True."""
    held = {a: container for container, addresses in lives for a in addresses}
    assert agent.held() == held
    assert set(agent.pod_routes()) == set(held)
    assert set(agent.neighbours()) == set(held)
    links = set(agent.pod_routes().values())
    assert agent.pod_links() == links and len(links) == len(lives)
    return agent.agrees()


@pytest.mark.limit(240)
@pytest.mark.slow(15)
def test_no_pod_is_lost_when_the_agent_is_killed(cluster):
    [agent] = cluster()
    rng = random.Random(SEED)
    pods = [agent.node.pod(f"p{i}") for i in range(PODS)]
    workers = [Worker(agent, pods[i::WORKERS], CALLS // WORKERS, rng.random())
               for i in range(WORKERS)]
    done = threading.Event()
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as threads:
        work = [threads.submit(w.run) for w in workers]
        waiter = threading.Thread(target=lambda: (concurrent.futures.wait(work), done.set()))
        waiter.start()
        try:
            kills = torment(agent, done, rng)
        finally:
            waiter.join()
        for w in work:
            w.result()
    agent.wait_ready()

    lives = [life for w in workers for life in w.lives.values()]
    failed = [e for w in workers for e in w.failed]
    print(f"seed {SEED}: {kills} kills, {sum(w.made for w in workers)} pods made, "
          f"{len(failed)} refused, {len(lives)} live at the end")
    assert kills > 3 and lives, "nothing was tested"
    assert {e.code for e in failed} <= ALLOWED, {str(e) for e in failed if e.code not in ALLOWED}
    wait_until(lambda: agree(agent, lives), 20, "kernel, files and etcd to agree",
               errors=(AssertionError, OSError, ValueError))
    assert all(agent.node.ping(a) for _, addresses in lives for a in addresses)

    for w in workers:
        for netns, (container, _) in w.lives.items():
            agent.delete(container, netns)
    for pod in pods:
        pod.delete()
    agent.wait_no_trace()
    agent.wait_agreed()

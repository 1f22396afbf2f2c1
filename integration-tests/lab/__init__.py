# SPDX-License-Identifier: Apache-2.0
"""The lab: real etcd, real BIRD, real kernel routing, in namespaces that leave no trace.

How to write a test (a file integration-tests/test_something.py):

    def test_block_reaches_the_neighbour(lab, build):
        etcd = lab.etcd(members=3)                  # or the fixture `etcd`: one member
        n1, n2 = lab.nodes(2)                       # machines; n1.run("ip route").stdout
        etcd.join(n1)                               # eth0 on etcd's switch
        fabric = lab.switch([n1, n2])               # eth1 of n1, eth0 of n2: 192.168.50.1, .2
        bird = lab.bird(n2, CONFIG)                 # bird.birdc("show protocols")
        agent = n1.spawn("roostd", [build / "roostd", *etcd.flags()], expect_clean=True)
        agent.wait_log("in sync")
        etcd.put("/roost/v1/config", "{}")
        etcd.leader().kill()                        # .stop() .pause() .resume() .restart()
        wait_until(lambda: "10.1.0.0/26" in n2.run("ip route").stdout, 10, "the route on n2")
        fabric.cut(n1)                              # .restore .partition .isolate .heal
        assert n1.ping("192.168.50.2", timeout=0.2) is False

No sleeps: wait_until() polls, Process.wait_log() reads. Nothing to clean up: the lab
ends with the test, and the session's end proves that the host is as it was. When a test
fails, the last lines of every process's log are shown. Labs share nothing, so tests run
side by side with the same names and addresses.

    process    how programs are started, watched, ended     namespace, node, pod   machines
    links      cables and switches                          etcd, gateway          etcd
    bird, tls, ping, steady, packets, wait                  lab, session, janitor  who owns what
    systemd    a machine whose first process is systemd
    agent, cluster, cni                                     podman, containerd, libcni     runtimes
    lease, lease_agent                                      the lease server, and agents over it
"""

from .etcd import EtcdError
from .process import CommandError
from .wait import wait_until

__all__ = ["CommandError", "EtcdError", "wait_until"]

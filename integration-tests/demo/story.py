# SPDX-License-Identifier: Apache-2.0
"""What the demo tells, step by step. Each step fails if what it shows is not so."""

import json
import re

from lab.controller import PORT, Controller

from .stage import ROUTER_AS

# What an operator asks.
QUESTIONS = ("node list", "status", "bgp --all", "ipam show", "ipam check",
             "address list n1 -o wide")


def tell(stage):
    come_up(stage)
    pods = start_pods(stage)
    cross(stage, pods)
    lose_agent(stage, pods)
    lead_out(stage)
    lose_etcd(stage, pods)
    go_under(stage, pods)
    break_out(stage, pods)
    keep_house(stage)
    look(stage)


def come_up(stage):
    stage.say("one etcd, a top-of-rack router and three nodes, each a machine of its own")
    stage.machines()
    stage.start_router()
    for name, node in stage.nodes().items():
        stage.sh(node, "ip -br -4 address show dev eth0")

    stage.say("the operator creates a pool, and the router as BGP neighbour of all nodes")
    for words in ("pool create web cidr=10.1.0.0/16", "config set mesh=false --yes",
                  f"peer create tor address={stage.address(stage.router)} asn={ROUTER_AS} "
                  "allowLocalAs=1"):
        stage.sh(stage.control, f"roostctl {words}")

    stage.say("BIRD and roostd start on every node; plugins and conflist are installed")
    for m in stage.members:
        m.spawn()
    for m in stage.members:
        m.agent.wait_ready(60)
    for m in stage.members:
        m.wait_configured(60)
        stage.prompt(m.node.name, "roostd")
        for words in ("node", "registered as", "published"):
            said_by(stage, m, words)
    for m in stage.members:
        stage.install(m, shown=m is stage.members[0])


def start_pods(stage):
    stage.say("pods start: the plugin is executed as container runtimes do it, and prints its result")
    pods = [stage.pod(m, f"web{i + 1}", whole=i == 0) for i, m in enumerate(stage.members)]
    stage.sh(stage.members[0].node, "ip route")
    return pods


def cross(stage, pods):
    stage.say("the router has learned the routes to the pods: one per block, not one per pod")
    blocks = {b for m in stage.members for b in m.blocks()}
    stage.wait(lambda: blocks <= set(routes(stage.router)), f"routes to {blocks} on the router")
    shown = stage.sh(stage.router, "ip route show proto bird")
    assert not re.search(r"/32|^10\.1\.\d+\.\d+ ", shown, re.M), "a pod's own route left its node"
    stage.sh(stage.router, "birdc show protocols | grep -i -E 'name|bgp'")

    stage.say("pings: pod to pod through the router (ttl 61: three hops), router to pod")
    for a, b in ((0, 1), (1, 2), (2, 0)):
        wait_way(stage, pods[a], pods[b].address)
        stage.sh(pods[a].member.node, f"ping -n -c 2 -i 0.1 {pods[b].address}", pod=pods[a])
    stage.sh(stage.router, f"ping -n -c 2 -i 0.1 {pods[0].address}")


def lose_agent(stage, pods):
    member = stage.members[0]
    stage.say(f"the agent of {member.node.name} is killed while a ping runs to a pod there")
    ping = stage.follow(pods[1], pods[0].address)
    stage.sh(member.node, f"kill -9 {member.agent.process.pid}")
    member.agent.process.wait()
    stage.sh(member.node, "curl -sS --unix-socket /run/roost/agent.sock http://localhost/v1/status",
             fails=True)
    stage.sh(stage.router, f"ping -n -q -c 40 -i 0.05 {pods[0].address}")
    stage.sh(stage.router, "ip route show proto bird")
    stage.say("the agent starts again (systemd would do that) and finds everything unchanged")
    member.agent.start(timeout=60)
    stage.prompt(member.node.name, "roostd")
    said_by(stage, member, "registered as")
    said = ping.finish()
    assert re.search(r" 0% packet loss", said), "packets were lost"
    stage.say(f"another program flushes our routes on {member.node.name}; the agent restores them")
    stage.sh(member.node, "ip route flush proto roost")
    wait_way(stage, pods[2], pods[0].address)
    stage.wait(lambda: "by another program; restored" in member.agent.log, "the agent's words")
    said_by(stage, member, "by another program; restored")
    stage.sh(member.node, "ip route show proto roost")


def lead_out(stage):
    member, vpn = stage.members[0], "203.0.113.1"
    stage.say("behind the router is a VPN: the operator declares the route to it once, for all nodes")
    stage.sh(stage.router, f"ip address add {vpn}/32 dev lo")
    stage.sh(stage.control, "roostctl route create vpn subnet=203.0.113.0/24 "
             f"gateway={stage.address(stage.router)}")
    for m in stage.members:
        stage.wait(lambda: m.node.ping(vpn), f"{m.node.name} to reach the VPN")
    stage.sh(member.node, f"ping -n -c 2 -i 0.1 {vpn}")
    stage.say(f"another program removes it on {member.node.name}; the agent restores and reports it")
    stage.sh(member.node, "ip route del 203.0.113.0/24 proto roost-static")
    stage.wait(lambda: member.node.ping(vpn), "the route to be back")
    stage.sh(member.node, "ip route show proto roost-static")
    stage.wait(lambda: "applied 3/3" in member.node.run(
        [stage.build / "roostctl", "route", "list"], env=stage.env()).stdout, "three reports")
    stage.sh(stage.control, "roostctl route list")


def lose_etcd(stage, pods):
    member, first = stage.members[0], stage.etcd.members[0]
    stage.say("etcd is killed: pods still start and can be reached")
    stage.sh(stage.control, f"kill -9 {first.process.pid}")
    first.process.wait()
    stage.sh(stage.control, "etcdctl --command-timeout=500ms endpoint health 2>&1 | "
             "grep 'is unhealthy'")
    late = stage.pod(member, "late")
    wait_way(stage, pods[2], late.address)
    stage.sh(pods[2].member.node, f"ping -n -c 2 -i 0.1 {late.address}", pod=pods[2])
    stage.say("etcd starts again; the agents write what has happened in the meantime")
    first.start()
    member.agent.wait_agreed(60)
    shown = stage.sh(stage.control, "etcdctl get --prefix --keys-only "
                     f"/roost/v1/host/{member.node.name}/address/ | grep .")
    assert late.address in shown
    late.delete()


def go_under(stage, pods):
    a, b = pods[0], pods[1]
    stage.say("a network that does not learn routes: the pool becomes an overlay, the router's routes go")
    # Nodes reach each other's own addresses, as they would anywhere.
    stage.etcd.switch.heal()
    stage.sh(stage.control, "roostctl pool edit web encapsulation=vxlan --yes")
    stage.wait(lambda: "10.1." not in " ".join(routes(stage.router)), "the router without pods")
    wait_way(stage, a, b.address)
    stage.sh(a.member.node, "roostctl overlay")
    stage.sh(a.member.node, "ip route show proto roost")
    stage.sh(a.member.node, f"ping -n -c 2 -i 0.1 {b.address}", pod=a)
    stage.say("and back: the tunnels go, the router learns the routes again")
    stage.sh(stage.control, "roostctl pool edit web encapsulation=none --yes")
    stage.etcd.switch.separate(*[m.node for m in stage.members])
    stage.wait(lambda: "vxlan" not in a.member.node.run("ip -br link").stdout, "no tunnel")
    for one, other in ((a, b), (b, pods[2]), (pods[2], a)):
        wait_way(stage, one, other.address)


def break_out(stage, pods):
    """What a pod tries that somebody has taken over; root in its own namespace, but no more."""
    villain, member, victim = pods[0], pods[0].member, pods[1]
    node, other = stage.address(member.node), stage.address(victim.member.node)
    say_udp = "bash -c 'echo hello > /dev/udp/{}/{}'"

    def refused(what, command, counter, fails=True):
        stage.say(what)
        before = dropped(member, counter)
        stage.sh(member.node, command, pod=villain, fails=fails)
        stage.wait(lambda: dropped(member, counter) > before, f"the counter {counter} to see it")
        stage.sh(member.node, f"nft list counter inet roost drop_{counter} | grep packets")

    stage.sh(member.node, "ip addr add 10.1.200.200/32 dev eth0; ip addr add 198.51.100.7/32 dev eth0; "
             "ip addr flush dev lo; sysctl -qw net.ipv4.conf.eth0.route_localnet=1; "
             "ip route add 127.0.0.1/32 via 169.254.1.1 dev eth0 onlink", pod=villain)
    refused("a hostile pod sends as another pod", f"ping -n -q -c 1 -W 0.3 -I 10.1.200.200 {victim.address}",
            "source")
    refused("it sends as a host of the internet", f"ping -n -q -c 1 -W 0.3 -I 198.51.100.7 {other}", "source")
    refused("it asks what listens on its node's loopback", f"ping -n -q -c 1 -W 0.3 -I {villain.address} 127.0.0.1",
            "loopback")
    refused("it sends into the overlay of another node", say_udp.format(other, 4789), "vxlan", fails=False)
    refused("it wants a BGP session with its node", f"timeout 0.5 bash -c 'exec 3<>/dev/tcp/{node}/179'", "routing")
    refused("it says by BFD that a neighbour is down", say_udp.format(node, 3784), "routing", fails=False)
    stage.sh(member.node, "ip addr del 10.1.200.200/32 dev eth0; ip addr del 198.51.100.7/32 dev eth0", pod=villain)
    stage.sh(member.node, "roostctl status | grep dropped")


def dropped(member, reason):
    return member.agent.metrics()[f'roost_firewall_drops_total{{reason="{reason}"}}']


def keep_house(stage):
    stage.say("two controllers: the leader is stopped, the other one takes over")
    one, two = (Controller(m.node, stage.build, stage.etcd) for m in stage.members[:2])
    for c in (one, two):
        stage.prompt(c.node.name, "roost-controller")
        c.start()
        stage.wait(lambda: c.get("/healthz")[0] == 200, "the controller's port")
        stage.wait(one.leads, "a leader")
    stage.sh(stage.control, "etcdctl get --print-value-only /roost/v1/leader/controller")
    stage.sh(one.node, f"kill {one.process.pid}")
    stage.wait(two.leads, "another leader")
    stage.sh(stage.control, "etcdctl get --print-value-only /roost/v1/leader/controller")
    stage.wait(lambda: two.get("/readyz")[0] == 200, "the new leader's first comparison")
    stage.sh(two.node, f"curl -s http://127.0.0.1:{PORT}/metrics | grep -E '^roost_cluster_(nodes|blocks|addresses)'")


def look(stage):
    node = stage.members[0].node
    # Agents tell etcd how they are at most every five seconds.
    stage.wait(lambda: all_up(stage), "every node's word that its session is up")
    stage.say(f"the cluster by roostctl, on {node.name}")
    for words in QUESTIONS:
        stage.sh(node, f"roostctl {words}")


def all_up(stage):
    done = stage.members[0].node.run([stage.build / "roostctl", "bgp", "--all", "-o", "json"],
                                     env=stage.env())
    return [s["state"] for s in json.loads(done.stdout)] == ["Established"] * len(stage.members)


# --- waiting: shown is only what then holds -----------------------------------------------------------

def said_by(stage, member, words):
    """The newest line of the agent's log with these words."""
    stage.lines(next((x for x in reversed(member.agent.log.splitlines()) if words in x), ""))


def routes(node):
    return [line.split()[0] for line in node.run("ip route").stdout.splitlines()]


def wait_way(stage, pod, address):
    stage.wait(lambda: pod.pod.ping(address), f"{pod.name} to reach {address}")

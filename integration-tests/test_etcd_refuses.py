# SPDX-License-Identifier: Apache-2.0
"""An etcd that answers, but refuses: no permission, no space, another authentication.

Agents say what etcd said and what helps, ask rarely while it lasts, and go on soon after."""

import re
import time

import pytest

from lab import EtcdError, wait_until
from lab.agent import PREFIX, Agent, pool
from lab.etcd import USER
from lab.gateway import b64, prefix_end
from lab.slow import Slow

# So many refused requests may an agent cause while an ADD waits, whatever it wants to write.
MOST, SECONDS = 30, 8


def refused(etcd, code):
    """How many requests etcd has answered with this gRPC code so far."""
    member = etcd.members[0]
    text = member.node.run(["curl", "-s", f"{member.url}/metrics"]).stdout
    return sum(float(n) for n in re.findall(
        rf'^grpc_server_handled_total{{grpc_code="{code}".*}} (\S+)$', text, re.M))


def refused_add(agent, code, container, **more):
    """The error of an ADD that etcd's refusal prevents; etcd must be asked rarely meanwhile."""
    before, start = refused(agent.etcd, code), time.monotonic()
    why = agent.refuses(container, **more)
    wait_until(lambda: time.monotonic() - start > SECONDS, SECONDS + 1, "the time to pass", poll=0.1)
    n = refused(agent.etcd, code) - before
    assert n < MOST, f"{n} refused requests in {SECONDS} s"
    assert why.code == 11 and "full" not in why.text
    return why.text


# --- no permission -------------------------------------------------------------------------------


def permit(etcd, *writable):
    """What the agents' role may do: read all, write these prefixes."""
    etcd.call("/v3/auth/role/revoke", {"role": USER, "key": b64("/roost/"),
                                       "range_end": b64("/roost0")})
    grant(etcd, "READ", "/roost/")
    for prefix in writable:
        grant(etcd, "READWRITE", PREFIX + prefix)


def grant(etcd, kind, prefix):
    etcd.call("/v3/auth/role/grant", {"name": USER, "perm": {
        "permType": kind, "key": b64(prefix), "range_end": b64(prefix_end(prefix))}})


@pytest.mark.slow(10)
def test_a_role_without_a_permission_is_named_and_asked_rarely(lab, build):
    """Neither blocks nor address keys may be written, in one pool each."""
    etcd = lab.etcd(auth=True)
    pool(etcd, cidr="10.1.0.0/24")
    pool(etcd, "other", "10.2.0.0/24")
    a = Agent(lab.node(), build, etcd).start()
    a.assign("c1", pools=["web"])
    a.wait_agreed()
    permit(etcd, "node/", "status/")
    a.assign("c2", pools=["web"])
    why = refused_add(a, "PermissionDenied", "c3", pools=["other"])
    assert "permission denied" in why and f'user "{USER}"' in why and PREFIX + "block/" in why
    assert PREFIX + "block/" in a.health()["blocks"]
    assert PREFIX + "host/" in a.health()["address-records"]
    grant(etcd, "READWRITE", PREFIX)
    a.wait_agreed(15)
    a.assign("c3", pools=["other"])
    a.wait_agreed()
    wait_until(lambda: a.health() == {}, 15, "all to be well")


def test_a_node_that_may_not_register_is_not_ready_and_says_why(lab, build):
    etcd = lab.etcd(auth=True)
    pool(etcd)
    permit(etcd)
    a = Agent(lab.node(), build, etcd).spawn()

    def said():
        ready = a.api("GET", "/readyz").body
        assert not ready["ready"]
        return "permission denied" in ready["reason"] and PREFIX + "node/" in ready["reason"]
    wait_until(said, 20, "the reason", errors=OSError)
    assert PREFIX + "node/" in a.health()["registration"]
    # 0.1 s, doubled each time: six tries in the first 3 s, a read each.
    assert refused(etcd, "PermissionDenied") < MOST
    grant(etcd, "READWRITE", PREFIX)
    a.wait_ready(15)
    a.assign("c1")
    a.wait_agreed()


# --- no space ------------------------------------------------------------------------------------


@pytest.mark.slow(10)
def test_a_full_etcd_is_named_and_asked_rarely(lab, build):
    etcd = lab.etcd(extra_args=["--quota-backend-bytes", str(2 * 1024 * 1024)])
    pool(etcd, cidr="10.1.0.0/24")
    a = Agent(lab.node(), build, etcd).start()
    first = a.assign("c1")
    a.wait_agreed()
    pool(etcd, "other", "10.2.0.0/24")
    filled = 0
    try:
        while True:
            etcd.put(f"/fill/{filled}", "x" * 300000)
            filled += 1
    except EtcdError as e:
        assert "space exceeded" in e.message
    a.assign("c2")
    why = refused_add(a, "ResourceExhausted", "c3", pools=["other"])
    assert "space exceeded" in why and "alarm disarm" in why
    assert "alarm disarm" in a.health()["blocks"] + a.health()["address-records"]
    assert a.assign("c1") == first
    etcd.delete("/fill/", prefix=True)
    etcd.compact()
    etcd.defrag()
    etcd.ctl("alarm", "disarm")
    a.wait_agreed(15)
    a.assign("c3", pools=["other"])
    a.wait_agreed()
    wait_until(lambda: a.health() == {}, 15, "all to be well")


# --- authentication is switched off and on -------------------------------------------------------


def set_authentication(etcd, on):
    etcd.call(f"/v3/auth/{'enable' if on else 'disable'}", {})
    etcd._auth_on = on


def test_authentication_that_is_disabled_and_enabled_stops_no_writes(lab, build):
    """Disabled, etcd refuses logins and also the tokens that agents have."""
    etcd = lab.etcd(auth=True)
    pool(etcd)
    a = Agent(lab.node(), build, etcd).start()
    a.assign("c1")
    a.wait_agreed()
    for i, on in enumerate([False, True, False]):
        set_authentication(etcd, on)
        a.assign(f"on-{i}")
        a.wait_agreed(3)
    # The watches are opened again, without a token and with one.
    etcd.members[0].restart()
    a.assign("restarted")
    a.wait_agreed()
    set_authentication(etcd, True)
    etcd.members[0].restart()
    a.assign("guarded")
    a.wait_agreed()
    a.restart().assign("last")
    a.wait_agreed()


# --- slow ----------------------------------------------------------------------------------------


@pytest.mark.slow(10)
def test_an_etcd_that_answers_late_gets_the_status(lab, etcd, build):
    """Later than a first attempt waits: the agent gives the next one more time."""
    pool(etcd)
    slow = Slow(etcd)
    try:
        a = Agent(lab.node(), build, slow).start()
        key = f"{PREFIX}status/node/{a.node.name}"
        # As after a long cut: the lease has ended, and etcd is reached again, slowly.
        slow.delay = 2.2
        etcd.call("/v3/lease/revoke", {"ID": str(etcd.list(key)[0].lease)})
        slow.cut()
        wait_until(lambda: etcd.get(key), 40, "the status to be back")
        wait_until(lambda: "status" not in a.health(), 20, "the agent to know that")
        slow.delay = 0
    finally:
        slow.close()

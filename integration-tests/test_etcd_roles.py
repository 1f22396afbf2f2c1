# SPDX-License-Identifier: Apache-2.0
"""etcd with least right: each program has a user and a role of its own, and works with them."""

import json
import stat

import pytest

from lab import EtcdError, wait_until
from lab.agent import PREFIX, Agent, pool, put
from lab.controller import Controller
from lab.ctl import Ctl
from lab.etcd import ROOT_PASSWORD
from lab.gateway import b64

DIR = "/run/etcd-users"


class Users:
    """The roles and users of two nodes, set by roostctl; then etcd asks for a login."""

    def __init__(self, lab, etcd, build):
        self.etcd, self.node = etcd, lab.node("op")
        pool(etcd, "web", "10.1.0.0/16")
        self.ctl = Ctl(self.node, build, etcd)
        self.rows = self.ctl.json(f"etcd roles n1 n2 --apply --password-dir {DIR}")
        etcd.require_login()

    def as_user(self, name):
        return self.etcd.as_user(name, self.node.path(f"{DIR}/{name}"))


@pytest.fixture
def users(lab, etcd, build):
    return Users(lab, etcd, build)


def may(etcd, key, value="{}"):
    """Whether etcd lets this user write the key; the login goes through the store of roostctl."""
    member = etcd.members[0]
    name, file = etcd.flags()[-3], etcd.flags()[-1]
    token = member.gateway.request("/v3/auth/authenticate",
                                   {"name": name, "password": file.read_text()})["token"]
    try:
        member.gateway.request("/v3/kv/put", {"key": b64(PREFIX + key), "value": b64(value)}, token)
    except EtcdError as e:
        assert "permission denied" in str(e), e
        return False
    return True


def test_roles_are_set_once_and_corrected(users, build):
    etcd, ctl = users.etcd, users.ctl
    assert [row["user"] for row in users.rows] == [
        "roost-node-n1", "roost-node-n2", "roost-controller", "roost-operator", "roost-viewer"]
    assert {row["role"] for row in users.rows} == {"created"}
    for row in users.rows:
        file = users.node.path(row["passwordFile"])
        assert stat.S_IMODE(file.stat().st_mode) == 0o600 and len(file.read_text()) == 32
    # As root again: nothing changes, and no user gets another password.
    secret = users.node.path("/run/root-password")
    secret.write_text(ROOT_PASSWORD)
    secret.chmod(0o600)
    root = Ctl(users.node, build, etcd.as_user("root", secret))
    again = root.json(f"etcd roles n1 n2 --apply")
    assert {row["role"] for row in again} == {"unchanged"}
    assert not any("passwordFile" in row for row in again)
    # What a hand added is revoked, what it took away is granted again.
    etcd.call("/v3/auth/role/grant", {"name": "roost-viewer", "perm": {
        "permType": "READWRITE", "key": b64(PREFIX + "config")}})
    etcd.call("/v3/auth/role/revoke", {"role": "roost-node-n1", "key": b64(PREFIX + "node/n1")})
    changed = {row["user"]: row["role"] for row in root.json("etcd roles n1 n2 --apply")}
    assert changed.pop("roost-viewer") == changed.pop("roost-node-n1") == "changed"
    assert set(changed.values()) == {"unchanged"}
    assert not may(users.as_user("roost-viewer"), "config")
    assert may(users.as_user("roost-node-n1"), "node/n1")
    # A user who is new needs a place for the password; one without the role root sets nothing.
    assert "--password-dir" in root.refuses("etcd roles n3 --apply", 2)
    n1 = Ctl(users.node, build, users.as_user("roost-node-n1"))
    assert "permission" in n1.refuses("etcd roles n1 --apply")
    assert "not a valid node name" in root.refuses("etcd roles n1/x", 2)


def test_the_commands_that_are_printed_give_the_same(lab, etcd, build):
    node = lab.node("op")
    ctl = Ctl(node, build, etcd)
    printed = ctl("etcd roles n1").splitlines()
    assert printed[-1].startswith("# Then, ")
    for line in printed[:-1]:
        extra = ["--no-password"] if "user add" in line else []
        etcd.ctl(*line.split()[1:], *extra)
    again = ctl.json("etcd roles n1 --apply")
    assert {row["role"] for row in again} == {"unchanged"}


def test_a_node_writes_nothing_of_another(users):
    n1 = users.as_user("roost-node-n1")
    for key in ("node/n2", "status/node/n2", "host/n2/address/default/10.1.0.1", "spec/n1", "config",
                "pool/web", "removed/n2", "peer/x", "leader/controller", "static-route/x"):
        assert not may(n1, key), key
    controller = users.as_user("roost-controller")
    assert not any(may(controller, key) for key in ("config", "pool/web", "peer/x", "filter/x"))
    assert not may(users.as_user("roost-viewer"), "recovery")
    assert may(users.as_user("roost-operator"), "pool/web", json.dumps({"cidr": "10.1.0.0/16"}))


def test_everything_works_with_these_roles(users, lab, build):
    """Registration, claims, ADD, DEL, static routes, a restart, a removal, roostctl."""
    etcd = users.etcd
    agents = [Agent(lab.node(n), build, users.as_user(f"roost-node-{n}")).start() for n in ("n1", "n2")]
    controller = Controller(lab.node("c1"), build, users.as_user("roost-controller")).start()
    operator = Ctl(users.node, build, users.as_user("roost-operator"))
    for i, agent in enumerate(agents):
        agent.assign(f"c{i}")
        agent.assign(f"d{i}")
        agent.release(f"d{i}")
    operator("route create lan subnet=192.0.2.0/24 gateway=" + etcd.switch.address(agents[1].node))
    wait_until(lambda: "192.0.2.0/24" in agents[0].node.run("ip route").stdout, 20, "the static route")
    assert operator.run("route delete lan --wait --yes").returncode == 0
    agents[0].restart()
    for agent in agents:
        agent.wait_agreed()
        assert "permission" not in agent.log, agent.log
        assert agent.status()["health"] == "ok", agent.status()
    # The controller frees what a removed node had.
    agents[1].kill()
    etcd.delete(f"{PREFIX}status/node/n2")
    assert operator.run("node delete n2 --now --yes").returncode == 0
    wait_until(lambda: [n["name"] for n in operator.json("node list")] == ["n1"], 90, "the removal")
    assert not etcd.dump(f"{PREFIX}host/n2/")
    assert "permission" not in controller.process.log, controller.process.log
    viewer = Ctl(users.node, build, users.as_user("roost-viewer"))
    assert [n["name"] for n in viewer.json("node list")] == ["n1"]
    assert "permission" in viewer.refuses("pool create x cidr=10.9.0.0/16")

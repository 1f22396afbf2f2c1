# SPDX-License-Identifier: Apache-2.0
"""Bad input of every kind: a clear error, nothing given twice, nothing lost.

API bodies, files in /run/roost damaged by hand, records in etcd damaged by hand.
"""

import json
import socket
import threading

import pytest

from lab import wait_until
from lab.agent import PREFIX, RUN, pool, put

KEY = {"network": "pods", "container": "c1", "interface": "eth0"}


# --- the API -------------------------------------------------------------------------------------

ASSIGN = [
    (b"", "JSON"), (b"{", "JSON"), (b"[]", "object"), (b"null", "object"), (b'"x"', "object"),
    (b'{"a":1}{"b":2}', "JSON"), (b'{"network":"pods\x00"}', ""), (b"\xff\xfe{}", ""),
    (b"{" * 5000, ""), (b'{"a":' * 40 + b"1" + b"}" * 40, ""),
    ({}, "network"), ({**KEY, "network": ""}, "network"), ({**KEY, "network": "a/b"}, "network"),
    ({**KEY, "container": "../../etc"}, "container"), ({**KEY, "container": 5}, "container"),
    ({**KEY, "container": "x" * 2000}, "container"), ({**KEY, "interface": "a b"}, "interface"),
    ({**KEY, "interface": "x" * 16}, "interface"), ({**KEY, "interface": ".."}, "interface"),
    ({**KEY, "addresses": "10.1.0.1"}, "addresses"),
    ({**KEY, "addresses": ["10.1.0"]}, "addresses"),
    ({**KEY, "addresses": ["10.1.0.1/24"]}, "addresses"),
    ({**KEY, "addresses": ["10.1.0.1", "10.1.0.2"]}, ""),
    ({**KEY, "addresses": [f"10.1.0.{i}" for i in range(100)]}, "addresses"),
    ({**KEY, "pools": [1]}, "pools"), ({**KEY, "pools": ["A"]}, "pools"),
    ({**KEY, "exclude": ["10.1.0.0/33"]}, "exclude"), ({**KEY, "netns": "relative"}, "netns"),
    ({**KEY, "ranges": [{}]}, "range"), ({**KEY, "ranges": [{"range": "10.5.0.0"}]}, "range"),
    ({**KEY, "ranges": [{"range": "10.5.0.0/24", "start": "10.6.0.1"}]}, "start"),
    ({**KEY, "ranges": [{"range": "10.5.0.0/24", "sliceSize": 20}]}, "sliceSize"),
    ({**KEY, "ranges": [{"range": "10.5.0.0/24"}], "pools": ["web"]}, "pools"),
    ({**KEY, "ranges": [{"range": "10.5.0.0/24", "network": "A B"}]}, "network"),
]


def test_bad_bodies_are_refused_with_their_field(etcd, agents):
    """One agent takes them all, and is as good as before."""
    pool(etcd, cidr="10.1.0.0/24")
    agent = agents().start()
    held = agent.assign("good")
    for body, word in ASSIGN:
        reply = agent.api("POST", "/v1/ipam/assign", body)
        assert (reply.status, reply.body["code"]) == (400, 7), (body, reply)
        assert word in reply.body["error"], (body, reply)
    for path, body in [("release", {}), ("release", {**KEY, "container": []}), ("check", {}),
                       ("check", {**KEY, "addresses": [5]}), ("gc", {}),
                       ("gc", {"network": "pods"}),
                       ("gc", {"network": "pods", "valid": None}),
                       ("gc", {"network": "pods", "valid": [{}]}),
                       ("gc", {"network": "pods", "valid": {"container": "good"}}), ("gc", [])]:
        reply = agent.api("POST", f"/v1/ipam/{path}", body)
        assert (reply.status, reply.body["code"]) == (400, 7), (path, body, reply)
    for method, path, status in [("GET", "/v1/ipam/assign", 405), ("POST", "/v1/status", 405),
                                 ("GET", "/", 404), ("POST", "/v1/ipam/../status", 404),
                                 ("DELETE", "/v1/ipam/list", 405), ("GET", "/v2/status", 404)]:
        reply = agent.api(method, path, b"{}" if method == "POST" else None)
        assert (reply.status, reply.body["code"]) == (status, 7), (method, path, reply)
    assert set(agent.held().values()) == {"good"} and agent.assign("good") == held
    assert "etcd" not in agent.health()


def test_large_bodies_and_many_connections(etcd, agents):
    pool(etcd, cidr="10.1.0.0/24")
    agent = agents().start()
    padded = json.dumps({**KEY, "ignored": "x" * 900_000}).encode()
    assert len(padded) < 1 << 20 and agent.api("POST", "/v1/ipam/assign", padded).status == 200
    for size in 1 << 20, 5 << 20:
        try:
            reply = agent.api("POST", "/v1/ipam/assign", b"{" + b" " * size + b"}")
            assert (reply.status, reply.body["code"]) == (413, 7)
        except OSError:  # it may hang up while we still send
            pass
    # Half requests, silence, and hang-ups: others are served meanwhile.
    idle = []
    for i in range(300):
        s = socket.socket(socket.AF_UNIX)
        s.connect(str(agent.socket))
        if i % 3:
            s.sendall(b"POST /v1/ipam/assign HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n{"[:i])
        idle.append(s)
    assert agent.assign("c1") and agent.assign("c2")
    for s in idle:
        s.close()
    for i in range(50):  # asks, and does not wait for the answer
        s = socket.socket(socket.AF_UNIX)
        s.connect(str(agent.socket))
        body = json.dumps({**KEY, "container": f"gone{i}"}).encode()
        s.sendall(b"POST /v1/ipam/assign HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s"
                  % (len(body), body))
        s.close()
    agent.assign("last")
    agent.wait_agreed()


def test_identical_requests_at_once_get_one_answer(etcd, agents):
    """While they wait for the same block."""
    pool(etcd, cidr="10.1.0.0/24", blockSize=32)
    agent = agents().start()
    etcd.members[0].pause()
    got = []
    threads = [threading.Thread(target=lambda: got.append(agent.assign("same"))) for _ in range(8)]
    for t in threads:
        t.start()
    etcd.members[0].resume()
    for t in threads:
        t.join(20)
    assert len(got) == 8 and len({tuple(g) for g in got}) == 1 and len(agent.held()) == 1
    agent.wait_agreed()


def test_a_del_overtakes_its_waiting_add(etcd, agents):
    pool(etcd, cidr="10.1.0.0/24", blockSize=32)
    agent = agents().start()
    etcd.members[0].pause()
    got = []
    t = threading.Thread(target=lambda: got.append(agent.refuses("a")))
    t.start()
    wait_until(lambda: agent.release("a") == [] and got, 10, "the ADD to be cancelled")
    t.join(10)
    assert got[0].code == 11 and "DEL" in got[0].text
    etcd.members[0].resume()
    assert agent.held() == {}
    agent.wait_ready()
    agent.wait_agreed()


# --- files ---------------------------------------------------------------------------------------


def truncated(path):
    path.write_text(path.read_text()[:40])


def garbage(path):
    path.write_bytes(b"\x00\xff\x13garbage" * 50)


def empty(path):
    path.write_text("")


def of_another_version(path):
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": 99}))


def renamed(path):
    path.rename(path.with_name("f" * len(path.name)))


def huge(path):
    path.write_text(" " * 200_000)


@pytest.mark.parametrize("damage", [truncated, garbage, empty, of_another_version, renamed,
                                    huge], ids=lambda f: f.__name__)
def test_a_damaged_attachment_is_not_given_again(etcd, agents, damage):
    """etcd still tells that the address is in use; without etcd nothing is given."""
    pool(etcd, cidr="10.1.0.0/29", blockSize=29)
    agent = agents().start()
    given = {c: agent.assign(c)[0] for c in "abc"}
    agent.wait_agreed()
    agent.kill()
    victim = next(p for p in agent.node.path(f"{RUN}/attachments").iterdir()
                  if json.loads(p.read_text())["container"] == "a")
    damage(victim)
    etcd.stop()
    agent.spawn()
    wait_until(lambda: "damaged" in agent.status()["reason"], 10, errors=OSError)
    assert agent.refuses("d").code == 11
    etcd.start()
    agent.wait_ready()
    assert any("attachments/" in part for part in agent.health()), agent.health()
    assert agent.held()[given["a"]] == "a"
    more = {agent.assign(f"m{i}")[0] for i in range(5)}
    assert len(more) == 5 and not more & set(given.values())
    assert agent.assign("a") == [given["a"]]  # its runtime still knows it
    assert agent.release("a") == [given["a"]]
    agent.restart()
    assert given["a"] not in agent.held()
    if damage is not renamed:
        agent.wait_agreed()
        assert not any("attachments/" in part for part in agent.health())


def test_damaged_block_records_and_node_files(etcd, agents):
    """All of it is in etcd too: told, and put right."""
    pool(etcd, cidr="10.1.0.0/24", blockSize=28)
    agent = agents().start()
    held = {agent.assign(c)[0]: c for c in "ab"}
    agent.wait_agreed()
    agent.kill()
    (block,) = agent.node.path(f"{RUN}/blocks/default").iterdir()
    for path in block, agent.node.path(f"{RUN}/records"), agent.node.path(f"{RUN}/node"):
        path.write_text("{damaged")
    agent.node.write(f"{RUN}/blocks/default/not-a-block", "{}")
    agent.node.write(f"{RUN}/blocks/x", "a file where a folder should be")
    agent.start()
    for name in f"blocks/default/{block.name}", "blocks/default/not-a-block", f"{RUN}/records":
        assert name in agent.log, name
    assert agent.held() == held
    agent.assign("c")
    agent.node.path(f"{RUN}/blocks/default/not-a-block").unlink()
    agent.node.path(f"{RUN}/blocks/x").unlink()
    agent.restart().wait_agreed()


@pytest.mark.parametrize("what", ["attachments", "attachments/*", "blocks", "blocks/*", "spool",
                                  "agent.sock", "*"])
def test_folders_removed_under_a_living_agent_are_restored(etcd, agents, what):
    pool(etcd, cidr="10.1.0.0/24", blockSize=28)
    agent = agents().start()
    held = {agent.assign(c)[0]: c for c in "abc"}
    agent.wait_agreed()
    # rm may well find a folder filled again before it could remove it.
    agent.node.run(["sh", "-c", f"cd {RUN} && rm -rf {what}"], check=False)
    agent.wait_agreed()
    held.update({agent.assign("d")[0]: "d"})
    agent.release("a")
    held = {a: c for a, c in held.items() if c != "a"}
    agent.wait_agreed()
    agent.restart()
    assert agent.held() == held
    agent.wait_agreed()
    agent.stop()
    agent.plugin("DEL", "b")
    agent.start()
    assert "b" not in agent.held().values()


def test_a_file_system_that_is_full(etcd, agents):
    """An address that cannot be written down is not given."""
    pool(etcd, cidr="10.1.0.0/29", blockSize=29)
    agent = agents("--run-dir", "/run/small")
    agent.node.run("mkdir /run/small")
    agent.node.run("mount -t tmpfs -o mode=755,size=64k,nr_inodes=15 none /run/small")
    agent.start()
    given = []
    for i in range(20):
        reply = agent.api("POST", "/v1/ipam/assign", {**KEY, "container": f"c{i}"})
        if reply.status != 200:
            break
        given += [reply.body["addresses"][0]["address"]]
    assert (reply.status, reply.body["code"]) == (500, 5) and "file" in reply.body["error"]
    assert 0 < len(given) == len(set(given)) == len(agent.held())
    assert agent.release("c0") == given[:1]
    assert agent.assign("again")


def test_an_address_in_use_stays_so_when_its_file_cannot_be_written_again(etcd, agents):
    """Known by etcd alone, taken over by a repeated ADD that fails: still nobody else's."""
    pool(etcd, cidr="10.1.0.0/32", blockSize=32)
    agent = agents().start()
    address, = agent.assign("a")
    agent.wait_agreed()
    agent.kill()
    file, = (p for p in agent.node.path(f"{RUN}/attachments").iterdir() if p.name[0] != ".")
    file.unlink()
    file.mkdir()  # nothing can be renamed over it
    agent.start()
    for _ in range(2):  # not at the second time either: nobody is told of what is not written
        reply = agent.api("POST", "/v1/ipam/assign", {**KEY, "container": "a"})
        assert (reply.status, reply.body["code"]) == (500, 5)
        assert agent.held() == {address: "a"}
    assert agent.refuses("b").code == 100
    file.rmdir()
    assert agent.assign("a") == [address]
    agent.wait_agreed()


# --- records in etcd -----------------------------------------------------------------------------


DAMAGE = ["", "{", "[]", '{"node":5}', "\x01\x02", "null", '{"pool":{}}', "x" * 5000]


def test_damaged_own_keys_are_written_again(etcd, agents):
    """Index, address and node record: the agent knows better."""
    pool(etcd, cidr="10.1.0.0/24", blockSize=28)
    agent = agents().start()
    address, = agent.assign("a")
    agent.wait_agreed()
    (block,) = agent.keys("ipv4/block")
    for key in (f"host/n1/ipv4/block/{block}", f"host/n1/address/default/{address}", "node/n1"):
        good = json.loads(etcd.get(PREFIX + key))
        # Who damages the node's record again and again meets a pause of the registration.
        for value in DAMAGE[:1] if key == "node/n1" else DAMAGE:
            etcd.put(PREFIX + key, value)
            wait_until(lambda: etcd.get(PREFIX + key) != value, 5, f"{key} after {value!r}")
            again = json.loads(etcd.get(PREFIX + key))
            assert {**again, "claimed": 0} == {**good, "claimed": 0}
            assert agent.assign("a") == [address]
    agent.wait_agreed()
    wait_until(lambda: agent.health() == {}, 5, "everything to be well")
    agent.assign("b")
    agent.wait_agreed()


def test_keys_that_do_not_belong_there_go(etcd, agents):
    """Address keys of nobody, of another boot, and index keys of blocks that are not ours."""
    pool(etcd, cidr="10.1.0.0/24", blockSize=28)
    agent = agents().start()
    agent.assign("a")
    agent.wait_agreed()
    put(etcd, "host/n1/address/default/10.1.0.200", container="x", interface="eth0", boot="old")
    put(etcd, "host/n1/address/default/10.1.0.201", container="y", interface="eth0",
        boot=agent.node.boot_id)
    put(etcd, "host/n1/ipv4/block/default/10.1.0.240-28", pool="web")
    put(etcd, "host/n1/nonsense/x", a=1)
    agent.wait_agreed()
    assert etcd.get(PREFIX + "host/n1/nonsense/x")  # not ours: left alone
    assert set(agent.held().values()) == {"a"}


@pytest.mark.parametrize("value", ["{", '{"node":5}', '{"node":"n1","pool":"BAD!"}'])
def test_a_damaged_block_serves_nothing_and_loses_nothing(etcd, agents, value):
    pool(etcd, cidr="10.1.0.0/28", blockSize=28)
    agent, other = agents("--minute", "100").start(), agents().start()
    address, = agent.assign("a")
    agent.wait_agreed()
    key = "block/default/10.1.0.0-28"
    etcd.put(PREFIX + key, value)
    reason = agent.wait_health(key)
    assert key in reason
    assert agent.refuses("b").code in (11, 100) and other.refuses("b").code == 100
    assert agent.assign("a") == [address]
    agent.restart()
    assert agent.held() == {address: "a"} and agent.refuses("b").code in (11, 100)
    etcd.delete(PREFIX + key)
    agent.wait_well(key)
    assert agent.assign("b") and agent.held()[address] == "a"
    agent.wait_agreed()


@pytest.mark.parametrize("value", ["{", '{"cidr":"10.9.0.0/24","blockSize":99}', "[]"])
def test_a_damaged_extent_cuts_nothing_anew(etcd, agents, value):
    """Who knew it goes on; who does not refuses the pool."""
    pool(etcd, cidr="10.1.0.0/24", blockSize=28)
    agent = agents().start()
    given = {agent.assign("a")[0]}
    agent.wait_agreed()
    good = etcd.get(PREFIX + "extent/default/web")
    etcd.put(PREFIX + "extent/default/web", value)
    agent.wait_health("extent/default/web", "extent/default/web")
    pool(etcd, cidr="10.1.0.0/24", blockSize=30)
    given |= {agent.assign(f"c{i}")[0] for i in range(40)}
    assert len(given) == 41 and {b[-3:] for b in agent.blocks()} == {"/28"}
    agent.restart()
    assert set(agent.held()) == given and agent.assign("after")
    agent.wait_health("extent/default/web")
    other = agents().start()
    assert "extent/default/web" in other.wait_health("pool/web", "extent")
    assert other.refuses("x").code == 100 and other.blocks() == {}
    etcd.put(PREFIX + "extent/default/web", good)
    other.wait_well("extent/default/web"), agent.wait_well("extent/default/web")
    assert other.assign("x")[0] not in agent.held()
    assert {b[-3:] for b in other.blocks()} == {"/28"}
    agent.wait_agreed(), other.wait_agreed()


def test_damaged_config_and_labels_change_nothing(etcd, agents):
    pool(etcd, cidr="10.1.0.0/24", nodeSelector="zone == 'a'")
    put(etcd, "config", reclaimAfter=900)
    put(etcd, "spec/n1", labels={"zone": "a"})
    agent = agents().start()
    agent.assign("a")
    for key, words in ("config", "reclaimAfter"), ("spec/n1", "labels"):
        etcd.put(PREFIX + key, json.dumps({"reclaimAfter": "x", "labels": 5}))
        assert words in agent.wait_health(key, words)
    agent.assign("b")
    agent.restart()
    agent.assign("c")
    for key in "config", "spec/n1":
        assert key in agent.health()
        etcd.delete(PREFIX + key)
        agent.wait_well(key)
    assert agent.refuses("d").code == 100  # a label that is really gone
    agent.wait_agreed()


def test_a_reboot_adopts_blocks_by_damaged_indexes(etcd, agents):
    """Nothing but the index says which blocks are ours, and its value is not needed for that."""
    pool(etcd, cidr="10.1.0.0/28", blockSize=28)
    agent = agents().start()
    agent.assign("a")
    agent.wait_agreed()
    agent.kill()
    agent.node.reboot()
    etcd.put(PREFIX + "host/n1/ipv4/block/default/10.1.0.0-28", "{")
    etcd.put(PREFIX + "host/n1/address/default/10.1.0.9", "{")
    agent.start()
    assert len({agent.assign(f"c{i}")[0] for i in range(16)}) == 16
    agent.wait_agreed()
    assert "host/n1/ipv4/block/default/10.1.0.0-28" in agent.log

# SPDX-License-Identifier: Apache-2.0
"""The store against a real etcd: every request it can make, every trouble it must outlive.

etcd silently ignores a field it does not know, so no unit test can prove an encoder: here
each is seen to have its effect, and each compare to be true and false where it should be.
"""

import base64
import operator
import os
import signal
import time

import pytest

from lab import wait_until
from lab.tls import Authority


@pytest.fixture
def etcd(lab):
    return lab.etcd(unix=True)


@pytest.fixture
def store(etcd, store_driver):
    """A store on one member's unix socket."""
    return store_driver(flags=["--etcd", f"unix://{etcd.members[0].socket}"])


@pytest.fixture
def cluster(lab):
    """Three members, and a client's node on their switch."""
    etcd = lab.etcd(members=3)
    etcd.client = lab.node("client")
    etcd.join(etcd.client)
    return etcd


def put_raw(etcd, key, value=b"x"):
    """Put a key of any bytes."""
    etcd.call("/v3/kv/put", {"key": base64.b64encode(key).decode(),
                             "value": base64.b64encode(value).decode()})


def in_use(etcd, store):
    """The member that the store speaks with."""
    url = store.stats()["endpoint"]
    return next(m for m in etcd.members if m.url == url)


# --- transactions --------------------------------------------------------------------------------


RELATIONS = {"=": operator.eq, "!=": operator.ne, ">": operator.gt, "<": operator.lt}


def holds(store, **compare):
    """Whether etcd finds a compare true; both branches tell."""
    reply = store.txn([compare], success=[{"get": "/yes"}], failure=[{"get": "/no"}]).must()
    return reply.succeeded


def test_compares_are_what_they_say(store):
    """Each target and relation, below, at and above what etcd holds."""
    store.call("grant", lease=77, ttl=60).must()
    for i in range(10):  # so that no two of the numbers are alike
        store.call("put", key="/other", value=str(i)).must()
    for value in "klm":
        store.call("put", key="/a", value=value, lease=77).must()
    a = store.call("get", key="/a").kvs[0]
    assert a["version"] == 3 and a["create"] == 12 and a["mod"] == 14 and a["lease"] == 77
    wrong = []
    for target in "version", "create", "mod", "lease":
        for relation, expected in RELATIONS.items():
            for number in a[target] - 1, a[target], a[target] + 1:
                compare = {"key": "/a", "target": target, "relation": relation, "number": number}
                if holds(store, **compare) != expected(a[target], number):
                    wrong.append(compare)
    for relation, expected in RELATIONS.items():
        for value in "", "l", "m", "mm", "n":
            compare = {"key": "/a", "target": "value", "relation": relation, "value": value}
            if holds(store, **compare) != expected("m", value):
                wrong.append(compare)
    assert not wrong


def test_an_absent_key_compares_as_zero_and_never_by_value(store):
    wrong = []
    for target in "version", "create", "mod", "lease":
        for relation, expected in RELATIONS.items():
            for number in 0, 1:
                compare = {"key": "/none", "target": target, "relation": relation, "number": number}
                if holds(store, **compare) != expected(0, number):
                    wrong.append(compare)
    for relation in RELATIONS:
        for value in "", "x":
            compare = {"key": "/none", "target": "value", "relation": relation, "value": value}
            if holds(store, **compare):
                wrong.append(compare)
    assert not wrong


def test_a_range_compare_must_hold_for_every_key(store):
    for key in "/r/a", "/r/b", "/r/c":
        store.call("put", key=key, value="same").must()
    store.call("put", key="/r/c", value="same").must()
    whole = {"key": "/r/", "range_end": "/r0"}
    assert holds(store, **whole, target="value", value="same")
    assert holds(store, **whole, target="version", relation=">", number=0)
    assert not holds(store, **whole, target="version", number=1)
    assert holds(store, key="/r/", range_end="/r/c", target="version", number=1)
    # an empty range is like one absent key, so that "nobody there" can be said
    nobody = {"key": "/s/", "range_end": "/s0"}
    assert holds(store, **nobody, target="create", number=0)
    assert not holds(store, **nobody, target="create", relation=">", number=0)


def test_a_put_keeps_or_loses_lease_and_value_as_told(store):
    store.call("grant", lease=5, ttl=60).must()

    def after(**put):
        store.txn(success=[{"put": "/a", **put}]).must()
        kv = store.call("get", key="/a").kvs[0]
        return kv["value"], kv["lease"]
    assert after(value="1", lease=5) == ("1", 5)
    assert after(value="2", keep_lease=True) == ("2", 5)
    assert after(keep_value=True, keep_lease=True) == ("2", 5)
    assert after(keep_value=True) == ("2", 0)
    assert after(value="3", lease=5) == ("3", 5)
    assert after(value="4") == ("4", 0)
    assert after(keep_value=True, lease=5) == ("4", 5)
    assert after(value="") == ("", 0)
    assert store.call("get", key="/a").kvs[0]["version"] == 8
    for keep in "keep_value", "keep_lease":
        reply = store.txn(success=[{"put": "/none", keep: True}])
        assert reply.err == "EINVAL" and "key not found" in reply.text and not reply.unknown
    reply = store.txn(success=[{"put": "/a", "value": "5", "lease": 6}])
    assert reply.err == "ENOENT" and "lease not found" in reply.text


def test_a_get_takes_its_options(store):
    for key in "b", "c", "a", "d":
        store.call("put", key=f"/g/{key}", value=f"value of {key}").must()

    def get(**options):
        op = store.txn(success=[{"get": "/g/", "range_end": "/g0", **options}]).must().ops[0]
        return op["count"], [(kv["key"][3:], kv["value"]) for kv in op["kvs"]]
    everything = [(k, f"value of {k}") for k in "abcd"]
    assert get() == (4, everything)
    assert get(limit=2) == (4, everything[:2])
    assert get(keys_only=True) == (4, [(k, "") for k in "abcd"])
    assert get(count_only=True) == (4, [])
    assert get(newest_first=True) == (4, [(k, f"value of {k}") for k in "dacb"])
    assert get(newest_first=True, limit=1, keys_only=True) == (4, [("d", "")])
    assert store.call("get", key="/g/").kvs == []
    kv = store.call("get", key="/g/b").kvs[0]
    assert (kv["key"], kv["value"], kv["version"], kv["lease"]) == ("/g/b", "value of b", 1, 0)
    assert kv["create"] == kv["mod"] == 2


def test_a_delete_takes_one_key_or_a_range(store, etcd):
    for key in "/d/a", "/d/b", "/d/c", "/e":
        store.call("put", key=key, value="x").must()
    assert store.call("delete", key="/d/").must().ops[0]["count"] == 0
    assert store.call("delete", key="/d/a").must().ops[0]["count"] == 1
    assert store.call("delete", key="/d/", range_end="/d0").must().ops[0]["count"] == 2
    assert list(etcd.dump()) == ["/e"]


def test_a_branch_is_taken_whole_and_in_order(store, etcd):
    reply = store.txn([{"key": "/a", "target": "version", "number": 0}],
                      success=[{"put": "/a", "value": "1"}, {"get": "/a"}, {"delete": "/b"},
                               {"get": "/", "range_end": "0", "count_only": True}],
                      failure=[{"get": "/a"}]).must()
    assert reply.succeeded and [len(op["kvs"]) for op in reply.ops] == [0, 1, 0, 0]
    assert reply.ops[1]["kvs"][0]["value"] == "1" and reply.ops[3]["count"] == 1
    reply = store.txn([{"key": "/a", "target": "version", "number": 0}],
                      success=[{"put": "/a", "value": "2"}], failure=[{"get": "/a"}]).must()
    assert not reply.succeeded and reply.ops[0]["kvs"][0]["value"] == "1"
    assert etcd.dump() == {"/a": "1"} and reply.revision == etcd.revision() == 2


def test_limits_of_a_transaction(store, etcd):
    puts = [{"put": f"/{i:03}", "value": "x"} for i in range(129)]
    compares = [{"key": f"/{i:03}", "target": "version", "number": 0} for i in range(129)]
    gets = [{"get": "/000"}] * 129
    reply = store.txn(compares[:128], puts[:128], gets[:128]).must()
    assert reply.succeeded and len(reply.ops) == 128 and len(etcd.list()) == 128
    assert store.txn(compares, puts[:1]).err == "EINVAL"
    assert store.txn([], puts).err == "EINVAL"
    assert store.txn([], [], gets).err == "EINVAL"
    for twice in ([{"put": "/a", "value": "1"}, {"put": "/a", "value": "2"}],
                  [{"put": "/a", "value": "1"}, {"delete": "/a"}]):
        reply = store.txn([], twice)
        assert reply.err == "EINVAL" and "duplicate key" in reply.text and not reply.unknown


def test_big_values_go_through_and_too_big_ones_do_not(store):
    watch = store.watch("/big")
    watch.wait_sync()
    big = "0123456789abcdef" * 65536  # 1 MiB
    store.call("put", key="/big", value=big).must()
    watch.wait_key("/big", big)
    assert store.call("get", key="/big").kvs[0]["value"] == big
    # etcd itself says no above 1.5 MiB, gRPC above 2 MiB, in other words
    for text in big + big[:600000], big * 3:
        reply = store.call("put", key="/big", value=text)
        assert reply.err == "E2BIG" and not reply.unknown, reply.text
    assert store.call("get", key="/big").must().kvs[0]["version"] == 1


# --- leases --------------------------------------------------------------------------------------


def test_leases(store, etcd):
    reply = store.call("grant", lease=1234, ttl=60).must()
    assert (reply.lease, reply.ttl) == (1234, 60)
    reply = store.call("grant", lease=1234, ttl=60)
    assert reply.err == "EEXIST" and not reply.unknown
    largest = store.call("grant", lease=2**63 - 1, ttl=60).must()
    assert largest.lease == 2**63 - 1
    chosen = {store.call("grant", ttl=60).must().lease for _ in range(3)}
    assert len(chosen) == 3 and min(chosen) > 0
    reply = store.call("keepalive", lease=1234).must()
    assert (reply.lease, reply.ttl) == (1234, 60)
    store.call("put", key="/a", value="1", lease=1234).must()
    watch = store.watch("/")
    watch.wait_sync()
    store.call("revoke", lease=1234).must()
    watch.wait_gone("/a")
    reply = store.call("keepalive", lease=1234).must()
    assert (reply.lease, reply.ttl) == (1234, 0)
    assert store.call("revoke", lease=1234).err == "ENOENT"
    assert etcd.get("/a") is None


def test_a_lease_that_runs_out_takes_its_keys(store):
    store.call("grant", lease=9, ttl=1).must()
    store.call("put", key="/a", value="1", lease=9).must()
    watch = store.watch("/")
    watch.wait_sync()
    watch.wait_gone("/a", 10)
    assert store.call("keepalive", lease=9).must().ttl == 0


# --- lists ---------------------------------------------------------------------------------------


def test_lists_page_through_anything(store, etcd):
    """2,400 keys are three pages. The last key of the first page holds a NUL byte."""
    keys = [f"/p/{i:05}" for i in range(2400)]
    for i in range(0, len(keys), 128):  # one by one: all at once would be too much for 1.5 s each
        store.txn(success=[{"put": k, "value": k} for k in keys[i:i + 128]], repeatable=True).must()
    put_raw(etcd, b"/p/00998\0\xff")
    put_raw(etcd, b"/p/zzz\0")
    put_raw(etcd, b"/p/\xff\xfe")  # no text, but a key that a C string can hold
    odd = "/p/\udcff\udcfe"
    reply = store.call("list", key="/p/").must()
    assert [kv["key"] for kv in reply.kvs] == keys + [odd]
    assert [kv["value"] for kv in reply.kvs[:-1]] == keys
    assert [len(p["ops"][0]["kvs"]) for p in reply.pages] == [999, 1000, 402]
    assert len({p["revision"] for p in reply.pages}) == 1
    assert [p["ops"][0]["count"] for p in reply.pages][0] == 2403
    assert store.call("list", key="/p/", quiet=True).must()["keys"] == 2401

    watch = store.watch("/p/")
    assert watch.wait_sync().puts == 2401
    put_raw(etcd, b"/p/00998\0\xff", b"again")
    put_raw(etcd, b"/p/\xff\xfe", b"again")
    watch.wait_key(odd, "again")
    etcd.call("/v3/kv/deleterange", {"key": base64.b64encode(b"/p/zzz\0").decode()})
    etcd.put("/p/00000", "last")
    watch.wait_key("/p/00000", "last")
    assert len(watch.events) == 2403 and len(watch.syncs) == 1
    watch.check()


def test_an_empty_list_is_one_empty_page(store):
    reply = store.call("list", key="/nothing/").must()
    assert reply.kvs == [] and len(reply.pages) == 1 and reply.revision == 1


# --- watches -------------------------------------------------------------------------------------


def test_watches_see_what_is_theirs(store, etcd):
    etcd.put("/a/1", "old")
    a, b = store.watch("/a/"), store.watch("/b/")
    a.wait_sync(), b.wait_sync()
    store.wait_notice("watching")
    etcd.put("/a/2", "new")
    etcd.delete("/a/1")
    etcd.put("/b/1", "other")
    etcd.put("/c/1", "nobody's")
    etcd.call("/v3/kv/txn", {"success": [
        {"request_put": {"key": base64.b64encode(k).decode(), "value": "eA=="}}
        for k in (b"/a/3", b"/b/3", b"/a/4")]})
    a.wait_key("/a/4", "x"), b.wait_key("/b/3", "x")
    assert [(e.kind, e.key, e.revision) for e in a.events] == [
        ("put", "/a/1", 2), ("put", "/a/2", 3), ("deleted", "/a/1", 4),
        ("put", "/a/3", 7), ("put", "/a/4", 7)]
    assert [(e.kind, e.key) for e in b.events] == [("put", "/b/1"), ("put", "/b/3")]

    a.end()  # the others go on, without listing anew
    store.stats()  # commands are worked off in order: it has ended
    etcd.put("/a/5", "unseen")
    etcd.put("/b/5", "seen")
    b.wait_key("/b/5", "seen")
    assert "/a/5" not in a.state and len(b.syncs) == 1
    c = store.watch("/c/")
    c.wait_key("/c/1", "nobody's")
    etcd.put("/b/6", "seen too")
    b.wait_key("/b/6", "seen too")
    for w in a, b, c:
        w.check()


# --- TLS -----------------------------------------------------------------------------------------


def test_tls_with_certificates_of_both_sides(lab, store_driver):
    etcd = lab.etcd(tls=True)
    node = lab.node("client")
    etcd.join(node)
    store = store_driver(etcd, node)
    watch = store.watch("/")
    watch.wait_sync()
    store.call("put", key="/a", value="1").must()
    watch.wait_key("/a", "1")

    def refused(name, cacert, *certificate):
        s = store_driver(node=node, name=name,
                         flags=["--etcd", etcd.endpoints, "--cacert", cacert, *certificate])
        s.watch("/")
        # An attempt started just before the call's end times out, whatever is wrong.
        reply = wait_until(lambda: (r := s.call("get", key="/a", timeout=500)).err == "ENOTCONN" and r,
                           10, "ENOTCONN")
        assert reply.seconds < 2
        return f"{reply.text}\n{s.wait_notice('trouble').text}".lower()
    ours = ["--cert", etcd.client_certificate.cert, "--key", etcd.client_certificate.key]
    other = Authority(lab, "other")
    assert refused("wrong-ca", other.cert, *ours).count("certificate") >= 2
    assert "none.crt" in refused("no-ca", lab.dir / "none.crt", *ours)
    # With TLS 1.3 the server refuses our certificate after the handshake; whether its reason or
    # just the broken connection is seen depends on the moment.
    refused("no-cert", etcd.authority.cert)
    foreign = other.issue("foreign", usage="clientAuth")
    refused("foreign-cert", etcd.authority.cert, "--cert", foreign.cert, "--key", foreign.key)


# --- users ---------------------------------------------------------------------------------------


@pytest.fixture
def guarded(lab):
    """etcd with users; the store's may do everything below /roost/ only."""
    etcd = lab.etcd(auth=True)
    etcd.client = lab.node("client")
    etcd.join(etcd.client)
    return etcd


def test_a_user_logs_in_once_and_may_do_what_it_may(guarded, store_driver):
    store = store_driver(guarded, guarded.client)
    watch = store.watch("/roost/")
    calls = [store.start("put", key=f"/roost/{i}", value="1") for i in range(20)]
    for c in calls:
        c.wait().must()
    watch.wait_state({f"/roost/{i}": "1" for i in range(20)})
    assert store.stats()["logins"] == 1
    for args in {"op": "put", "key": "/other", "value": "1"}, {"op": "get", "key": "/other"}:
        reply = store.call(**args)
        assert reply.err == "EACCES" and "permission denied" in reply.text and not reply.unknown
    denied = store.watch("/other/")
    assert "permission denied" in store.wait_notice("trouble").text
    assert not denied.syncs
    watch.check()


def test_a_wrong_password_is_said(guarded, store_driver, lab):
    wrong = lab.dir / "wrong"
    wrong.write_text("wrong\n")
    store = store_driver(node=guarded.client, flags=[
        "--etcd", guarded.endpoints, "--user", "roost", "--password-file", wrong])
    store.watch("/roost/")
    reply = store.call("put", key="/roost/a", value="1")
    assert reply.err == "EKEYREJECTED" and not reply.unknown and reply.seconds < 2
    assert 'login as "roost"' in reply.text and "invalid user ID or password" in reply.text
    assert "invalid user ID or password" in store.wait_notice("trouble").text
    assert guarded.get("/roost/a") is None


def test_without_a_login_a_guarded_etcd_says_so(guarded, store_driver):
    store = store_driver(node=guarded.client, flags=["--etcd", guarded.endpoints])
    reply = store.call("get", key="/roost/a")
    assert reply.err == "EKEYREJECTED" and "user name is empty" in reply.text


def forget_tokens(etcd):
    """Authentication off and on again: every simple token is void."""
    etcd.call("/v3/auth/disable", {})
    for m in etcd.members:
        etcd._tokens.pop(m, None)
    etcd.members[0].gateway.request("/v3/auth/enable", {})


def test_a_token_that_etcd_forgot_is_renewed_without_a_word(guarded, store_driver):
    store = store_driver(guarded, guarded.client)
    watch = store.watch("/roost/")
    watch.wait_sync()
    store.call("put", key="/roost/a", value="1").must()
    forget_tokens(guarded)
    calls = [store.start("get", key="/roost/a") for _ in range(5)]
    assert [c.wait().must().kvs[0]["value"] for c in calls] == ["1"] * 5
    # Not one for each that noticed, though a late one may log in again.
    assert 2 <= store.stats()["logins"] <= 5
    # A stream stays when its token goes; a new one must log in again.
    watch.wait_key("/roost/a", "1")
    logins = store.stats()["logins"]
    forget_tokens(guarded)
    guarded.members[0].restart("kill")
    guarded.put("/roost/a", "2")
    watch.wait_key("/roost/a", "2")
    assert store.stats()["logins"] > logins
    # The lab's own put may be applied twice while the member restarts.
    assert sorted(set(watch.of("/roost/a"))) == [("put", "1"), ("put", "2")]
    watch.check()


def test_a_changed_password_of_a_running_store_is_told(guarded, store_driver):
    store = store_driver(guarded, guarded.client)
    store.call("put", key="/roost/a", value="1").must()
    guarded.call("/v3/auth/user/changepw", {"name": "roost", "password": "changed"})
    reply = store.call("put", key="/roost/a", value="2")
    assert reply.err == "EKEYREJECTED" and "invalid user ID or password" in reply.text


def test_waiting_for_a_login_counts_as_waiting(lab, store_driver):
    """A member that does not answer the login takes no longer than the call's own time."""
    etcd = lab.etcd(members=3, auth=True)
    node = lab.node("client")
    etcd.join(node)
    etcd.members[0].pause()
    store = store_driver(etcd, node)
    reply = store.call("get", key="/roost/a", timeout=1000)
    assert reply.err == "ETIMEDOUT" and reply.seconds < 2
    etcd.members[0].resume()
    store.call("get", key="/roost/a").must()


# --- members come and go -------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["kill", "stop", "pause"])
def test_calls_go_on_when_the_member_in_use_goes(cluster, store_driver, how):
    leader = cluster.leader()  # the worst case: there is an election too
    urls = [leader.url, *(m.url for m in cluster.members if m is not leader)]
    store = store_driver(node=cluster.client, flags=["--etcd", ",".join(urls)])
    watch = store.watch("/")
    watch.wait_sync()
    store.call("put", key="/before", value="1").must()
    watch.wait_key("/before", "1")
    assert in_use(cluster, store) is leader
    getattr(leader, how)()
    # Put again and again, as a user would: no call fails, none takes longer than fail-over and
    # an election.
    slowest = 0
    for i in range(30):
        reply = store.call("put", key=f"/during/{i}", value="1").must()
        slowest = max(slowest, reply.seconds)
    print(f"fail-over after {how}: slowest call {slowest:.2f} s")
    assert slowest < 6
    for m in cluster.members:
        if m.paused:
            m.resume()
        elif not m.alive:
            m.start()
    store.call("put", key="/after", value="1").must()
    keys = {"/before", "/after", *(f"/during/{i}" for i in range(30))}
    watch.wait_state(dict.fromkeys(keys, "1"))
    watch.check()
    assert len(watch.events) == len(keys) or how == "pause"  # a put repeated raises the revision
    assert len(watch.syncs) == 1, "nothing was compacted, so nothing had to be listed anew"


def test_without_a_quorum_calls_fail_soon_and_recover(cluster, store_driver):
    store = store_driver(cluster, cluster.client)
    watch = store.watch("/")
    watch.wait_sync()
    store.call("put", key="/a", value="1").must()
    dead = cluster.members[1:]
    for m in dead:
        m.kill()
    cluster.members[0].process.wait_log("lost|elect|no leader|overloaded|dial", 10)
    reply = wait_until(lambda: (r := store.call("put", key="/a", value="2", timeout=1000)).err and r,
                       10, "a failing put")
    assert reply.err in ("EAGAIN", "ETIMEDOUT", "ENOTCONN") and reply.seconds < 2.5, reply
    txn = store.txn(success=[{"put": "/b", "value": "1"}], timeout=1000)
    assert txn.err and txn.seconds < 2.5
    store.wait_notice("trouble", timeout=20)
    for m in dead:
        m.launch()
    began = time.monotonic()
    assert store.call("put", key="/a", value="3", timeout=20000).must()
    watch.wait_key("/a", "3")
    print(f"writes again {time.monotonic() - began:.2f} s after the members' start")
    watch.check()


@pytest.mark.limit(60)
@pytest.mark.slow(25)
def test_a_silent_stream_is_noticed(cluster, store_driver):
    """SIGSTOP: the connection stays, nothing comes. One store just watches; another also calls,
    so that it notices sooner."""
    quiet, busy = (store_driver(cluster, cluster.client, name=n) for n in ("quiet", "busy"))
    watches = [s.watch("/") for s in (quiet, busy)]
    for s, w in zip((quiet, busy), watches):
        w.wait_sync()
        s.wait_notice("watching")
    member = in_use(cluster, quiet)
    assert in_use(cluster, busy) is member
    member.pause()
    began = time.monotonic()
    cluster.put("/a", "1")
    busy.call("get", key="/a", timeout=20000).must()
    watches[1].wait_key("/a", "1", 40)
    print(f"silent stream noticed after {time.monotonic() - began:.1f} s, with calls")
    watches[0].wait_key("/a", "1", 40)
    took = time.monotonic() - began
    print(f"silent stream noticed after {took:.1f} s, without calls")
    assert took < 35
    for w in watches:
        w.check()
        assert len(w.events) == 1


# --- the past is gone ----------------------------------------------------------------------------


def test_after_a_compaction_the_difference_is_delivered(lab, store_driver):
    etcd = lab.etcd()
    node = lab.node("client")
    etcd.join(node)
    for key in "kept", "changed", "deleted", "replaced":
        etcd.put(f"/{key}", "1")
    store = store_driver(etcd, node)
    watch = store.watch("/")
    watch.wait_sync()
    store.wait_notice("watching")
    # The stream breaks, and etcd is back before the client can reach it again.
    etcd.switch.cut(node)
    etcd.members[0].restart("kill")
    for key in "changed", "new", "changed":
        etcd.put(f"/{key}", "2")
    etcd.delete("/deleted")
    etcd.delete("/replaced")
    etcd.put("/replaced", "2")
    etcd.put("/brief", "2")
    etcd.delete("/brief")
    etcd.compact()
    etcd.put("/late", "2")
    before = len(watch.events)
    etcd.switch.restore(node)
    watch.wait_sync(2)
    store.wait_notice("watching", 2)
    assert {(e.kind, e.key) for e in watch.events[before:]} == {
        ("put", "/changed"), ("put", "/new"), ("put", "/replaced"), ("put", "/late"),
        ("deleted", "/deleted")}
    assert watch.state == etcd.dump()
    etcd.put("/then", "3")
    watch.wait_key("/then", "3")
    assert len(watch.events) == before + 6
    watch.check()


@pytest.mark.parametrize("new_id", [True, False], ids=["another-cluster-id", "the-same-id"])
def test_an_etcd_that_was_wiped_is_listed_anew(lab, store_driver, new_id):
    etcd = lab.etcd(unix=True)
    store = store_driver(flags=["--etcd", f"unix://{etcd.members[0].socket}"])
    for i in range(5):
        etcd.put("/gone", str(i))
    etcd.put("/same", "1")
    watch = store.watch("/")
    watch.wait_state({"/gone": "4", "/same": "1"})
    store.wait_notice("watching")
    etcd.wipe(new_id=new_id)
    etcd.put("/same", "1")
    watch.wait_sync(2)
    store.wait_notice("cluster-changed" if new_id else "revision-went-back")
    watch.wait_state({"/same": "1"})
    # A listing that came before the put also tells of a deletion in between.
    told = [event for event in watch.of("/same") if event != ("deleted", None)]
    assert told == [("put", "1")] * 2, "told anew, for revisions prove nothing"
    assert watch.of("/gone")[-1] == ("deleted", None)
    etcd.put("/then", "1")
    watch.wait_key("/then", "1")
    watch.check()


@pytest.mark.parametrize("new_id", [True, False], ids=["another-cluster-id", "the-same-id"])
def test_an_etcd_restored_from_a_backup_is_listed_anew(lab, store_driver, new_id):
    etcd = lab.etcd(unix=True)
    store = store_driver(flags=["--etcd", f"unix://{etcd.members[0].socket}"])
    etcd.put("/a", "old")
    etcd.put("/b", "old")
    snapshot = etcd.save()
    watch = store.watch("/")
    watch.wait_sync()
    etcd.put("/a", "new")
    etcd.delete("/b")
    etcd.put("/c", "new")
    watch.wait_state({"/a": "new", "/c": "new"})
    etcd.restore(snapshot, new_id=new_id)
    watch.wait_sync(2)
    store.wait_notice("cluster-changed" if new_id else "revision-went-back")
    watch.wait_state({"/a": "old", "/b": "old"})
    etcd.put("/d", "1")
    watch.wait_key("/d", "1")
    watch.check()


RESTORED = {
    # The key that was lost is written again at its own revision: just the raft term is lower.
    "by-its-term": (3, ["/a", "/b"], "raft term"),
    # A cluster that never restarted has the term of a restored one.
    "by-a-list": (0, ["/b", "/c"], "/a at an older revision"),
}


@pytest.mark.parametrize("restarts, writes, words", RESTORED.values(), ids=RESTORED)
def test_a_restore_overtaken_by_writes_is_noticed(lab, store_driver, restarts, writes, words):
    """The same cluster id, and a revision beyond what the client knew before it was stopped."""
    etcd = lab.etcd(unix=True)
    for _ in range(restarts):
        etcd.members[0].restart()
    store = store_driver(flags=["--etcd", f"unix://{etcd.members[0].socket}"])
    etcd.put("/a", "old")
    snapshot = etcd.save()
    watch = store.watch("/")
    watch.wait_sync()
    known = etcd.put("/a", "lost")
    watch.wait_key("/a", "lost")
    store.wait_notice("watching")
    os.kill(store.pid, signal.SIGSTOP)
    etcd.kill()
    etcd.restore(snapshot, new_id=False)
    for key in writes:
        revision = etcd.put(key, "new")
    assert revision == known + 1
    os.kill(store.pid, signal.SIGCONT)
    assert words in store.wait_notice("revision-went-back").text
    watch.wait_state(etcd.dump())
    watch.check()


def test_a_store_that_is_alone_keeps_trying(lab, store_driver):
    """No endpoint: calls fail within their time, watches go on as soon as etcd is there."""
    etcd = lab.etcd(unix=True)
    member = etcd.members[0]
    member.stop()
    store = store_driver(flags=["--etcd", f"unix://{member.socket}"])
    watch = store.watch("/")
    reply = store.call("put", key="/a", value="1", timeout=700)
    assert reply.err == "ENOTCONN" and not reply.unknown and 0.2 < reply.seconds < 1.5
    forever = store.start("put", key="/b", value="1", timeout=2**32 - 1)
    store.wait_notice("trouble")
    etcd.start()
    forever.wait().must()
    watch.wait_state({"/b": "1"})
    watch.check()

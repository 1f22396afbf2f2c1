# SPDX-License-Identifier: Apache-2.0
"""The controller's Kubernetes client against a stand-in API server (lab/kube.py), over real TLS.

The driver is the sanitizer build if there is one (ROOST_BUILD_SANITIZE), and must end with exit 0.
"""

import json
import os
import pathlib
import threading

import pytest

from lab.kube import Cut, Hang, KubeApi, Late, Say, Stream, event, expired, reply, status
from lab.kube_driver import KubeDriver

FAST = ("--backoff-ms", "20")


@pytest.fixture
def api(node):
    made = KubeApi(node)
    yield made
    made.close()


@pytest.fixture
def program(build):
    return pathlib.Path(os.environ.get("ROOST_BUILD_SANITIZE", build)).resolve() / "kube-driver"


@pytest.fixture
def start(node, api, program):
    """start("--more", "flags"): a client of the stand-in, by a kubeconfig."""
    started = []

    def make(*flags, kubeconfig=None, env=None):
        where = () if env else ("--kubeconfig", kubeconfig or api.kubeconfig(token="secret"))
        started.append(KubeDriver(node, program, *where, *FAST, *flags, env=env))
        return started[-1]
    yield make
    for driver in started:
        driver.close()


# --- list and watch -----------------------------------------------------------------------------


def test_nodes_are_listed_in_pages_and_followed(api, start):
    """A large status, managedFields and labels that are not ours do no harm."""
    for i in range(25):
        api.put(f"n{i:02}", {"zone": "a", "odd": "not ours"} if i == 3 else {"zone": "a"},
                ["10.4.0.0/24", "fd04::/80"], status_bytes=100_000 if i % 5 == 0 else 0)
    kube = start("--page", "10")
    kube.wait_sync()
    assert sorted(kube.nodes) == [f"n{i:02}" for i in range(25)]
    assert api.count("list") == 3 and [r.query.get("limit") for r in api.requests[:3]] == ["10"] * 3
    told = kube.nodes["n03"]
    assert told["uid"] == api.nodes["n03"]["metadata"]["uid"] and told["left_out"] == 1
    assert told["labels"] == {"zone": "a", "kubernetes.io/os": "linux", "kubernetes.io/hostname": "n03"}
    assert told["podCIDRs"] == ["10.4.0.0/24", "fd04::/80"]

    api.put("n03", {"zone": "b"})
    kube.wait_node("n03", zone="b")
    uid = api.put("new", {"zone": "c"})
    kube.wait_node("new", uid=uid)
    api.put("new", {"zone": "c"}, deletionTimestamp="2026-01-01T00:00:00Z")
    kube.wait(lambda: kube.nodes["new"]["deleting"])
    assert api.count("list") == 3 and api.count("watch") == 1
    assert not kube.troubles


def test_heartbeats_tell_nobody_anything(api, start):
    for name in "a", "b":
        api.put(name)
    kube = start()
    kube.wait_sync()
    api.wait_requests("watch", 1)
    for _ in range(50):
        api.touch("a")
    api.put("b", {"marker": "1"})
    kube.wait_node("b", marker="1")
    assert [m["node"] for m in kube.said if "node" in m] == ["a", "b", "b"]
    assert kube.stats()["events"] >= 51


def test_a_watch_goes_on_where_the_last_one_was(api, start):
    """Cuts, and the end of its time; bookmarks count, so history may expire without a new list."""
    api.put("a")
    kube = start("--watch-s", "1")
    kube.wait_sync()
    api.wait_requests("watch", 2)  # its time was over
    api.cut()
    api.put("a", {"seen": "cut"})
    kube.wait_node("a", seen="cut")
    # Nothing happens to Nodes while the cluster's version moves on.
    with api.changed:
        api.version += 100
    before = kube.stats()["bookmarks"]
    kube.wait_stats(lambda s: s["bookmarks"] >= before + 2)
    n = api.count("watch")
    with api.changed:
        api.oldest = api.version - 50
    api.cut()
    api.wait_requests("watch", n + 1)
    api.put("a", {"seen": "bookmark"})
    kube.wait_node("a", seen="bookmark")
    assert api.count("list") == 1 and kube.syncs == 1
    kube.wait_well()


def test_expired_versions_lead_to_a_new_list(api, start):
    """As a status of a watch, as an ERROR event, and within the pages of a list."""
    uids = {name: api.put(name, {"x": "0"}) for name in ("a", "b", "c")}
    kube = start("--page", "2")
    kube.wait_sync()
    api.wait_requests("watch", 1)

    def watches_fail(request):
        return Say(410, expired()) if request.verb == "watch" and api.count("watch") == 2 else None
    api.fault = watches_fail
    api.put("a", {"x": "1"})
    api.cut()
    kube.wait_sync(2)
    kube.wait_node("a", x="1")

    api.wait_requests("watch", 3)
    api.delete("b", silently=True)
    api.compact()  # the open stream ends with an ERROR event
    kube.wait_sync(3)
    kube.wait_gone("b", uids["b"])

    # The second page has expired: nothing is missing because of that.
    pages = []

    def pages_fail(request):
        if request.verb == "list" and "continue" in request.query:
            pages.append(request)
            return Say(410, status(410, "Expired", "too old")) if len(pages) == 1 else None
        return None
    for i in range(3):
        api.put(f"z{i}")
    api.fault = pages_fail
    api.compact()
    kube.wait_sync(4)
    assert len(pages) >= 2 and [g[0] for g in kube.gone] == ["b"]
    assert sorted(kube.nodes) == ["a", "c", "z0", "z1", "z2"]
    # Only differences were told.
    assert sum(m.get("node") == "c" for m in kube.said) == 1


# --- deletion -----------------------------------------------------------------------------------


def test_a_deletion_is_confirmed_by_a_get(api, start):
    uids = {name: api.put(name) for name in ("a", "b", "c")}
    kube = start()
    kube.wait_sync()
    api.wait_requests("watch", 1)
    api.delete("a")
    kube.wait_gone("a", uids["a"])
    assert api.count("get", "a") == 1
    # Deleted and made anew before anybody could ask: the old one is gone, the new one there.
    with api.changed:
        api.delete("b")
        new = api.put("b", {"second": "life"})
    kube.wait_node("b", uid=new, second="life")
    assert kube.gone == [("a", uids["a"]), ("b", uids["b"])]
    # A watch that tells a lie: the Node is still there.
    n = api.count("get", "c")
    with api.changed:
        api.version += 1
        api.log.append((api.version, "DELETED", api.nodes["c"]))
        api.changed.notify_all()
    api.wait(lambda: sum(r.verb == "get" and r.name == "c" for r in api.requests) > n)
    api.put("c", {"still": "there"})
    kube.wait_node("c", still="there")
    assert len(kube.gone) == 2 and kube.stats()["doubts"] == 0


def test_a_node_made_anew_while_the_old_one_is_asked_for_is_not_lost(api, start):
    """The GET's 404 comes after the watch has told of the new one."""
    old = api.put("a")
    kube = start()
    kube.wait_sync()
    api.wait_requests("watch", 1)
    now = threading.Event()
    not_found = reply(404, "NotFound", 'nodes "a" not found', details={"name": "a", "kind": "nodes"})
    api.fault = lambda r: Late(now, not_found) if r.verb == "get" and api.count("get") == 1 else None
    api.delete("a")
    api.wait_requests("get", 1)
    new = api.put("a", {"second": "life"})
    api.put("marker")
    kube.wait_node("marker")  # so the watch has told of the new one
    assert "second" not in kube.nodes["a"]["labels"] and not kube.gone
    now.set()
    kube.wait_node("a", uid=new, second="life")
    assert kube.gone == [("a", old)]


def test_any_other_answer_means_not_gone(api, start):
    answers = [
        Say(404, b"404 page not found\n"),
        reply(404, "NotFound", "the server could not find the requested resource", details={}),
        reply(404, "NotFound", 'nodes "b" not found', details={"name": "b", "kind": "nodes"}),
        reply(403, "Forbidden", 'nodes "a" is forbidden'),
        reply(410, "Gone", "gone"),
        reply(500, "InternalError", "etcd is not there"),
        Say(200, b'{"kind":"Node","metadata":{"name":"z","uid":"u"}}'),
        Say(200, b"<html>"),
        Say(200, b""),
        Cut(),
    ]
    uid = api.put("a")
    kube = start("--backoff-ms", "1")
    kube.wait_sync()
    api.wait_requests("watch", 1)
    asked = []

    def fault(request):
        if request.verb != "get":
            return None
        asked.append(request)
        # Each twice, so that the next is never an answer to the former's repetition.
        return answers[(len(asked) - 1) // 2] if len(asked) <= 2 * len(answers) else Hang()
    api.fault = fault
    api.delete("a")
    assert "whether node a is gone" in kube.wait_trouble("is gone:")
    api.wait_requests("get", 2 * len(answers) + 1)
    assert not kube.gone and kube.stats()["doubts"] == 1
    kube.close()
    # The same, and the truth at last.
    api.fault = None
    kube = start()
    kube.expect("a", uid)
    kube.wait_gone("a", uid)


def test_deletions_of_the_time_when_nobody_watched(api, start):
    """Also while we were down: the caller's records say what was there."""
    api.put("stays")
    anew = api.put("anew")
    start_fault = threading.Event()
    api.fault = lambda request: None if start_fault.is_set() else reply(503)
    kube = start()
    kube.expect("was", "11-22")
    kube.expect("stays", api.nodes["stays"]["metadata"]["uid"])
    kube.expect("anew", "33-44")
    kube.wait_trouble("answers 503")
    assert not kube.gone
    start_fault.set()
    kube.wait_gone("was", "11-22")
    kube.wait_gone("anew", "33-44")
    kube.wait_node("anew", uid=anew)
    # Named after the list was complete.
    kube.expect("late", "55-66")
    kube.wait_gone("late", "55-66")
    assert len(kube.gone) == 3 and sorted(kube.nodes) == ["anew", "stays"]


def test_an_empty_list_alone_removes_nothing(api, start):
    uids = {f"n{i}": api.put(f"n{i}") for i in range(20)}
    kube = start()
    kube.wait_sync()
    api.wait_requests("watch", 1)
    empty = {"kind": "NodeList", "apiVersion": "v1", "metadata": {"resourceVersion": "9999"},
             "items": []}
    api.fault = lambda r: Say(200, empty) if r.verb == "list" else \
        Stream(stay=True) if r.verb == "watch" and r.query["resourceVersion"] == "9999" else None
    api.compact()
    kube.wait_sync(2)
    api.wait_requests("get", 20)
    kube.wait_stats(lambda s: s["doubts"] == 0)
    assert not kube.gone and len(kube.nodes) == len(uids)


# --- who we are ---------------------------------------------------------------------------------


@pytest.fixture
def api6(node):
    made = KubeApi(node, address="::1")
    yield made
    made.close()


def test_a_pods_token_is_read_again_when_it_is_rotated(api6, start):
    api = api6
    api.tokens = {"first"}
    folder = api.service_account("first")
    api.put("a")
    kube = start("--service-account", folder,
                 env={"KUBERNETES_SERVICE_HOST": api.host, "KUBERNETES_SERVICE_PORT": api.port})
    kube.wait_sync()
    api.wait_requests("watch", 1)
    # Rotated before it is refused: read again once, at once, and nobody is told of trouble.
    api.service_account("second")
    with api.changed:
        api.tokens = {"second"}
    api.cut()
    api.wait(lambda: api.requests[-1].token == "second" and api.requests[-1].verb == "watch")
    kube.wait_well()
    assert not any("(401" in t for t in kube.troubles) and kube.stats()["token_reads"] == 2
    # Refused for good: told, with back-off, until a good one is there.
    with api.changed:
        api.tokens = {"third"}
    api.cut()
    assert "check the token" in kube.wait_trouble("(401")
    api.service_account("third")
    api.wait(lambda: api.requests[-1].token == "third" and api.requests[-1].verb == "watch")
    kube.wait_well()
    api.put("a", {"by": "third"})
    kube.wait_node("a", by="third")


@pytest.mark.parametrize("data", [False, True], ids=["files", "data"])
def test_a_client_certificate_and_another_server_name(node, api, start, data):
    api.tokens = set()
    user = api.lab.authority.issue("client", "/O=system:masters/CN=tester")
    api.put("a")
    kube = start(kubeconfig=api.kubeconfig(user=user, data=data))
    kube.wait_sync()
    assert (("commonName", "tester"),) in api.certificates[-1]
    ca = {"certificate-authority": api.lab.authority.cert, "tls-server-name": "kubernetes"}
    named = start(kubeconfig=api.kubeconfig(user=user, name="named", cluster=ca))
    named.wait_sync()
    ca["tls-server-name"] = "elsewhere"
    wrong = start(kubeconfig=api.kubeconfig(user=user, name="wrong", cluster=ca))
    assert "elsewhere" in wrong.wait_trouble("TLS with")


def test_a_server_that_is_not_ours_is_not_believed(node, api, start):
    other = api.lab.dir / "other.crt"
    from lab.tls import Authority
    other.write_bytes(Authority(api.lab, "stranger").cert.read_bytes())
    kube = start(kubeconfig=api.kubeconfig(cluster={"certificate-authority": other}))
    text = kube.wait_trouble("TLS with")
    assert str(other) in text and "certificate" in text and api.url in text
    missing = start(kubeconfig=api.kubeconfig(name="missing",
                                              cluster={"certificate-authority": "/no/such.crt"}))
    assert "/no/such.crt" in missing.wait_trouble("TLS with")
    assert api.count("list") == 0
    # Asked for by a flag, anybody is believed.
    skip = start("--insecure", kubeconfig=api.kubeconfig(
        name="skip", cluster={"insecure-skip-tls-verify": "true"}))
    skip.wait_sync()


def test_files_that_will_not_do_are_named(node, api, program):
    def refused(*flags, env=None):
        driver = KubeDriver(node, program, *flags, env=env)
        assert driver.wait_end() == 1
        return driver.log
    assert "/no/file: No such file" in refused("--kubeconfig", "/no/file")
    assert "KUBERNETES_SERVICE_HOST" in refused()
    path = api.kubeconfig(token="secret")
    path.chmod(0o644)
    assert f"chmod 0600 {path}" in refused("--kubeconfig", path)
    path = api.kubeconfig(exec="{command: aws}")
    log = refused("--kubeconfig", path)
    assert str(path) in log and 'context "lab"' in log and 'field "exec"' in log
    path = api.kubeconfig(cluster={"insecure-skip-tls-verify": "true"})
    assert "--kubernetes-insecure" in refused("--kubeconfig", path)


def test_a_token_file_that_is_missing_is_waited_for(node, api, start):
    path = api.lab.dir / "late.token"
    kube = start(kubeconfig=api.kubeconfig(token_file=path))
    assert str(path) in kube.wait_trouble("No such file")
    path.write_text("here\n")
    kube.wait_sync()
    assert api.requests[-1].token == "here"


# --- what can go wrong --------------------------------------------------------------------------


def test_forbidden_names_verb_and_manifest(api, start):
    for verb in "list", "watch":
        message = f'nodes is forbidden: User "system:serviceaccount:x:y" cannot {verb} "nodes"'
        api.fault = lambda r: reply(403, "Forbidden", message, details={"kind": "nodes"}) \
            if r.verb == verb else None
        kube = start()
        text = kube.wait_trouble("(403")
        assert f"forbids us to {verb} nodes" in text and "docs/kubernetes/controller.yaml" in text
        assert message in text
        api.fault = None
        kube.wait_sync()
        kube.wait_well()
        kube.close()


def test_retry_after_is_honoured(api, start):
    api.fault = lambda r: reply(429, "TooManyRequests", "slow down", headers={"Retry-After": "2"}) \
        if api.count("list") == 1 else None
    kube = start()
    kube.wait_sync()
    assert "answers 429" in kube.troubles[0]
    first, second = [r.at for r in api.requests if r.verb == "list"][:2]
    assert second - first >= 2.0


def test_slow_and_silent_servers_are_given_up(api, start):
    """A list without an answer by its deadline; a watch that neither speaks nor ends."""
    uid = api.put("a")
    api.fault = lambda r: Hang() if r.verb == "list" and api.count("list") == 1 else \
        Stream(stay=True) if r.verb == "watch" and api.count("watch") == 1 else None
    kube = start("--request-ms", "1500", "--watch-s", "1", "--margin-ms", "200")
    kube.wait_trouble("timed out")
    kube.wait_sync()
    assert api.count("list") >= 2
    assert "has sent nothing" in kube.wait_trouble("opening it again")
    api.wait_requests("watch", 2)
    api.put("a", {"after": "silence"})
    kube.wait_node("a", uid=uid, after="silence")


def garbage():
    node = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "a", "uid": "u", "resourceVersion": "5"}}
    return {
        "no JSON": b"<html>oops</html>\n",
        "half an object": event("ADDED", node)[:40],
        "an array": b"[1,2]\n",
        "no type": json.dumps({"object": node}).encode(),
        "no object": b'{"type":"ADDED"}\n',
        "a type that is a number": b'{"type":1,"object":{}}\n',
        "not UTF-8": b'{"type":"ADDED","object":{"metadata":{"name":"\xff"}}}\n',
        "too deep": b'{"type":' + b"[" * 200 + b"\n",
        "an ERROR without sense": event("ERROR", {"kind": "Banana"}),
        "an ERROR of another kind": event("ERROR", status(500, "InternalError", "boom")),
    }


def test_garbage_on_a_watch_is_reported_and_survived(api, start):
    api.put("a")
    for what, said in garbage().items():
        left = [Stream(said)]
        api.fault = lambda r: left.pop() if r.verb == "watch" and left else None
        kube = start()
        kube.wait_sync()
        api.wait(lambda: not left)
        if "ERROR" in what:
            kube.wait_sync(2)
        else:
            assert "invalid reply" in kube.wait_trouble("watch nodes"), what
        kube.wait_well()
        api.put("a", {"after": what.replace(" ", "-")})
        kube.wait_node("a", after=what.replace(" ", "-"))
        assert not kube.gone and list(kube.nodes) == ["a"]
        kube.close()


def test_garbage_for_a_list_is_no_list(api, start):
    version = b'"metadata":{"resourceVersion":"1"}'
    bodies = [
        b"", b"<html>", b"{}", b"[]", b'{"kind":"PodList",' + version + b',"items":[]}',
        b'{"kind":"NodeList","metadata":{},"items":[]}', b'{"kind":"NodeList","items":[]}',
        b'{"kind":"NodeList",' + version + b',"items":[{"metadata"',
        b'{"kind":"NodeList",' + version + b',"items":[{}}',
        b'{"kind":"NodeList",' + version + b',"items":[{"a":"' + b"x" * 9_000_000 + b'"}]}']
    api.put("a")
    left = list(bodies)
    api.fault = lambda r: Say(200, left.pop()) if r.verb == "list" and left else None
    kube = start("--backoff-ms", "1")
    kube.expect("a", api.nodes["a"]["metadata"]["uid"])
    assert "invalid reply" in kube.wait_trouble("list nodes")
    kube.wait_sync()
    kube.wait_well()
    assert sum("invalid reply" in t for t in kube.troubles) >= 8
    assert not kube.gone and list(kube.nodes) == ["a"] and api.count("get") == 0


def test_nodes_that_are_none_are_left_out_and_counted(api, start):
    uid = api.put("a")
    node = {"metadata": {"name": "Bad/Name", "uid": "u", "resourceVersion": "3"}}
    with api.changed:
        api.nodes["Bad/Name"] = node
    kube = start()
    kube.wait_sync()
    assert list(kube.nodes) == ["a"] and kube.nodes["a"]["uid"] == uid
    stats = kube.stats()
    assert stats["objects_bad"] == 1 and "Bad/Name" in stats["last_bad"]


def test_events_in_single_bytes_and_in_one_piece(api, start):
    def node(name, version, **labels):
        return {"kind": "Node", "apiVersion": "v1", "metadata": {
            "name": name, "uid": f"u-{name}", "resourceVersion": str(version), "labels": labels}}
    whole = b"".join(event("ADDED", node(f"n{i}", 2000 + i, x="\u2713" if i == 1 else "y"))
                     for i in range(3))
    api.fault = lambda r: (Stream(*[bytes([b]) for b in whole], whole) if r.verb == "watch"
                           and api.count("watch") == 1 else None)
    kube = start()
    kube.wait_node("n2", x="y")
    assert [m["node"] for m in kube.said if "node" in m] == ["n0", "n1", "n2"]
    api.wait(lambda: any(r.query.get("resourceVersion") == "2002" for r in api.requests))


@pytest.mark.plain("it measures memory")
def test_one_object_at_a_time_in_memory(api, build, node):
    """500 Nodes of 100 kB in one page: as one tree it would be far more."""
    for i in range(500):
        api.put(f"n{i:04}", status_bytes=100_000)
    kube = KubeDriver(node, build / "kube-driver", "--kubeconfig", api.kubeconfig(token="x"))
    kube.wait(lambda: kube.syncs, 60, "in_sync")
    stats = kube.stats()
    assert stats["nodes"] == 500 and stats["peak_rss_kib"] < 40_000, stats
    kube.close()


def test_the_end_comes_in_the_midst_of_everything(api, start):
    """Requests, doubts and timers under way: nothing leaks, by the sanitizer's word."""
    for i in range(12):
        api.put(f"n{i}")
    kube = start("--page", "5")
    kube.wait_sync()
    api.wait_requests("watch", 1)
    api.fault = lambda r: Hang() if r.verb == "get" else None
    for i in range(10):
        api.delete(f"n{i}")
    api.wait_requests("get", 8)
    assert kube.stats()["doubts"] == 10
    kube.close()

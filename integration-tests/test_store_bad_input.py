# SPDX-License-Identifier: Apache-2.0
"""The store against a server that says anything but what etcd should.

The server is a thread on a unix socket. Whatever it says, the store answers with an error
that store.h lists, says whether a write may have been applied, neither hangs nor crashes,
and goes on when the server comes to its senses. The driver is the sanitizer build if there
is one (ROOST_BUILD_SANITIZE), and must end with exit 0.
"""

import base64
import collections
import json
import os
import pathlib
import socket
import struct
import threading

import pytest

Request = collections.namedtuple("Request", "path headers body connection")
HEADER = {"cluster_id": "14841639068965178418", "member_id": "10276657743932975437", "revision": "5"}
TXN_OK = {"header": HEADER, "succeeded": True, "responses": [{"response_put": {"header": {}}}]}


def b64(text):
    return base64.b64encode(text.encode()).decode()


def as_json(value):
    return json.dumps(value, separators=(",", ":")).encode()


def http(status=200, body=b"", headers=()):
    """A whole reply; body: bytes, or what becomes JSON."""
    body = body if isinstance(body, bytes) else as_json(body)
    lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


class Hang(Exception):
    """Raised by a handler: keep the connection and say nothing, until the end."""


class Server:
    """Hands each request to `handler(request)`: bytes are sent and the connection is kept;
    None closes it; or it writes to request.connection itself."""

    def __init__(self, path):
        self.path, self.handler = path, lambda request: None
        self.requests, self.errors, self._connections = [], [], []
        self.changed = threading.Condition()
        self.over = threading.Event()
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(path))
        self._socket.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self._connections.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        data = b""
        try:
            while True:
                while b"\r\n\r\n" not in data:
                    if not (more := connection.recv(65536)):
                        return
                    data += more
                head, _, data = data.partition(b"\r\n\r\n")
                first, *lines = head.decode().split("\r\n")
                headers = {k.lower(): v.strip() for k, _, v in (x.partition(":") for x in lines)}
                length = int(headers["content-length"])
                while len(data) < length:
                    if not (more := connection.recv(1 << 20)):
                        return
                    data += more
                request = Request(first.split()[1], headers, data[:length], connection)
                data = data[length:]
                with self.changed:
                    self.requests.append(request)
                    self.changed.notify_all()
                answer = self.handler(request)
                if answer is None:
                    return
                connection.sendall(answer)
        except Hang:
            self.over.wait()
        except OSError:  # the store hung up, as it may
            pass
        except Exception as e:  # a broken test must not look like a silent server
            self.errors.append(e)
        finally:
            connection.close()

    def close(self):
        self.over.set()
        self._socket.close()
        for c in self._connections:
            try:
                c.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        assert not self.errors, self.errors

    def wait(self, fn, timeout=10):
        with self.changed:
            assert self.changed.wait_for(fn, timeout), [r.path for r in self.requests]
            return fn()

    def bodies(self, path):
        return [r.body for r in self.requests if r.path == path]


@pytest.fixture
def server(lab):
    s = Server(lab.dir / "etcd.sock")
    yield s
    s.close()


@pytest.fixture
def start(server, store_driver, build):
    """start("--more", "flags"): a store that speaks with the server."""
    program = pathlib.Path(os.environ.get("ROOST_BUILD_SANITIZE", build)).resolve() / "store-driver"
    return lambda *flags: store_driver(flags=["--etcd", f"unix://{server.path}", *flags],
                                       program=program)


@pytest.fixture
def store(start):
    return start()


def txn(store, **args):
    """A compare-and-swap: it must not be sent twice."""
    return store.txn([{"key": "/a", "target": "mod", "number": 3}],
                     [{"put": "/a", "value": "1"}], **args)


# --- what is sent --------------------------------------------------------------------------------


def test_requests_carry_etcds_deadline_and_ask_for_a_leader(server, store):
    server.handler = lambda r: http(200, TXN_OK)
    txn(store).must()
    txn(store, timeout=300).must()
    first, second = server.requests
    assert first.path == "/v3/kv/txn"
    assert first.headers["grpc-timeout"] == "1500m"
    assert 200 < int(second.headers["grpc-timeout"].removesuffix("m")) <= 300
    assert first.headers["grpc-metadata-hasleader"] == "true"
    assert "expect" not in first.headers and "authorization" not in first.headers
    assert json.loads(first.body)["compare"][0]["mod_revision"] == "3"


def test_a_token_goes_into_the_header_as_it_is(server, start, lab):
    password = lab.dir / "password"
    password.write_text('se"cret\n')
    server.handler = lambda r: http(200, {"token": "abc.7"} if "auth" in r.path else TXN_OK)
    s = start("--user", "u", "--password-file", password)
    txn(s).must()
    login, call = server.requests
    assert json.loads(login.body) == {"name": "u", "password": 'se"cret'}
    assert login.path == "/v3/auth/authenticate" and "authorization" not in login.headers
    assert call.headers["authorization"] == "abc.7"


def test_a_token_that_would_forge_a_header_is_refused(server, start, lab):
    password = lab.dir / "password"
    password.write_text("secret")
    server.handler = lambda r: http(200, {"token": "abc\r\nX-Evil: 1"})
    s = start("--user", "u", "--password-file", password)
    reply = txn(s, timeout=300)
    assert reply.err == "EBADMSG" and "token" in reply.text and not reply.unknown
    assert not server.bodies("/v3/kv/txn")


# --- replies that make no sense ------------------------------------------------------------------


def deep(n):
    return b'{"header":' + b'{"a":' * n + b"1" + b"}" * n + b"}"


NONSENSE = {
    "empty body": b"",
    "blanks": b" \n ",
    "cut off": as_json(TXN_OK)[:-10],
    "an opening brace": b"{",
    "array": b"[]",
    "array of one": b"[" + as_json(TXN_OK) + b"]",
    "number": b"1",
    "null": b"null",
    "text": b'"ok"',
    "html": b"<html><body>It works!</body></html>",
    "two objects": as_json(TXN_OK) * 2,
    "garbage after": as_json(TXN_OK) + b"x",
    "nul after": as_json(TXN_OK) + b"\0",
    "nested deeply": deep(20),
    "nested absurdly": deep(100000),
    "open brackets": b'{"a":' + b"[" * 100000,
    "not utf-8": b'{"header":{"revision":"5"},"x":"\xff\xfe"}',
    "utf-16": as_json(TXN_OK).decode().encode("utf-16"),
    "no revision": {"succeeded": True},
    "nothing at all": {},
    "header is an array": {"header": []},
    "revision is a word": {"header": {"revision": "five"}},
    "revision is negative": {"header": {"revision": "-5"}},
    "revision is huge": {"header": {"revision": "9" * 400}},
    "succeeded is a text": {"header": HEADER, "succeeded": "true"},
    "responses is an object": {"header": HEADER, "responses": {}},
    "responses of numbers": {"header": HEADER, "responses": [1]},
    "a response of nothing": {"header": HEADER, "responses": [{}]},
    "kvs is a text": {"header": HEADER, "responses": [{"response_range": {"kvs": "x"}}]},
    "kvs of nulls": {"header": HEADER, "responses": [{"response_range": {"kvs": [None]}}]},
    "key is a number": {"header": HEADER, "responses": [{"response_range": {"kvs": [{"key": 1}]}}]},
    "key is not base64": {"header": HEADER,
                          "responses": [{"response_range": {"kvs": [{"key": "?"}]}}]},
    "value is an array": {"header": HEADER, "responses": [
        {"response_range": {"kvs": [{"key": "YQ==", "value": []}]}}]},
}


def test_nonsense_is_a_bad_message_and_the_outcome_unknown(server, store):
    for name, body in NONSENSE.items():
        server.handler = lambda r: http(200, body)
        reply = txn(store)
        assert (reply.err, reply.unknown) == ("EBADMSG", True), f"{name}: {reply}"
        assert reply.text.startswith("etcd unix://") and len(reply.text) < 400, name
    assert len(server.bodies("/v3/kv/txn")) == len(NONSENSE), "each was sent once"
    for verb, args in {"grant": {"ttl": 5}, "keepalive": {"lease": 5}, "list": {"key": "/"}}.items():
        for name in "empty body", "cut off", "two objects", "header is an array", "not utf-8":
            server.handler = lambda r: http(200, NONSENSE[name])
            assert store.call(verb, **args).err == "EBADMSG", (verb, name)
    server.handler = lambda r: http(200, TXN_OK)
    assert txn(store).must().succeeded


def test_fields_that_nobody_knows_are_no_trouble(server, store):
    server.handler = lambda r: http(200, dict(TXN_OK, news=[{"a": None}], header=dict(HEADER, x=1.5)))
    assert txn(store).must().succeeded


def test_a_reply_with_fewer_operations_than_asked_for_is_not_trusted(server, store):
    """Users look at ops[i] for the i-th operation they asked for."""
    server.handler = lambda r: http(200, {"header": HEADER, "succeeded": True})
    reply = store.call("get", key="/a")
    assert reply.err == "EBADMSG", reply
    server.handler = lambda r: http(200, TXN_OK)  # a put where a get was asked for
    assert store.call("get", key="/a").err == "EBADMSG"


def test_a_lost_transaction_is_settled_by_a_reply_that_makes_sense_only(server, store):
    """The fencing transaction goes on until it is understood."""
    nothing = {"header": HEADER, "succeeded": True}
    got = {"response_range": {"kvs": [{"key": b64("/f"), "mod_revision": "3", "version": "1"}]}}
    answers = [None, http(200, nothing), http(200, dict(nothing, responses=[got])), http(200, {}),
               http(503, {"code": 14, "message": "etcdserver: no leader"})]
    rest = iter(answers)

    def handler(request):
        body = json.loads(request.body)
        if len(server.requests) <= len(answers):
            return next(rest)
        branch = "success"
        kinds = {"request_put": "response_put", "request_range": "response_range",
                 "request_delete_range": "response_delete_range"}
        return http(200, {"header": HEADER, "succeeded": True, "responses": [
            {kinds[k]: got["response_range"] if "range" in k else {} for k in op}
            for op in body.get(branch, ())]})
    server.handler = handler
    reply = store.call("txn", compare=[{"key": "/f", "target": "mod", "number": 3}],
                       success=[{"put": "/a", "value": "token"}, {"put": "/f", "value": "x"}],
                       failure=[], fence=0, witness=0)
    assert reply.outcome in ("applied", "refused") and reply.was_lost
    assert len(server.requests) == len(answers) + 1


# --- statuses ------------------------------------------------------------------------------------

STATUSES = [
    # reply, error, unknown
    (http(204), "EBADMSG", True),
    (http(201, TXN_OK), "EBADMSG", True),
    (http(302, b"", ["Location: /v3/elsewhere"]), "EIO", True),
    (http(307, b"", ["Location: /v3/elsewhere"]), "EIO", True),
    (http(404, b"404 page not found\n"), "EIO", False),
    (http(405, b"Method Not Allowed\n"), "EIO", False),
    (http(401, b"<html>who are you?"), "EIO", False),
    (http(500, b""), "EIO", True),
    (http(502, b"<html>Bad Gateway</html>"), "EIO", True),
]


def test_statuses_without_etcds_own_words(server, store):
    for answer, err, unknown in STATUSES:
        server.handler = lambda r: answer
        reply = txn(store)
        assert (reply.err, reply.unknown) == (err, unknown), f"{answer}: {reply}"
    assert {r.path for r in server.requests} == {"/v3/kv/txn"}, "no redirect was followed"
    assert len(server.requests) == len(STATUSES)


def test_an_interim_reply_is_skipped(server, store):
    server.handler = lambda r: b"HTTP/1.1 100 Continue\r\n\r\n" + http(200, TXN_OK)
    txn(store).must()


# --- etcd's errors -------------------------------------------------------------------------------

ERRORS = [
    # status of gateway v1 and v2, code, message, error, unknown
    (400, 400, 3, "illegal base64 data at input byte 4", "EINVAL", False),
    (400, 400, 3, "etcdserver: duplicate key given in txn request", "EINVAL", False),
    (400, 400, 3, "etcdserver: user name is empty", "EKEYREJECTED", False),
    (401, 401, 16, "etcdserver: invalid auth token", "EKEYREJECTED", False),
    (400, 400, 3, "etcdserver: revision of auth store is old", "EKEYREJECTED", False),
    (403, 403, 7, "etcdserver: permission denied", "EACCES", False),
    (404, 404, 5, "etcdserver: requested lease not found", "ENOENT", False),
    (412, 400, 9, "etcdserver: lease already exists", "EEXIST", False),
    (400, 400, 11, "etcdserver: mvcc: required revision has been compacted", "ESTALE", False),
    (400, 400, 11, "etcdserver: mvcc: required revision is a future revision", "ERANGE", False),
    (400, 400, 3, "etcdserver: request is too large", "E2BIG", False),
    (429, 429, 8, "grpc: received message larger than max (3 vs. 2)", "E2BIG", False),
    (429, 429, 8, "etcdserver: mvcc: database space exceeded", "ENOSPC", False),
    (429, 429, 8, "etcdserver: too many requests", "EAGAIN", False),
    (503, 503, 14, "etcdserver: no leader", "EAGAIN", False),
    (503, 503, 14, "etcdserver: request timed out", "ETIMEDOUT", True),
    (503, 503, 14, "transport is closing", "EAGAIN", True),
    (500, 500, 2, "context deadline exceeded", "ETIMEDOUT", True),
    (408, 499, 1, "grpc: the client connection is closing", "EAGAIN", True),
    (500, 500, 2, "never heard of", "EIO", True),
]


def test_etcds_errors_in_every_shape(server, store):
    for v1, v2, code, message, err, unknown in ERRORS:
        shapes = [http(v1, {"error": message, "message": message, "code": code}),
                  http(v2, {"code": code, "message": message}),
                  http(200, {"error": {"grpc_code": code, "http_code": v1, "message": message}}),
                  http(200, {"error": {"code": code, "message": message}})]
        for answer in shapes:
            server.handler = lambda r: answer
            # "no leader" and "too many requests" are tried again, as they are certain not to be done
            reply = txn(store, timeout=60)
            assert (reply.err, reply.unknown) == (err, unknown), f"{answer}: {reply}"
            assert message in reply.text


def test_what_may_have_been_done_is_repeated_only_if_it_may_be(server, store):
    answers = iter([http(503, {"code": 14, "message": "etcdserver: request timed out"}),
                    http(503, {"code": 14, "message": "etcdserver: no leader"}),
                    http(200, TXN_OK)])
    server.handler = lambda r: next(answers)
    store.call("put", key="/a", value="1").must()
    assert len(set(server.bodies("/v3/kv/txn"))) == 1 and len(server.requests) == 3


def test_an_unknown_outcome_stays_unknown(server, store):
    """The first attempt may have been applied; that the second was refused does not undo it."""
    answers = iter([http(503, {"code": 14, "message": "etcdserver: request timed out"}),
                    http(403, {"code": 7, "message": "etcdserver: permission denied"})])
    server.handler = lambda r: next(answers)
    reply = store.call("put", key="/a", value="1")
    assert reply.err == "EACCES" and reply.unknown


def test_a_grant_whose_reply_was_lost_is_not_refused_for_being_there(server, store):
    answers = iter([None, http(412, {"code": 9, "message": "etcdserver: lease already exists"})])
    server.handler = lambda r: next(answers)
    reply = store.call("grant", lease=7, ttl=20).must()
    assert (reply.lease, reply.ttl) == (7, 20) and len(server.requests) == 2


# --- connections ---------------------------------------------------------------------------------


def cut(*parts):
    """Send and hang up."""
    def handler(request):
        for p in parts:
            request.connection.sendall(p)
    return handler


def reset(request):
    request.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


OK = http(200, TXN_OK)
CUTS = {
    "before the reply": cut(),
    "within the status line": cut(b"HTTP/1.1 2"),
    "after the headers": cut(OK[:OK.index(b"\r\n\r\n") + 4]),
    "within the body": cut(OK[:-5]),
    "after an interim reply": cut(b"HTTP/1.1 100 Continue\r\n\r\n"),
    "within a chunk": cut(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n20\r\n{\"a\""),
    "before the last chunk": cut(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
                                 chunk(as_json(TXN_OK))),
    "no chunk at all": cut(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n"),
    "not http": cut(b"SSH-2.0-OpenSSH_9.2\r\n"),
    "zeros": cut(bytes(1000)),
    "reset": reset,
    "a length that is none": cut(b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n{}"),
    "endless headers": cut(b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 100000),
}


def test_a_connection_cut_anywhere_leaves_the_outcome_unknown(server, store):
    for name, handler in CUTS.items():
        server.handler = handler
        before = len(server.requests)
        reply = txn(store, timeout=2000)
        assert (reply.err, reply.unknown) == ("ENOTCONN", True), f"{name}: {reply}"
        assert reply.seconds < 1 and len(server.requests) == before + 1, name
        server.handler = lambda r: OK
        txn(store).must()


def test_a_cut_within_the_headers_is_an_empty_reply(server, store):
    """So libcurl sees it; that the outcome is unknown is what matters."""
    server.handler = cut(OK[:30])
    reply = txn(store)
    assert (reply.err, reply.unknown) == ("EBADMSG", True)


def test_what_may_be_repeated_survives_a_cut_anywhere(server, store):
    for name, handler in CUTS.items():
        handlers = iter([handler])
        server.handler = lambda r: next(handlers, lambda r: OK)(r)
        before = len(server.requests)
        reply = store.call("put", key="/a", value="1")
        assert not reply.err, f"{name}: {reply}"
        assert len(server.requests) >= before + 2, name


def test_a_kept_connection_that_dies_under_a_transaction(server, store):
    """libcurl by itself would send the request again on a new connection."""
    for die in (lambda r: None), reset:
        server.handler = lambda r: OK
        txn(store).must()
        before = len(server.requests)
        server.handler = die
        reply = txn(store, timeout=1000)
        assert (reply.err, reply.unknown) == ("ENOTCONN", True), reply
        assert len(server.requests) == before + 1, "it was sent once"
        assert server.requests[-1].connection is server.requests[-2].connection
        # What may be repeated is, and arrives.
        server.handler = lambda r: OK
        store.call("put", key="/a", value="1").must()
        before = len(server.requests)
        dying = iter([die])
        server.handler = lambda r: next(dying, lambda r: OK)(r)
        store.call("put", key="/a", value="2").must()
        assert len(server.requests) == before + 2
        assert server.requests[-1].body == server.requests[-2].body


def test_a_kept_connection_that_was_closed_meanwhile_is_no_trouble(server, store):
    server.handler = lambda r: OK
    for _ in range(5):
        txn(store).must()
        server.requests[-1].connection.shutdown(socket.SHUT_RDWR)
        # The store's loop sees the end before it reads the next command, or right with it.
        store.stats()
    assert len(server.requests) == 5


def test_a_server_that_never_answers_is_given_up_in_time(server, store):
    def hang(request):
        raise Hang
    server.handler = hang
    reply = txn(store, timeout=300)
    assert (reply.err, reply.unknown) == ("ETIMEDOUT", True) and 0.25 < reply.seconds < 1
    reply = txn(store)
    assert (reply.err, reply.unknown) == ("ETIMEDOUT", True) and reply.seconds < 2.5
    reply = store.call("put", key="/a", value="1", timeout=500)
    assert (reply.err, reply.unknown) == ("ETIMEDOUT", True) and reply.seconds < 1.5
    assert store.call("list", key="/", timeout=300).seconds < 1


def test_a_reply_that_drips_is_given_up_in_time(server, store):
    def drip(request):
        for byte in OK:
            request.connection.sendall(bytes([byte]))
            if server.over.wait(0.05):
                break
    server.handler = drip
    reply = txn(store, timeout=500)
    assert (reply.err, reply.unknown) == ("ETIMEDOUT", True) and reply.seconds < 1.5


def test_a_reply_in_single_bytes_is_fine(server, store):
    def bytewise(request):
        request.connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
        for byte in OK:
            request.connection.sendall(bytes([byte]))
        return b""
    server.handler = bytewise
    txn(store).must()


def flood(size, start=b'{"x":"'):
    """A handler: a reply with a text of about so many bytes."""
    block = b"x" * (1 << 20)

    def handler(request):
        request.connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" %
                                   (size + len(start)) + start)
        for _ in range(size // len(block)):
            request.connection.sendall(block)
    return handler


def test_an_endless_reply_is_cut_off(server, store):
    server.handler = flood(1 << 33)
    reply = txn(store)
    assert (reply.err, reply.unknown) == ("EMSGSIZE", True), reply
    # 64 MiB, its doubling, and what the sanitizer keeps in quarantine
    assert store.stats()["peak_rss_kib"] < 600 * 1024


def test_a_page_too_large_is_asked_for_in_smaller_pieces(server, store):
    def handler(request):
        body = json.loads(request.body)
        if body["limit"] == "1000":
            return flood(1 << 33)(request)
        last = "revision" in body
        return http(200, {"header": HEADER, "count": "2", "more": not last,
                          "kvs": [{"key": b64("/b" if last else "/a"), "mod_revision": "3"}]})
    server.handler = handler
    reply = store.call("list", key="/").must()
    assert [kv["key"] for kv in reply.kvs] == ["/a", "/b"]
    bodies = [json.loads(b) for b in server.bodies("/v3/kv/range")]
    assert [b["limit"] for b in bodies] == ["1000", "250", "250"]
    assert base64.b64decode(bodies[2]["key"]) == b"/a\0" and bodies[2]["revision"] == "5"


# --- the watch stream ----------------------------------------------------------------------------


def message(**result):
    return as_json({"result": {"header": dict(HEADER, revision="9"), **result}}) + b"\n"


def put(key, revision, value="x", id="1"):
    return message(watch_id=id, events=[{"kv": {
        "key": b64(key), "value": b64(value), "mod_revision": str(revision),
        "create_revision": str(revision), "version": "1"}}])


class Etcd:
    """A server that lists one key /listed of revision 2 and streams what it is told.

    streams: what the n-th stream says after its creation, as bytes, or a handler that does
    everything by itself; the last one stays open.
    """

    def __init__(self, server, *streams, lists=None):
        self.server, self.streams, self.lists = server, list(streams), lists
        self.opened = []  # the create_requests of each stream
        server.handler = self.handle

    def handle(self, request):
        if request.path == "/v3/kv/range":
            if self.lists:
                return self.lists(request)
            return http(200, {"header": HEADER, "count": "1", "kvs": [
                {"key": b64("/listed"), "mod_revision": "2", "version": "1"}]})
        if request.path == "/v3/kv/txn":  # after a lost stream: was etcd restored?
            return http(403, {"code": 7, "message": "etcdserver: permission denied"})
        return self.stream(request)

    def stream(self, request):
        creates = [json.loads(c + "}}")["create_request"] for c in
                   request.body.decode().split("}}")[:-1]]
        self.opened.append(creates)
        say = self.streams[min(len(self.opened), len(self.streams)) - 1]
        if callable(say):
            return say(request)
        send = request.connection.sendall
        send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for c in creates:
            send(chunk(message(watch_id=c["watch_id"], created=True)))
        if say:
            send(chunk(say.replace(b'"watch_id":"1"', b'"watch_id":"%s"' %
                                   creates[0]["watch_id"].encode())))
        if len(self.opened) >= len(self.streams):
            raise Hang
        send(b"0\r\n\r\n")
        return None


BROKEN_STREAMS = {
    # name: (what the stream says, a part of the notice)
    "a clean end": (b"", "ended with HTTP status 200"),
    "an error of 3.4": (as_json({"error": {"grpc_code": 14, "http_code": 503,
                                           "message": "transport is closing"}}),
                        "transport is closing"),
    "an error of v2": (as_json({"error": {"code": 14, "message": "etcdserver: no leader"}}),
                       "no leader"),
    "an error that is none": (as_json({"error": 7}), "etcd ended the stream"),
    "canceled without a reason": (message(watch_id="1", canceled=True), "no reason given"),
    "canceled with a reason": (message(watch_id="1", canceled=True, cancel_reason="because"),
                               "because"),
    "refused": (message(watch_id="-1", created=True, canceled=True,
                        cancel_reason="etcdserver: permission denied"), "permission denied"),
    "an object of nothing": (b"{}", "neither a result nor an error"),
    "an array": (b"[]", "not JSON"),
    "html": (b"<html>", "not JSON"),
    "not utf-8": (b'{"result":{"watch_id":"\xff"}}', "not UTF-8"),
    "nested deeply": (b'{"result":' * 30, "not JSON"),
    "nul bytes": (bytes(100), "not JSON"),
    "a result that is a text": (as_json({"result": "x"}), "result"),
    "a watch id that is none": (message(watch_id="first"), "watch_id"),
    "events that are none": (message(watch_id="1", events={}), "events"),
    "an event without a key": (message(watch_id="1", events=[{}]), "without a key"),
    "an event that contradicts itself": (
        message(watch_id="1", events=[{"type": "DELETE", "kv": {"key": "YQ==", "version": "2"}}]),
        "DELETE"),
    "a cut within a message": (put("/x", 6)[:-9], "stream"),
}


@pytest.mark.parametrize("name", BROKEN_STREAMS)
def test_a_broken_stream_is_told_and_opened_again(server, store, name):
    """What came before the fault counts and is not told twice; what comes after is seen."""
    said, notice = BROKEN_STREAMS[name]
    etcd = Etcd(server, put("/before", 6) + said, put("/before", 6) + put("/after", 7))
    watch = store.watch("/")
    watch.wait_state({"/listed": "", "/before": "x", "/after": "x"})
    assert notice in store.wait_notice("trouble").text
    assert [o[0]["start_revision"] for o in etcd.opened[:2]] == ["6", "7"]
    assert len(watch.events) == 3 and len(watch.syncs) == 1
    store.wait_notice("watching", 2)
    watch.check()


REFUSALS = [
    http(401, {"error": "etcdserver: invalid auth token", "code": 16}),
    http(404, b"404 page not found\n"),
    http(302, b"", ["Location: /v3/elsewhere"]),
    http(200, b""),
    b"nonsense\r\n\r\n",
]


def test_a_stream_that_never_comes_about_is_tried_again(server, store):
    etcd = Etcd(server, *[(lambda a: lambda r: a)(a) for a in REFUSALS], put("/a", 6))
    watch = store.watch("/")
    watch.wait_key("/a", "x")
    assert store.count_notices("trouble") == len(REFUSALS) == len(etcd.opened) - 1
    assert not server.bodies("/v3/elsewhere")
    assert "invalid auth token" in store.notices[0].text
    watch.check()


def test_watches_that_are_never_confirmed_are_given_up(server, store):
    def silent(request):
        request.connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        raise Hang
    Etcd(server, silent, put("/a", 6))
    watch = store.watch("/")
    watch.wait_key("/a", "x", 15)
    assert "within 5 s" in store.wait_notice("trouble").text


def test_a_message_without_end_is_cut_off(server, store):
    def endless(request):
        send = request.connection.sendall
        send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        send(chunk(message(watch_id="1", created=True)) + chunk(b'{"result":{"x":"'))
        block = chunk(b"x" * (1 << 20))
        while True:
            send(block)
    etcd = Etcd(server, endless, put("/a", 6))
    watch = store.watch("/")
    watch.wait_key("/a", "x")
    assert "larger than" in store.wait_notice("trouble").text and len(etcd.opened) == 2
    assert store.stats()["peak_rss_kib"] < 400 * 1024


def test_messages_for_nobody_are_skipped(server, store):
    Etcd(server, put("/x", 6, id="77") + put("/x", 6, id="0") + put("/x", 6, id="-1") +
         message(watch_id="77", created=True) + message(watch_id="77", canceled=True) +
         message() + put("/a", 6))
    watch = store.watch("/")
    watch.wait_key("/a", "x")
    assert "/x" not in watch.state and not store.count_notices("trouble")


def test_a_watch_created_twice_is_created(server, store):
    Etcd(server, message(watch_id="1", created=True) + put("/a", 6) +
         message(watch_id="1", created=True) + put("/b", 7))
    watch = store.watch("/")
    watch.wait_key("/b", "x")
    assert [n.name for n in store.notices] == ["watching"]
    watch.check()


def test_events_told_again_are_dropped(server, store):
    Etcd(server, put("/a", 6) + put("/b", 7) + put("/a", 6) + put("/b", 7) + put("/listed", 2) +
         message(watch_id="1", events=[{"type": "DELETE",
                                        "kv": {"key": b64("/none"), "mod_revision": "8"}}]) +
         put("/c", 9))
    watch = store.watch("/")
    watch.wait_key("/c", "x")
    assert [(e.key, e.revision) for e in watch.events] == [
        ("/listed", 2), ("/a", 6), ("/b", 7), ("/c", 9)]
    watch.check()


def test_events_out_of_order_are_not_believed(server, store):
    """The range is listed anew, and the difference told."""
    events = [{"kv": {"key": b64(k), "mod_revision": r, "version": "1"}}
              for k, r in (("/late", "9"), ("/early", "7"))]
    listed = iter([[("/listed", "2")], [("/late", "9"), ("/new", "8")]])

    def lists(request):
        kvs = [{"key": b64(k), "mod_revision": r, "version": "1"} for k, r in next(listed)]
        return http(200, {"header": dict(HEADER, revision="9" if len(kvs) > 1 else "5"), "kvs": kvs,
                          "count": str(len(kvs))})
    Etcd(server, message(watch_id="1", events=events), put("/then", 10), lists=lists)
    watch = store.watch("/")
    watch.wait_key("/then", "x")
    assert "out of order" in store.wait_notice("trouble").text
    assert set(watch.state) == {"/late", "/new", "/then"} and len(watch.syncs) == 2


def test_a_compaction_lists_anew(server, store):
    etcd = Etcd(server, message(watch_id="1", canceled=True, compact_revision="100"), put("/a", 6))
    # The stream stays open: that watch alone ended.
    etcd.streams[0] = (lambda say: lambda r: stay_open(etcd, r, say))(etcd.streams[0])
    watch = store.watch("/")
    watch.wait_sync(2)
    watch.wait_key("/a", "x")
    watch.check()


def stay_open(etcd, request, say):
    send = request.connection.sendall
    send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    send(chunk(message(watch_id="1", created=True)) + chunk(say))
    raise Hang


def test_a_stream_in_single_bytes_is_fine(server, store):
    def bytewise(request):
        send = request.connection.sendall
        send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for byte in message(watch_id="1", created=True) + b"\n \n" + put("/a", 6, "ä€"):
            send(chunk(bytes([byte])))
        raise Hang
    Etcd(server, bytewise)
    watch = store.watch("/")
    watch.wait_key("/a", "ä€")


def test_another_cluster_on_the_stream_is_noticed(server, store):
    other = as_json({"result": {"header": dict(HEADER, cluster_id="5"), "watch_id": "1"}})
    Etcd(server, put("/a", 6) + other, put("/b", 7))
    watch = store.watch("/")
    store.wait_notice("cluster-changed")
    watch.wait_sync(2)


def test_a_list_that_ends_half_way_is_begun_again(server, store):
    """What a first, broken listing showed is not told twice, what it did not show is not gone."""
    answers = iter([
        http(200, {"header": HEADER, "count": "2", "more": True,
                   "kvs": [{"key": b64("/a"), "mod_revision": "3", "version": "1"}]}),
        http(400, {"code": 11, "message": "etcdserver: mvcc: required revision has been compacted"}),
        http(200, {"header": HEADER, "count": "2", "kvs": [
            {"key": b64(k), "mod_revision": "3", "version": "1"} for k in ("/a", "/b")]})])
    Etcd(server, b"", lists=lambda r: next(answers))
    watch = store.watch("/")
    watch.wait_sync()
    store.wait_notice("watching")
    assert [(e.kind, e.key) for e in watch.events] == [("put", "/a"), ("put", "/b")]
    watch.check()


def test_pages_without_keys_do_not_go_round_for_ever(server, store):
    server.handler = lambda r: http(200, {"header": HEADER, "more": True, "count": "9"})
    reply = store.call("list", key="/")
    assert len(server.requests) == 1 and reply.kvs == []


def test_a_store_full_of_trouble_can_still_be_closed(server, store):
    """Everything under way at the end: calls are cancelled, nothing leaks."""
    def hang(request):
        raise Hang
    server.handler = hang
    store.watch("/")
    calls = [store.start(op, **args) for op, args in (
        ("put", {"key": "/a", "value": "1"}), ("list", {"key": "/"}), ("grant", {"ttl": 5}),
        ("txn", {"success": [{"put": "/b", "value": "1"}], "timeout": 2**32 - 1}))]
    server.wait(lambda: len(server.requests) >= 5)
    store.close()
    assert {c.reply.err for c in calls} == {"ECANCELED"}

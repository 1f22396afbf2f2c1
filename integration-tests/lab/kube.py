# SPDX-License-Identifier: Apache-2.0
"""A Kubernetes API server as far as a client of Nodes can tell, over real HTTP and TLS.

    api = KubeApi(node)                       # with TLS; listens on that node's loopback
    api.put("n1", labels={"zone": "a"})       # create or change; a new UID if it was deleted
    api.touch("n1")                           # a heartbeat: status and resourceVersion change
    api.delete("n1")
    api.kubeconfig(token="...")               # a file for the client; also user=certificate
    api.compact()                             # older resource versions have expired: 410
    api.cut()                                 # every open watch breaks off
    api.fault = lambda request: reply(503)    # instead of the answer; None: answer as usual
    api.requests                              # (verb, query, name, token) of everything asked

The shapes and rules are those of the documented API: lists by limit and continue with the
snapshot of the first page, watches from a resourceVersion (exclusive) with bookmarks and
timeoutSeconds, 410 for expired ones (as a status when a watch or a page is asked for; as an
ERROR event in a stream that is open), Status objects for every refusal, NotFound with its
details, 401 before 403, and no word on kind in the items of a list.
"""

import base64
import collections
import http.server
import json
import socket
import socketserver
import ssl
import threading
import time
import urllib.parse
import uuid

Request = collections.namedtuple("Request", "verb query name token at")


class Reply:
    """What a fault makes the server do: see reply() and the classes below."""


class Say(Reply):
    def __init__(self, status, body, headers=()):
        self.status, self.body, self.headers = status, body, dict(headers)


class Stream(Reply):
    """A watch whose body is these bytes, in pieces; then it ends, or hangs with stay."""

    def __init__(self, *pieces, stay=False):
        self.pieces, self.stay = pieces, stay


class Late(Reply):
    """This answer, but only when the event has been set."""

    def __init__(self, event, answer):
        self.event, self.answer = event, answer


class Hang(Reply):
    """No answer at all, until the server is closed."""


class Cut(Reply):
    """The connection is closed without an answer."""


def status(code, reason="", message="", **more):
    """A Status object, as every refusal has one."""
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, "reason": reason, **more, "code": code}


def reply(code, reason="", message="", headers=(), **more):
    return Say(code, status(code, reason, message, **more), headers)


def event(type, object):
    return json.dumps({"type": type, "object": object}).encode() + b"\n"


def expired(version="1"):
    return status(410, "Expired", f"too old resource version: {version} (99999)")


class KubeApi:
    """Its own thread for each connection; everything below one lock."""

    def __init__(self, node, tls=True, address="127.0.0.1", page_limit=500):
        self.lab = lab = node.lab
        self.tls, self.page_limit = tls, page_limit
        self.changed = threading.Condition()
        self.version, self.oldest = 1000, 1000
        self.nodes = {}         # name -> object
        self.log = []           # (version, type, object)
        self.snapshots = {}     # continue token -> (version, [objects that are left])
        self.requests = []
        self.tokens = None      # None: anybody; else the set of those that are known
        self.fault = None
        self.bookmark_every = 0.2
        self.certificates = []  # subjects of client certificates that were shown
        self._epoch = 0         # watches of an older one are cut off
        self._over = threading.Event()
        self._sockets = set()
        api = self

        class Handler(_Handler):
            pass
        Handler.api = api
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._server = _Server((address, 0), Handler, node.socket(family, socket.SOCK_STREAM))
        if tls:
            self.certificate = lab.authority.issue("kube-api", addresses=[address],
                                                   dns=["kubernetes"])
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.certificate.cert, self.certificate.key)
            context.load_verify_locations(lab.authority.cert)
            context.verify_mode = ssl.CERT_OPTIONAL
            self._server.context = context
        self.host, self.port = address, self._server.server_address[1]
        shown = f"[{address}]" if ":" in address else address
        self.url = f"{'https' if tls else 'http'}://{shown}:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def close(self):
        self._over.set()
        with self.changed:
            self._epoch += 1
            self.changed.notify_all()
        self._server.shutdown()
        self._server.server_close()
        for s in list(self._sockets):
            _shut(s)

    # --- the cluster ----------------------------------------------------------------------------

    def put(self, name, labels=None, pod_cidrs=(), status_bytes=0, **metadata):
        """Create or change a Node; returns its UID."""
        with self.changed:
            old = self.nodes.get(name)
            self.version += 1
            now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            meta = {"name": name, "uid": old["metadata"]["uid"] if old else str(uuid.uuid4()),
                    "resourceVersion": str(self.version), "creationTimestamp": now,
                    "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux",
                               **(labels or {})},
                    "annotations": {"node.alpha.kubernetes.io/ttl": "0"},
                    "managedFields": _managed_fields(now), **metadata}
            spec = {"podCIDR": pod_cidrs[0], "podCIDRs": list(pod_cidrs)} if pod_cidrs else {}
            self._set(name, {"metadata": meta, "spec": spec,
                             "status": _node_status(name, now, status_bytes)},
                      "MODIFIED" if old else "ADDED")
            return meta["uid"]

    def touch(self, name):
        """What the kubelet does every few seconds."""
        with self.changed:
            self.version += 1
            node = json.loads(json.dumps(self.nodes[name]))
            node["metadata"]["resourceVersion"] = str(self.version)
            node["status"]["conditions"][0]["lastHeartbeatTime"] = str(time.time())
            self._set(name, node, "MODIFIED")

    def delete(self, name, silently=False):
        """silently: no event is sent, as if it had happened while nobody watched."""
        with self.changed:
            self.version += 1
            node = json.loads(json.dumps(self.nodes.pop(name)))
            node["metadata"]["resourceVersion"] = str(self.version)
            if not silently:
                self.log.append((self.version, "DELETED", node))
            self.changed.notify_all()

    def _set(self, name, node, type):
        self.nodes[name] = node
        self.log.append((self.version, type, node))
        self.changed.notify_all()

    def compact(self):
        """Forget history: whoever stands at an older version is told 410."""
        with self.changed:
            self.version += 1
            self.oldest = self.version
            self.snapshots.clear()
            self.changed.notify_all()

    def cut(self):
        """Every watch that is open breaks off."""
        with self.changed:
            self._epoch += 1
            self.changed.notify_all()

    def say_to_watches(self, data):
        """Bytes into every stream that is open, followed by silence."""
        with self.changed:
            self.log.append((self.version, "RAW", data))
            self.changed.notify_all()

    # --- what the test sees ---------------------------------------------------------------------

    def count(self, verb, name=None):
        with self.changed:
            return sum(r.verb == verb and name in (None, r.name) for r in self.requests)

    def wait(self, fn, timeout=30, what=""):
        with self.changed:
            assert self.changed.wait_for(fn, timeout), \
                f"waited {timeout} s for {what or fn}; asked so far: {self.requests[-5:]}"
            return fn()

    def wait_requests(self, verb, n, timeout=30):
        self.wait(lambda: sum(r.verb == verb for r in self.requests) >= n, timeout, f"{verb} no. {n}")

    # --- how the client finds it ----------------------------------------------------------------

    def kubeconfig(self, user=None, token=None, token_file=None, data=False, name="kubeconfig",
                   cluster=None, **user_fields):
        """A kubeconfig as kubectl writes them; user: a certificate; data: inside instead of paths."""
        def b64(path):
            return base64.b64encode(path.read_bytes()).decode()
        lines = ["apiVersion: v1", "kind: Config", "preferences: {}", "current-context: lab",
                 "contexts:", "- context:", "    cluster: lab", "    user: tester", "  name: lab",
                 "clusters:", "- cluster:", f"    server: {self.url}"]
        if self.tls and cluster is None:
            lines.append(f"    certificate-authority-data: {b64(self.lab.authority.cert)}" if data
                         else f"    certificate-authority: {self.lab.authority.cert}")
        lines += [f"    {k}: {v}" for k, v in (cluster or {}).items()]
        lines += ["  name: lab", "users:", "- name: tester"]
        fields = dict(user_fields)
        if user and data:
            fields |= {"client-certificate-data": b64(user.cert), "client-key-data": b64(user.key)}
        elif user:
            fields |= {"client-certificate": user.cert, "client-key": user.key}
        if token:
            fields["token"] = token
        if token_file:
            fields["tokenFile"] = token_file
        lines += ["  user:", *[f"    {k}: {v}" for k, v in fields.items()]] if fields else ["  user: {}"]
        path = self.lab.dir / name
        path.write_text("\n".join(lines) + "\n")
        path.chmod(0o600)
        return path

    def service_account(self, token, name="serviceaccount"):
        """A folder as the kubelet mounts it: links into a folder that is swapped whole."""
        folder = self.lab.dir / name
        real = folder / f"..{time.monotonic_ns()}"
        real.mkdir(parents=True)
        (real / "token").write_text(token)
        (real / "ca.crt").write_bytes(self.lab.authority.cert.read_bytes())
        link = folder / "..data.new"
        link.symlink_to(real.name)
        link.rename(folder / "..data")
        for file in "token", "ca.crt":
            if not (folder / file).is_symlink():
                (folder / file).symlink_to(f"..data/{file}")
        return folder


# --- HTTP ---------------------------------------------------------------------------------------


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64  # a SYN that is dropped is sent again after a second
    context = None

    def __init__(self, address, handler, sock):
        """sock: a socket of the namespace in which to listen."""
        super().__init__(address, handler, bind_and_activate=False)
        self.socket.close()
        self.socket = sock
        self.server_bind()
        self.server_activate()

    def server_bind(self):
        socketserver.TCPServer.server_bind(self)  # http.server's would look up our name

    def handle_error(self, request, client_address):
        pass  # clients hang up, and TLS fails, as the tests want it


def _shut(sock):
    try:
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    api = None

    def setup(self):
        if self.server.context:
            # In this connection's thread: one that does not speak TLS holds up nobody.
            self.request.settimeout(30)
            self.request = self.server.context.wrap_socket(self.request, server_side=True)
            self.request.settimeout(None)
            if (shown := self.request.getpeercert()):
                self.api.certificates.append(shown["subject"])
        self.api._sockets.add(self.request)
        super().setup()

    def finish(self):
        self.api._sockets.discard(self.request)
        super().finish()

    def log_message(self, *args):
        pass

    def do_GET(self):
        api = self.api
        where = urllib.parse.urlsplit(self.path)
        query = {k: v[-1] for k, v in urllib.parse.parse_qs(where.query, True).items()}
        name = where.path.removeprefix("/api/v1/nodes").strip("/") or None
        verb = "get" if name else "watch" if query.get("watch") in ("1", "true") else "list"
        scheme, _, token = self.headers.get("Authorization", "").partition(" ")
        request = Request(verb, query, name, token if scheme == "Bearer" else None, time.monotonic())
        with api.changed:
            api.requests.append(request)
            api.changed.notify_all()
            answer = api.fault(request) if api.fault else None
            if answer is None:
                answer = self._answer(where.path, request)
        self._send(answer, request)

    def do_POST(self):
        self._send(reply(405, "MethodNotAllowed", "the server does not allow this method"), None)

    def _answer(self, path, request):
        api = self.api
        known = api.tokens is None or request.token in api.tokens
        if not known and not (self.server.context and self.request.getpeercert()):
            return reply(401, "Unauthorized", "Unauthorized")
        if not path.startswith("/api/v1/nodes"):
            return Say(404, b"404 page not found\n")
        if request.verb == "get":
            node = api.nodes.get(request.name)
            if node is None:
                return reply(404, "NotFound", f'nodes "{request.name}" not found',
                             details={"name": request.name, "kind": "nodes"})
            return Say(200, {"kind": "Node", "apiVersion": "v1", **node})
        if request.verb == "list":
            return self._list(request.query)
        if int(request.query.get("resourceVersion") or 0) < api.oldest:
            return Say(410, expired(request.query.get("resourceVersion")))
        return None

    def _list(self, query):
        api = self.api
        limit = int(query.get("limit") or 0) or api.page_limit
        if "continue" in query:
            # Of a token that has expired, or that nobody gave out, the server says the same.
            if query["continue"] not in api.snapshots:
                return Say(410, status(410, "Expired", "The provided continue parameter is too old "
                                       "to display a consistent list result."))
            version, left = api.snapshots.pop(query["continue"])
        else:
            version, left = api.version, [api.nodes[n] for n in sorted(api.nodes)]
        meta = {"resourceVersion": str(version)}
        if len(left) > limit:
            # As opaque as the real one, with characters that must be escaped in a query.
            token = base64.b64encode(json.dumps({"v": "meta.k8s.io/v1", "rv": version,
                                                 "start": f"{uuid.uuid4()}?>~"}).encode()).decode()
            api.snapshots[token] = (version, left[limit:])
            meta |= {"continue": token, "remainingItemCount": len(left) - limit}
        return Say(200, {"kind": "NodeList", "apiVersion": "v1", "metadata": meta,
                         "items": left[:limit]})

    # --- sending --------------------------------------------------------------------------------

    def _send(self, answer, request):
        if isinstance(answer, Late):
            answer.event.wait(60)
            answer = answer.answer
        if answer is None:
            self._watch(request.query)
        elif isinstance(answer, Say):
            self._say(answer)
        elif isinstance(answer, Stream):
            self._head()
            for piece in answer.pieces:
                self._chunk(piece)
            if answer.stay:
                self.api._over.wait()
            self._chunk(b"")
        elif isinstance(answer, Hang):
            self.api._over.wait()
            self.close_connection = True
        else:
            self.close_connection = True
            _shut(self.request)

    def _say(self, answer):
        body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        self.send_response(answer.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _head(self):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def _chunk(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def _watch(self, query):
        """Follow the log from a version on, until the time is over or the stream is cut."""
        api = self.api
        at, sent, mark = int(query["resourceVersion"]), 0, time.monotonic()
        end = mark + float(query.get("timeoutSeconds", 1800))
        epoch = api._epoch
        self._head()
        while True:
            with api.changed:
                now = time.monotonic()
                new = [e for e in api.log[sent:] if e[0] > at or e[1] == "RAW"]
                sent = len(api.log)
                if not new and epoch == api._epoch and now < end and at >= api.oldest:
                    api.changed.wait(min(end - now, api.bookmark_every))
                    now, new = time.monotonic(), [e for e in api.log[sent:]
                                                  if e[0] > at or e[1] == "RAW"]
                    sent = len(api.log)
                broken, over = epoch != api._epoch, now >= end
                old = at < api.oldest
                version = api.version
            if broken:
                self.close_connection = True
                _shut(self.request)
                return
            if old:
                self._chunk(event("ERROR", expired(at)))
                return self._chunk(b"")
            for moment, type, node in new:
                if type == "RAW":
                    self._chunk(node)
                    continue
                self._chunk(event(type, {"kind": "Node", "apiVersion": "v1", **node}))
                at = moment
            if over:
                return self._chunk(b"")
            if query.get("allowWatchBookmarks") == "true" and now - mark >= api.bookmark_every:
                mark, at = now, max(at, version)
                self._chunk(event("BOOKMARK", {"kind": "Node", "apiVersion": "v1", "metadata": {
                    "resourceVersion": str(at), "creationTimestamp": None}, "spec": {}, "status": {
                    "daemonEndpoints": {"kubeletEndpoint": {"Port": 0}}, "nodeInfo": {}}}))


# --- as large and as deep as real ones ----------------------------------------------------------


def _managed_fields(now):
    return [{"manager": "kubelet", "operation": "Update", "apiVersion": "v1", "time": now,
             "fieldsType": "FieldsV1", "fieldsV1": {
                 "f:metadata": {"f:labels": {".": {}, "f:kubernetes.io/os": {}}},
                 "f:status": {"f:conditions": {'k:{"type":"Ready"}': {
                     ".": {}, "f:lastHeartbeatTime": {}, "f:status": {}}}}},
             "subresource": "status"}]


def _node_status(name, now, size):
    image = {"names": ["x" * 200], "sizeBytes": 12345678}
    return {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": now,
                            "lastTransitionTime": now, "reason": "KubeletReady",
                            "message": "kubelet is posting ready status"}],
            "addresses": [{"type": "InternalIP", "address": "192.0.2.7"},
                          {"type": "Hostname", "address": name}],
            "nodeInfo": {"machineID": "0" * 32, "kernelVersion": "6.1.0", "osImage": "Debian \u2713"},
            "images": [image] * (size // 230)}

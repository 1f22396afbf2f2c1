# SPDX-License-Identifier: Apache-2.0
"""An agent's local API as far as a plugin can tell: docs/API.md in a thread.

Give answer() to have it say what you like: it returns (status, object), bytes to be sent
as they are, or None for no answer at all.
"""

import json
import os
import socket
import threading


class FakeAgent:
    """Listens on a path that may lie in a node: FakeAgent(node.path("/run/roost/agent.sock"))."""

    def __init__(self, path, answer=None, addresses=("10.77.0.5",), length=24, gateway="10.77.0.1",
                 routes=(), mtu=0, node=None):
        """node: where it destroys the links of pods that are detached."""
        self.path, self.answer = str(path), answer or self.serve
        self.addresses, self.length, self.gateway = list(addresses), length, gateway
        self.routes, self.mtu, self.node = list(routes), mtu, node
        self.attached = {}  # likewise -> the body of attach
        self.held = {}      # (network, container, interface) -> addresses
        self.requests = []  # (path, body) in order of arrival
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._threads = []
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(self.path)
        self._socket.listen(64)
        self._thread = threading.Thread(target=self._accept)
        self._thread.start()

    def close(self):
        """Stop and leave the socket's file behind, as a killed agent does; twice does no harm."""
        if self._closing.is_set():
            return
        self._closing.set()
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        for t in self._threads:
            t.join()
        self._socket.close()

    def remove(self):
        self.close()
        os.unlink(self.path)

    def bodies(self, path):
        """What was asked there."""
        return [b for p, b in self.requests if p == path]

    # --- what a good agent says -----------------------------------------------------------------

    def serve(self, path, body):
        key = body and (body["network"], body.get("container"), body.get("interface"))
        if path == "/v1/ipam/assign":
            existing = key in self.held
            self.held.setdefault(key, list(self.addresses))
            return 200, {"addresses": [self._given(a) for a in self.held[key]],
                         "routes": self.routes, "dns": {}, "existing": existing,
                         "mtu": self.mtu}
        if path == "/v1/ipam/release":
            return 200, {"released": self.held.pop(key, [])}
        if path == "/v1/ipam/check":
            if key not in self.held:
                return 404, {"code": 3, "error": "no such attachment", "details": ""}
            if body["addresses"] != self.held[key]:
                return 409, {"code": 103, "error": "holds other addresses", "details": ""}
            return 200, {"addresses": []}
        if path in ("/v1/ipam/gc", "/v1/gc"):
            return 200, {"released": []}
        if path in ("/v1/attach", "/v1/check"):
            return self._attach(key, body, path == "/v1/check")
        if path == "/v1/detach":
            return self._detach(key)
        if path == "/v1/node":
            return 200, {"node": "n1", "mtu": self.mtu}
        return 200, {"ready": True}

    def _detach(self, key):
        body = self.attached.pop(key, None)
        if self.node and body:
            self.node.run(["ip", "link", "delete", body["link"]], check=False)
        return 200, {"released": self.held.pop(key, [])}

    def _attach(self, key, body, check):
        ours = body["ipam"] == "roost-ipam"
        if (ours and key not in self.held) or (check and key not in self.attached):
            return 404, {"code": 3, "error": "no such attachment", "details": ""}
        if ours and body["addresses"] != self.held[key]:
            return 409, {"code": 103, "error": "holds other addresses", "details": ""}
        self.attached.setdefault(key, body)
        return 200, {}

    def _given(self, address):
        six = ":" in address
        return {"address": address, "length": 64 if six else self.length, "pool": "web",
                "network": "default", "gateway": "" if six else self.gateway}

    # --- HTTP -----------------------------------------------------------------------------------

    def _accept(self):
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            t = threading.Thread(target=self._handle, args=(connection,))
            self._threads.append(t)
            t.start()

    def _handle(self, connection):
        with connection:
            try:
                path, body = self._read(connection.makefile("rb"))
                with self._lock:
                    self.requests.append((path, body))
                    reply = self.answer(path, body)
                if reply is None:
                    self._closing.wait()
                    return
                connection.sendall(reply if isinstance(reply, bytes) else self._http(*reply))
            except OSError:  # the plugin is gone
                pass

    @staticmethod
    def _read(f):
        path = f.readline().decode().split()[1]
        length = 0
        while (line := f.readline().strip()):
            name, _, value = line.decode().partition(":")
            length = int(value) if name.lower() == "content-length" else length
        return path, json.loads(f.read(length)) if length else None

    @staticmethod
    def _http(status, reply):
        body = json.dumps(reply).encode()
        return (f"HTTP/1.1 {status} x\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\n\r\n").encode() + body

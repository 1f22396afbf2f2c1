# SPDX-License-Identifier: Apache-2.0
"""etcd's JSON gateway, as the test's own eyes and hands.

Each member is asked from inside its own namespace, so what a test cuts or delays on
the network never hinders the test itself.
"""

import base64
import http.client
import json
import socket
import ssl
import threading

PORT = 2379


class EtcdError(AssertionError):
    """etcd refused. code is gRPC's."""

    def __init__(self, code, message):
        super().__init__(f"{message} (code {code})")
        self.code, self.message = code, message


class Gateway(threading.local):
    """Speaks with one member over a kept connection, one for each thread."""

    def __init__(self, node, address, tls=None):
        """tls: (authority, certificate) of a client."""
        self._node, self._address = node, address
        self._context = None
        if tls:
            authority, certificate = tls
            self._context = ssl.create_default_context(cafile=str(authority.cert))
            self._context.load_cert_chain(certificate.cert, certificate.key)
        self._connection = None

    def connect(self, timeout):
        connection = http.client.HTTPConnection(self._address, PORT, timeout=timeout)
        sock = self._node.socket()
        try:
            sock.settimeout(timeout)
            sock.connect((self._address, PORT))
            # Head and body go in two writes; the second would wait 40 ms for an ack.
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.sock = (self._context.wrap_socket(sock, server_hostname=self._address)
                               if self._context else sock)
        except BaseException:
            sock.close()
            raise
        return connection

    def close(self):
        if self._connection:
            self._connection.close()
        self._connection = None

    def request(self, path, body=None, token=None, timeout=2.0):
        """POST body (GET without one) and return the reply; OSError or EtcdError."""
        try:
            self._connection = self._connection or self.connect(timeout)
            return self._once(path, body, token, timeout)
        except OSError:
            self.close()
            raise
        except http.client.HTTPException as e:
            self.close()
            raise ConnectionError(str(e)) from e

    def _once(self, path, body, token, timeout):
        self._connection.sock.settimeout(timeout)
        headers = {"Authorization": token} if token else {}
        self._connection.request("GET" if body is None else "POST", path,
                                 None if body is None else json.dumps(body), headers)
        reply = self._connection.getresponse()
        text = reply.read()
        try:
            answer = json.loads(text)
        except ValueError:
            raise EtcdError(2, text.decode(errors="replace")) from None
        if "error" in answer or "code" in answer:
            raise EtcdError(answer.get("code", 2), answer.get("message", str(answer)))
        return answer

    def stream(self, path, body, token=None, timeout=10.0):
        """POST body and yield the messages of the reply, each within the timeout."""
        connection = self.connect(timeout)
        try:
            headers = {"Authorization": token} if token else {}
            connection.request("POST", path, json.dumps(body), headers)
            for line in connection.getresponse():
                message = json.loads(line)
                if "error" in message:
                    e = message["error"]
                    raise EtcdError(e.get("grpc_code", e.get("code", 2)), e.get("message"))
                yield message["result"]
        finally:
            connection.close()


def b64(text):
    return base64.b64encode(text.encode()).decode()


def unb64(text):
    return base64.b64decode(text or "").decode(errors="replace")


def prefix_end(prefix):
    """The first key after all that begin with prefix; "" is every key."""
    return prefix[:-1] + chr(ord(prefix[-1]) + 1) if prefix else "\0"

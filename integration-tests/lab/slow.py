# SPDX-License-Identifier: Apache-2.0
"""A way to etcd on which every message takes its time, without netem.

    slow = Slow(etcd)                      # listens on another port of its first member
    agent = Agent(n1, build, slow)         # in etcd's place: the same, but for flags()
    slow.delay = 3                         # from now on, for what clients send
    slow.watched()                         # the ranges that the client watches
    slow.cut(); slow.close()

Connections are made at once; it is the answers that take long.
"""

import json
import re
import socket
import threading
import time

from .gateway import PORT, unb64


class Slow:
    """Forwards connections to the first member of etcd."""

    def __init__(self, etcd, port=12379):
        self._etcd, self._member, self.delay = etcd, etcd.members[0], 0.0
        self.url = f"http://{self._member.address}:{port}"
        self._open, self._said = [], bytearray()
        self._listener = self._member.node.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind((self._member.address, port))
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def __getattr__(self, name):
        return getattr(self._etcd, name)

    def flags(self, program=None):
        flags = self._etcd.flags(program)
        flags[flags.index("--etcd") + 1] = self.url
        return flags

    def watched(self):
        """(key, range end or "") of each watch of the newest stream: a new one has all of them."""
        newest = bytes(self._said).rpartition(b"POST /v3/watch ")[2]
        asked = [json.loads(r) for r in re.findall(rb'"create_request":({.*?})', newest)]
        return [(unb64(a["key"]), unb64(a.get("range_end", ""))) for a in asked]

    def cut(self):
        """End all connections; new ones are taken."""
        _end(self._open)
        self._open = []

    def close(self):
        _end([self._listener, *self._open])

    def _accept(self):
        while True:
            try:
                client = self._listener.accept()[0]
                server = self._member.node.socket()
                server.connect((self._member.address, PORT))
            except OSError:
                return
            self._open += [client, server]
            for a, b, slow in (client, server, True), (server, client, False):
                a.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self._forward, args=(a, b, slow), daemon=True).start()

    def _forward(self, source, to, slow):
        try:
            while data := source.recv(65536):
                if slow:
                    self._said += data
                    time.sleep(self.delay)
                to.sendall(data)
        except OSError:
            pass
        _end([to])


def _end(sockets):
    for s in sockets:
        try:
            s.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        s.close()

# SPDX-License-Identifier: Apache-2.0
"""One echo request and its reply, without a program: cheap enough to poll with."""

import os
import select
import socket
import struct
import time


def _checksum(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ping(make_socket, address, timeout):
    """True if the reply came; False if not, or if there is no route to try."""
    six = ":" in address
    family, proto = ((socket.AF_INET6, socket.IPPROTO_ICMPV6) if six
                     else (socket.AF_INET, socket.IPPROTO_ICMP))
    request, reply = (128, 129) if six else (8, 0)
    # The cookie tells our reply from those to other tests' requests on the same node.
    cookie = os.urandom(16)
    packet = struct.pack("!BBHHH", request, 0, 0, 1, 1) + cookie
    if not six:  # for ICMPv6 the kernel fills it in
        packet = packet[:2] + struct.pack("!H", _checksum(packet)) + packet[4:]
    with make_socket(family, socket.SOCK_RAW, proto) as s:
        try:
            s.sendto(packet, (address, 0))
            deadline = time.monotonic() + timeout
            while select.select([s], [], [], max(0, deadline - time.monotonic()))[0]:
                data, sender = s.recvfrom(2048)
                if not six:
                    data = data[(data[0] & 15) * 4:]
                if data[:1] == bytes([reply]) and data[8:] == cookie:
                    return True
        except OSError:  # unreachable, prohibited
            return False
    return False

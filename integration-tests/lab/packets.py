# SPDX-License-Identifier: Apache-2.0
"""Packets that no decent program sends, for tests of what a kernel does with them."""

import socket
import struct


def checksum(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def mac(text):
    return bytes.fromhex(text.replace(":", ""))


def ethernet(dst, src, kind, payload):
    return mac(dst) + mac(src) + struct.pack("!H", kind) + payload


def udp4(src, dst, port, data):
    """An IPv4 packet with a UDP datagram, from any address to any address."""
    udp = struct.pack("!HHHH", 9, port, 8 + len(data), 0) + data  # without a checksum
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, socket.IPPROTO_UDP, 0,
                     socket.inet_aton(src), socket.inet_aton(dst))
    return ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:] + udp


def udp6(src, dst, port, data):
    """The same of IPv6, where a datagram must have its checksum."""
    ends = b"".join(socket.inet_pton(socket.AF_INET6, a) for a in (src, dst))
    udp = struct.pack("!HHHH", 9, port, 8 + len(data), 0) + data
    pseudo = ends + struct.pack("!II", len(udp), socket.IPPROTO_UDP)
    udp = udp[:6] + struct.pack("!H", checksum(pseudo + udp) or 0xFFFF) + udp[8:]
    return struct.pack("!IHBB", 6 << 28, len(udp), socket.IPPROTO_UDP, 64) + ends + udp


def advertisement(src, prefix):
    """A router's IPv6 advertisement to all nodes: be the default, /64 for addresses."""
    to = socket.inet_pton(socket.AF_INET6, "ff02::1")
    source = socket.inet_pton(socket.AF_INET6, src)
    option = struct.pack("!BBBBIII16s", 3, 4, 64, 0xC0, 3600, 1800, 0,
                         socket.inet_pton(socket.AF_INET6, prefix))
    icmp = struct.pack("!BBHBBHII", 134, 0, 0, 64, 0, 1800, 0, 0) + option
    pseudo = source + to + struct.pack("!II", len(icmp), socket.IPPROTO_ICMPV6)
    icmp = icmp[:2] + struct.pack("!H", checksum(pseudo + icmp)) + icmp[4:]
    return struct.pack("!IHBB", 6 << 28, len(icmp), socket.IPPROTO_ICMPV6, 255) + source + to + icmp

# SPDX-License-Identifier: Apache-2.0
"""As much of protobuf's encoding as a client of the container runtime interface needs."""


def _varint(n):
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def field(number, value):
    """One field: an int, a text, or the bytes of a message."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def mapping(number, entries):
    """A map<string, string>."""
    return b"".join(field(number, field(1, k) + field(2, v)) for k, v in entries.items())


def fields(data):
    """{number: [values]}: ints, and bytes for all that has a length."""
    out, i = {}, 0

    def varint():
        nonlocal i
        value = shift = 0
        while True:
            byte = data[i]
            i += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value
    while i < len(data):
        tag = varint()
        kind = tag & 7
        if kind == 0:
            value = varint()
        else:
            n = {1: 8, 5: 4}.get(kind) or varint()
            value, i = data[i:i + n], i + n
        out.setdefault(tag >> 3, []).append(value)
    return out


def text(message, number):
    """A text field of a decoded message, empty if absent."""
    return message.get(number, [b""])[0].decode()

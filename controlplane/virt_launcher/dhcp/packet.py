# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Builds the reply to a guest's DHCP packet. Pure: bytes in, bytes out. RFC 2131, 2132, 3397.

The guest may send any bytes: every read is bounded by the packet's length, and a packet that is not a valid request of
our guest gets no reply.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

MESSAGE_LIMIT = 576
"""The size that every client must accept (RFC 2131, section 2). Options that do not fit are omitted."""

_HEADER = struct.Struct(">BBBBIHH4s4s4s4s16s64s128s4s")
_COOKIE = b"\x63\x82\x53\x63"
_REQUEST, _REPLY, _ETHERNET = 1, 2, 1
_DISCOVER, _OFFER, _DHCP_REQUEST, _ACK, _NAK, _INFORM = 1, 2, 3, 5, 6, 8
_PAD, _END = 0, 255
_INFINITE = b"\xff\xff\xff\xff"
_NOWHERE = b"\0\0\0\0"
_UDP_IP_BYTES = 28
_LEAST_BYTES = 300
_BROADCAST_FLAG = 0x8000


@dataclass(frozen=True, slots=True)
class Lease:
    """What the guest gets. Addresses are four bytes."""

    mac: bytes
    address: bytes
    mask: bytes
    router: bytes
    mtu: int
    hostname: str
    servers: tuple[bytes, ...] = ()
    """DNS servers."""
    search: tuple[str, ...] = ()
    """DNS search domains; the first is also the guest's domain name."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A packet and its destination: the broadcast address, or the guest's address if it has one."""

    packet: bytes
    destination: bytes


def reply_to(packet: bytes, lease: Lease) -> Reply | None:
    """Return the reply to a packet; None when it is not a request of our guest."""
    if len(packet) < _HEADER.size:
        return None
    (
        operation,
        hardware,
        length,
        _unused,
        transaction,
        _unused,
        _unused,
        current,
        _unused,
        _unused,
        _unused,
        client,
        _unused,
        _unused,
        cookie,
    ) = _HEADER.unpack_from(packet)
    is_ours = client[:6] == lease.mac and (operation, hardware, length) == (_REQUEST, _ETHERNET, 6)
    if not is_ours or cookie != _COOKIE:
        return None
    options = _parse_options(packet[_HEADER.size :])
    kind = _decide(options, current, lease)
    if kind is None:
        return None
    is_inform = options.get(53) == bytes([_INFORM])
    header = _HEADER.pack(
        _REPLY,
        _ETHERNET,
        6,
        0,
        transaction,
        0,
        _BROADCAST_FLAG,
        _NOWHERE if kind == _NAK else current,
        _NOWHERE if kind == _NAK or is_inform else lease.address,
        _NOWHERE,
        _NOWHERE,
        client,
        b"",
        b"",
        _COOKIE,
    )
    body = header + _render_options(kind, lease, with_lease=not is_inform)
    to_guest = kind == _ACK and current == lease.address
    return Reply(body.ljust(_LEAST_BYTES, b"\0"), lease.address if to_guest else b"\xff\xff\xff\xff")


def _decide(options: dict[int, bytes], current: bytes, lease: Lease) -> int | None:
    """Return the kind of the reply."""
    kind = options.get(53)
    if kind == bytes([_DISCOVER]):
        return _OFFER
    if kind == bytes([_INFORM]):
        return _ACK
    if kind != bytes([_DHCP_REQUEST]) or options.get(54, lease.router) != lease.router:
        return None  # not a request, or a request to another server
    address = options.get(50, current)
    return _ACK if address == lease.address else _NAK


def _parse_options(data: bytes) -> dict[int, bytes]:
    """Parse options up to the end mark or the first malformed one."""
    options: dict[int, bytes] = {}
    at = 0
    while at < len(data) and data[at] != _END:
        if data[at] == _PAD:
            at += 1
            continue
        if at + 1 >= len(data) or at + 2 + data[at + 1] > len(data):
            break
        options.setdefault(data[at], data[at + 2 : at + 2 + data[at + 1]])
        at += 2 + data[at + 1]
    return options


def _render_options(kind: int, lease: Lease, *, with_lease: bool) -> bytes:
    options = _option(53, bytes([kind])) + _option(54, lease.router)
    if kind != _NAK:
        if with_lease:
            options += _option(51, _INFINITE)
        options += _option(1, lease.mask) + _option(3, lease.router) + _option(26, struct.pack(">H", lease.mtu))
        room = MESSAGE_LIMIT - _UDP_IP_BYTES - _HEADER.size - 1
        for code, data in _optional(lease):
            if data and len(data) <= 255 and len(options) + 2 + len(data) <= room:
                options += _option(code, data)
    return options + bytes([_END])


def _optional(lease: Lease) -> list[tuple[int, bytes]]:
    """Return the options that may be omitted, the most useful first."""
    return [
        (6, b"".join(lease.servers)),
        (12, lease.hostname.encode()),
        (15, lease.search[0].encode() if lease.search else b""),
        (119, encode_search(lease.search)),
    ]


def _option(code: int, data: bytes) -> bytes:
    return bytes([code, len(data)]) + data


def encode_search(domains: tuple[str, ...]) -> bytes:
    """Encode search domains, uncompressed, as many as fit into one option. Invalid names are omitted."""
    result = b""
    for domain in domains:
        labels = domain.rstrip(".").encode("ascii", "ignore").split(b".")
        if not all(0 < len(label) < 64 for label in labels):
            continue
        encoded = b"".join(bytes([len(label)]) + label for label in labels) + b"\0"
        if len(result) + len(encoded) > 255:
            break
        result += encoded
    return result

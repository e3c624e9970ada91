# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import dataclasses
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.virt_launcher.dhcp.packet import MESSAGE_LIMIT, Lease, Reply, encode_search, reply_to

MAC = bytes.fromhex("02fddc9e5bfb")
GUEST, ROUTER, NOWHERE, EVERYBODY = b"\x0a\0\2\2", b"\x0a\0\2\1", b"\0\0\0\0", b"\xff\xff\xff\xff"
LEASE = Lease(
    mac=MAC,
    address=GUEST,
    mask=b"\xff\xff\xff\0",
    router=ROUTER,
    mtu=1450,
    hostname="web",
    servers=(b"\x0a\x60\0\x0a",),
    search=("default.svc.cluster.local", "cluster.local"),
)
DISCOVER, OFFER, REQUEST, DECLINE, ACK, NAK, RELEASE, INFORM = range(1, 9)


def question(
    kind: int, *, mac: bytes = MAC, current: bytes = NOWHERE, options: bytes = b"", operation: int = 1
) -> bytes:
    head = struct.pack(">BBBBIHH4s4s4s4s16s64x128x", operation, 1, 6, 0, 0xABCD, 0, 0, current, *[NOWHERE] * 3, mac)
    return head + b"\x63\x82\x53\x63" + bytes([53, 1, kind]) + options + b"\xff"


def read(given: Reply | None) -> tuple[int, bytes, dict[int, bytes]]:
    """Return message type, address and options of a reply."""
    assert given is not None
    options: dict[int, bytes] = {}
    rest = given.packet[240:]
    while rest[0] != 255:
        options[rest[0]] = rest[2 : 2 + rest[1]]
        rest = rest[2 + rest[1] :]
    return options[53][0], given.packet[16:20], options


def test_an_offer_has_all_that_the_guest_needs() -> None:
    kind, address, options = read(reply_to(question(DISCOVER), LEASE))
    assert (kind, address) == (OFFER, GUEST)
    assert options == {
        53: bytes([OFFER]),
        54: ROUTER,
        51: EVERYBODY,
        1: b"\xff\xff\xff\0",
        3: ROUTER,
        26: b"\x05\xaa",
        6: b"\x0a\x60\0\x0a",
        12: b"web",
        15: b"default.svc.cluster.local",
        119: b"\x07default\x03svc\x07cluster\x05local\0\x07cluster\x05local\0",
    }


def test_a_reply_matches_its_request() -> None:
    reply = reply_to(question(DISCOVER), LEASE)
    assert reply is not None
    assert reply.packet[:8] == b"\2\1\6\0" + (0xABCD).to_bytes(4, "big")
    assert reply.packet[28:34] == MAC


@pytest.mark.parametrize(
    ("kind", "current", "options", "expected"),
    [
        pytest.param(REQUEST, NOWHERE, b"\x32\4" + GUEST + b"\x36\4" + ROUTER, (ACK, EVERYBODY), id="selecting"),
        pytest.param(REQUEST, NOWHERE, b"\x32\4" + GUEST, (ACK, EVERYBODY), id="rebooted"),
        pytest.param(REQUEST, GUEST, b"", (ACK, GUEST), id="renewing, by unicast"),
        pytest.param(REQUEST, NOWHERE, b"\x32\4\x0a\0\2\x63", (NAK, EVERYBODY), id="remembers another address"),
        pytest.param(REQUEST, NOWHERE, b"", (NAK, EVERYBODY), id="asks for nothing"),
        pytest.param(INFORM, GUEST, b"", (ACK, GUEST), id="has an address, asks for the rest"),
        pytest.param(REQUEST, NOWHERE, b"\x32\4" + GUEST + b"\x36\4\x0a\0\2\x09", None, id="chose another server"),
        pytest.param(RELEASE, GUEST, b"", None, id="release"),
        pytest.param(DECLINE, NOWHERE, b"\x32\4" + GUEST, None, id="decline"),
        pytest.param(99, NOWHERE, b"", None, id="nonsense"),
    ],
)
def test_each_request_gets_its_reply(
    kind: int, current: bytes, options: bytes, expected: tuple[int, bytes] | None
) -> None:
    reply = reply_to(question(kind, current=current, options=options), LEASE)
    assert (None if reply is None else (read(reply)[0], reply.destination)) == expected


@pytest.mark.parametrize(
    "packet",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(question(DISCOVER)[:200], id="cut"),
        pytest.param(question(DISCOVER, mac=b"\2\0\0\0\0\1"), id="another card"),
        pytest.param(question(DISCOVER, operation=2), id="an answer"),
        pytest.param(question(DISCOVER)[:236] + b"abcd" + question(DISCOVER)[240:], id="no DHCP"),
        pytest.param(question(DISCOVER)[:240], id="no options"),
        pytest.param(question(DISCOVER)[:240] + b"\x35\xff\1", id="an option longer than the packet"),
    ],
)
def test_an_invalid_or_foreign_packet_gets_no_reply(packet: bytes) -> None:
    assert reply_to(packet, LEASE) is None


def test_an_inform_gets_no_lease() -> None:
    _unused, address, options = read(reply_to(question(INFORM, current=GUEST), LEASE))
    assert (address, 51 in options) == (NOWHERE, False)


def test_a_reply_always_fits() -> None:
    long = dataclasses.replace(LEASE, search=tuple(f"{'x' * 60}{n}.{'y' * 60}.example" for n in range(32)))
    for kind in (DISCOVER, INFORM):
        reply = reply_to(question(kind), long)
        assert reply is not None
        assert 300 <= len(reply.packet) <= MESSAGE_LIMIT - 28


def test_an_invalid_search_domain_is_left_out() -> None:
    many = encode_search(tuple(f"{'x' * 40}{number:02}.example" for number in range(9)))
    assert 200 < len(many) <= 255
    assert encode_search(("a..b", "x" * 64, "", "cluster.local.")) == b"\x07cluster\x05local\0"


@given(st.binary(max_size=600))
def test_no_packet_breaks_the_server(noise: bytes) -> None:
    reply_to(question(DISCOVER)[:240] + noise, LEASE)
    reply_to(noise, LEASE)


def test_a_value_too_long_for_an_option_is_left_out() -> None:
    long = dataclasses.replace(LEASE, hostname="h" * 256, servers=())
    _unused, _unused2, options = read(reply_to(question(DISCOVER), long))
    assert 12 not in options

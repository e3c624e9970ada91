# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages between virt-handler and virt-node: the valid ones, and those that both refuse."""

from __future__ import annotations

import json
from typing import get_args

import pytest

from controlplane.domain import layout
from controlplane.links.node.messages import (
    ADDRESSES_LIMIT,
    MESSAGE_LIMIT_BYTES,
    PORTS_LIMIT,
    Cancel,
    Failed,
    GuestDevice,
    Hello,
    KvmFinding,
    Masquerade,
    MigrationChannel,
    NetworkReady,
    NodeState,
    OpenSocket,
    PodInterface,
    Port,
    ProtocolError,
    Request,
    SetUpNetwork,
    bounded_text,
    encode,
    read_from_handler,
    read_from_node,
)

NO_UTF_8 = b'{"type":"Failed","id":1,"kind":"failed","text":"\xff"}'
UID = "bbbb0000-1111-2222-3333-444444444444"


@pytest.mark.parametrize(
    "message",
    [
        Hello(1),
        OpenSocket(1, UID),
        SetUpNetwork(2, UID, Masquerade("10.0.2.0/24", (Port("tcp", 80), Port("udp", 53)))),
        SetUpNetwork(
            3, UID, Masquerade("10.0.2.0/24", tuple(Port("udp", 60000 + number) for number in range(PORTS_LIMIT)))
        ),
    ],
    ids=["greeting", "socket", "network", "as many ports as may be"],
)
def test_a_message_from_virt_handler_is_read_back_unchanged(message: Hello | OpenSocket | SetUpNetwork) -> None:
    assert read_from_handler(encode(message)) == message


@pytest.mark.parametrize(
    "message",
    [
        NodeState(KvmFinding(is_usable=False, reason="no"), ("kvm",), (), ("kvm",)),
        NetworkReady(7, PodInterface(("10.244.0.7",), 1450)),
        Failed(8, "refused", "a link"),
    ],
    ids=["state", "network", "failure"],
)
def test_a_message_from_virt_node_is_read_back_unchanged(message: NodeState | NetworkReady | Failed) -> None:
    assert read_from_node(encode(message)) == message


def test_a_request_names_a_pod_by_its_uid_and_nothing_else() -> None:
    """No path, process, interface or machine: the socket identifies the peer, and root looks up the rest."""
    fields = {name for struct in (*get_args(Request), Cancel, Masquerade, Port) for name in struct.__struct_fields__}
    values = {"with_kvm", "wanted", "cidr", "ports", "protocol", "number", "channel", "device", "wait_seconds"}
    assert fields == {"id", "pod_uid", *values}
    assert set(get_args(MigrationChannel)) == set(layout.MIGRATION_SOCKETS)
    assert set(get_args(GuestDevice)) == set(layout.GUEST_SOCKETS)


def a_request(**fields: object) -> bytes:
    return json.dumps({"type": "OpenSocket", "id": 1, "pod_uid": UID, **fields}).encode()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        a_request().replace(b"OpenSocket", b"\xff"),
        b"[" * 100_000,
        a_request(type="Reboot"),
        a_request(type="Opened"),
        a_request(id=0),
        a_request(id="1"),
        a_request(pod_uid=".."),
        a_request(pod_uid="../../etc"),
        a_request(pod_uid=""),
        a_request(pod_uid="a" * 65),
        a_request(pod_uid=f"{UID}\n"),
        a_request(type="SetUpNetwork", wanted={"cidr": "10.0.2.0/24", "ports": [{"protocol": "tcp", "number": 0}]}),
        a_request(type="SetUpNetwork", wanted={"cidr": "10.0.2.0/24", "ports": [{"protocol": "gre", "number": 1}]}),
        a_request(type="SetUpNetwork", wanted={"cidr": "x" * 100}),
    ],
    ids=[
        "nothing",
        "no JSON",
        "no UTF-8",
        "nested without end",
        "an unknown request",
        "an answer",
        "no number",
        "a number as text",
        "the directory above",
        "a path",
        "no UID",
        "a long UID",
        "a UID and a line",
        "port 0",
        "a strange protocol",
        "a long network",
    ],
)
def test_virt_node_refuses_malformed_messages(data: bytes) -> None:
    with pytest.raises(ProtocolError, match="not a message"):
        read_from_handler(data)


@pytest.mark.parametrize(
    "data", [b"", b"\xff", NO_UTF_8, b"[" * 100_000, encode(OpenSocket(1, UID)), b'{"type":"Done"}'], ids=repr
)
def test_virt_handler_refuses_requests_and_malformed_responses(data: bytes) -> None:
    with pytest.raises(ProtocolError, match="not a message"):
        read_from_node(data)


def test_a_message_over_the_size_limit_is_not_encoded() -> None:
    with pytest.raises(ValueError, match=f"at most {MESSAGE_LIMIT_BYTES} are sent"):
        encode(Failed(1, "failed", "x" * MESSAGE_LIMIT_BYTES))


def test_a_long_reason_is_cut_to_a_readable_length() -> None:
    failure = Failed(1, "failed", bounded_text("x" * 5000))
    assert read_from_node(encode(failure)) == failure


@pytest.mark.parametrize(
    "message",
    [
        SetUpNetwork(1, UID, Masquerade("10.0.2.0/24", (Port("tcp", 70_000),))),
        OpenSocket(1, "../.."),
        NetworkReady(1, PodInterface(("10.244.0.7",) * (ADDRESSES_LIMIT + 1), 1450)),
        Failed(1, "refused", "x" * 2000),
    ],
    ids=["a port that is none", "a path", "more addresses than are read", "a long text"],
)
def test_a_message_that_the_peer_would_refuse_is_not_encoded(
    message: SetUpNetwork | OpenSocket | NetworkReady | Failed,
) -> None:
    """Otherwise one odd Pod would end the connection and with it the requests for all other Pods."""
    with pytest.raises(ValueError, match="the message would be refused"):
        encode(message)

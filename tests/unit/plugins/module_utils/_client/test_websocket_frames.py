# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Frames in pieces of any size. With other implementations: test_messages.py and _port_forward/test_forward.py."""

from __future__ import annotations

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client import websocket_frames
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.websocket_frames import (
    BINARY,
    PING,
    Closed,
    Decoder,
    Message,
)

SENT = b"\x82\x02hi" + b"\x89\x01p" + b"\x02\x02ab" + b"\x80\x01c" + b"\x81\x01t" + b"\x82\x7e\x01\x00" + bytes(256)
MESSAGES = [Message(BINARY, b"hi"), Message(PING, b"p"), Message(BINARY, b"abc"), Message(BINARY, bytes(256))]


@pytest.mark.parametrize("size", [1, 2, 3, 7, len(SENT)])
def test_pieces_of_any_size_give_the_same_messages(size: int) -> None:
    decoder, messages = Decoder(), []
    for start in range(0, len(SENT), size):
        decoder.feed(SENT[start : start + size])
        while (message := decoder.next()) is not None:
            messages.append(message)
    assert messages == MESSAGES
    assert decoder.is_between_messages


def test_messages_before_a_close_frame_come_first() -> None:
    decoder = Decoder()
    decoder.feed(b"\x82\x02hi\x88\x00")
    assert decoder.next() == Message(BINARY, b"hi")
    with pytest.raises(Closed) as closed:
        decoder.next()
    assert closed.value.code == websocket_frames.NORMAL


def test_half_a_frame_is_no_message() -> None:
    decoder = Decoder()
    decoder.feed(b"\x82\x02h")
    assert decoder.next() is None
    assert not decoder.is_between_messages


def test_fragments_may_not_add_up_to_more_than_the_limit() -> None:
    size = websocket_frames.MESSAGE_LIMIT // 2 + 1
    decoder = Decoder()
    for opcode in (BINARY, 0):
        decoder.feed(bytes([opcode, 127]) + size.to_bytes(8, "big") + bytes(size))
    with pytest.raises(Closed, match="a message of more than"):
        decoder.next()


@pytest.mark.parametrize("size", [0, 125, 126, 65535, 65536])
def test_a_client_masks_what_it_sends(size: int) -> None:
    data = bytes(index % 251 for index in range(size))
    frame = websocket_frames.encode(BINARY, data)
    start = len(frame) - size
    key, masked = frame[start - 4 : start], frame[start:]
    assert frame[0] == 0x82
    assert bytes(byte ^ key[index % 4] for index, byte in enumerate(masked)) == data

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Streams between a client and a guest's device: what virt-api asks of virt-handler, how a stream ends. Values only.

A stream is a WebSocket at PATH of virt-handler's endpoint. virt-api's first message, a text, is an OpenStream;
virt-handler's is StreamOpened or links.handler.NotDone. Then binary messages carry the bytes of both directions. The
close frame says why a stream ends; virt-api passes it on to the client.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, TypeVar

import msgspec

from controlplane.links.handler import Guest, LinkError, NotDone
from controlplane.links.node.messages import GuestDevice

PATH = "/v1/stream"
OPEN_SECONDS = 15.0
"""How long virt-api waits for virt-handler's first message."""
OPENING_LIMIT_BYTES = 4 * 1024
USER_LIMIT = 256
CHUNK_BYTES = 32 * 1024
"""Bytes that are read from a guest, and sent in one message."""
STALL_SECONDS: Mapping[GuestDevice, float] = {"serial": 1.0, "vnc": 30.0}
"""How long a client may read nothing while the guest has more for it than the buffers hold. A guest waits when its
serial port is connected and nobody reads; its log has what the client missed. QEMU sends a screen when the client asks.
"""
INPUT_SECONDS = 25.0
"""How long a device may take nothing of what its client sent. Its peer's ping is answered as late as that."""
REASON_LIMIT_BYTES = 123
"""Of the text in a close frame, by RFC 6455."""


class OpenStream(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """Connect to a device of a guest."""

    guest: Guest
    device: GuestDevice
    user: Annotated[str, msgspec.Meta(max_length=USER_LIMIT)]
    """Who asks; shown to the user whose session this one ends."""
    keep_existing: bool = False
    """Refuse with `busy` while another session is open, instead of ending it."""
    with_backlog: bool = False
    """Of a console: begin with what the guest has printed so far, the last layout.CONSOLE_BACKLOG_BYTES, as the first
    message. There is no such message when it has printed nothing, or when the log cannot be read."""


class StreamOpened(msgspec.Struct, frozen=True, tag=True):
    """The device is connected."""


Message = TypeVar("Message")
_encoder = msgspec.json.Encoder()
_opening: msgspec.json.Decoder[OpenStream] = msgspec.json.Decoder(OpenStream)
_answer: msgspec.json.Decoder[StreamOpened | NotDone] = msgspec.json.Decoder(StreamOpened | NotDone)


def encode(message: OpenStream | StreamOpened | NotDone) -> str:
    """Encode a first message."""
    return _encoder.encode(message).decode()


def read_opening(text: str) -> OpenStream:
    """Decode virt-api's first message. LinkError."""
    return _read(_opening, text)


def read_answer(text: str) -> StreamOpened | NotDone:
    """Decode virt-handler's first message. LinkError."""
    return _read(_answer, text)


def _read(decoder: msgspec.json.Decoder[Message], text: str) -> Message:
    if len(text) > OPENING_LIMIT_BYTES:
        raise LinkError(f"a message of more than {OPENING_LIMIT_BYTES} bytes")
    try:
        return decoder.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise LinkError(f"not a first message of a stream: {error}") from error


def close_reason(text: str) -> bytes:
    """Return a text as a close frame may carry it: cut between characters."""
    return text.encode()[:REASON_LIMIT_BYTES].decode(errors="ignore").encode()

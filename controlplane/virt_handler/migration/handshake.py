# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which migration a connection of a tunnel is of: the one line that it begins with. Pure."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from controlplane.api.objects.migration_state import MigrationState

LINE_LIMIT_BYTES = 512
Channel = Literal["control", "memory", "disks"]
MOST: dict[Channel, int] = {"control": 1, "memory": 1, "disks": 8}
"""Connections of a channel at a time. QEMU has one for each disk that it sends."""
_Uid = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]


class HandshakeError(Exception):
    """A connection does not begin with a line of its migration."""


class MigrationIdentity(msgspec.Struct, frozen=True):
    """Whom a tunnel is for."""

    migration: _Uid
    source_pod: _Uid
    target_pod: _Uid


class Handshake(msgspec.Struct, frozen=True):
    """The first line of a connection."""

    binding: MigrationIdentity
    channel: Channel


_decoder = msgspec.json.Decoder(Handshake)


def migration_identity(moving: MigrationState) -> MigrationIdentity:
    """Return whom the tunnel of a migration is for."""
    return MigrationIdentity(moving.migration_uid, moving.source_pod_uid, moving.target_pod_uid)


def render(greeting: Handshake) -> bytes:
    """Return the line."""
    return msgspec.json.encode(greeting) + b"\n"


def read(line: bytes, expected: MigrationIdentity) -> Channel:
    """Return the channel that a line names. BindingError: it is none, or of another migration."""
    try:
        greeting = _decoder.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise HandshakeError("it does not begin with a line that names its migration") from error
    if greeting.binding != expected:
        raise HandshakeError("it is of another migration")
    return greeting.channel

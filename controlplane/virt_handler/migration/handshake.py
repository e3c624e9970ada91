# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The handshake: the first line of a tunnel's connection, which names its migration and channel. Pure."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from controlplane.api.objects.migration_state import MigrationState

LINE_LIMIT_BYTES = 512
Channel = Literal["control", "memory", "disks"]
MOST: dict[Channel, int] = {"control": 1, "memory": 1, "disks": 8}
"""Limit of connections of a channel at a time. QEMU opens one for each disk that it sends."""
_Uid = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]


class HandshakeError(Exception):
    """A connection does not begin with the handshake of its migration."""


class MigrationIdentity(msgspec.Struct, frozen=True):
    """The migration and the two Pods that a tunnel connects (UIDs)."""

    migration: _Uid
    source_pod: _Uid
    target_pod: _Uid


class Handshake(msgspec.Struct, frozen=True):
    """The first line of a connection."""

    identity: MigrationIdentity = msgspec.field(name="binding")
    channel: Channel


_decoder = msgspec.json.Decoder(Handshake)


def migration_identity(state: MigrationState) -> MigrationIdentity:
    """Return the identity that both ends of a migration's tunnel must name."""
    return MigrationIdentity(state.migration_uid, state.source_pod_uid, state.target_pod_uid)


def render(handshake: Handshake) -> bytes:
    """Encode a handshake as a line."""
    return msgspec.json.encode(handshake) + b"\n"


def read(line: bytes, expected: MigrationIdentity) -> Channel:
    """Return the channel that a line names. HandshakeError if it is malformed or names another migration."""
    try:
        handshake = _decoder.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise HandshakeError("it does not begin with a handshake line") from error
    if handshake.identity != expected:  # the source of one migration must not reach the target of another
        raise HandshakeError("it belongs to another migration")
    return handshake.channel

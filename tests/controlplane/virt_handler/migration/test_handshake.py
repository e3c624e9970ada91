# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from controlplane.api.objects.migration_state import MigrationState
from controlplane.virt_handler.migration.handshake import (
    LINE_LIMIT_BYTES,
    Handshake,
    HandshakeError,
    MigrationIdentity,
    migration_identity,
    read,
    render,
)

BINDING = MigrationIdentity("m", "s", "t")
UID = "6a1a24a1-4061-4607-8bf4-a3963d0c5895"


@pytest.mark.parametrize("channel", ["control", "memory", "disks"])
def test_a_handshake_names_its_channel(channel: str) -> None:
    line = render(Handshake(BINDING, channel))  # type: ignore[arg-type]
    assert read(line, BINDING) == channel


def test_a_handshake_with_real_uids_fits_the_line_limit() -> None:
    assert len(render(Handshake(MigrationIdentity(UID, UID, UID), "control"))) <= LINE_LIMIT_BYTES


def test_the_identity_comes_from_the_migration_state() -> None:
    moving = MigrationState(migration_uid="m", source_pod_uid="s", target_pod_uid="t")
    assert migration_identity(moving) == BINDING


@pytest.mark.parametrize(
    "other",
    [
        MigrationIdentity("x", "s", "t"),
        MigrationIdentity("m", "x", "t"),
        MigrationIdentity("m", "s", "x"),
        MigrationIdentity("m", "t", "s"),
    ],
)
def test_a_handshake_of_another_migration_is_refused(other: MigrationIdentity) -> None:
    with pytest.raises(HandshakeError, match="another migration"):
        read(render(Handshake(other, "memory")), BINDING)


@pytest.mark.parametrize(
    "line",
    [
        b"\n",
        b"GET / HTTP/1.1\r\n",
        b"{}\n",
        b"[[[[[[[[\n",
        b"[" * 500 + b"\n",
        b'{"binding":{"migration":"m","source_pod":"s","target_pod":"t"},"channel":"post-copy"}\n',
        b'{"binding":{"migration":"m","source_pod":"s","target_pod":null},"channel":"memory"}\n',
        b'{"binding":{"migration":"","source_pod":"","target_pod":""},"channel":"memory"}\n',
        b'{"binding":{"migration":"\xff","source_pod":"s","target_pod":"t"},"channel":"memory"}\n',
    ],
)
def test_an_invalid_handshake_is_refused(line: bytes) -> None:
    with pytest.raises(HandshakeError, match="does not begin with a handshake line"):
        read(line, BINDING)

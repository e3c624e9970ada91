# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""QEMU's own messages take a bounded room, and the newest stay."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from controlplane.virt_launcher.logs import qemu_log
from controlplane.virt_launcher.logs.qemu_log import KEPT_BYTES, LIMIT_BYTES, trim

LINE = b"qemu-system-x86_64: a guest wrote to a register that it should not\n"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "uid.log"


def used(log: Path) -> int:
    return log.stat().st_blocks * 512


def append(log: Path, data: bytes) -> None:
    """Write as QEMU does."""
    with log.open("ab") as file:
        file.write(data)


def test_a_log_that_does_not_end_takes_a_bounded_room(log: Path) -> None:
    for _unused in range(40):
        append(log, LINE * 5000)
        trim(str(log))
        assert used(log) <= LIMIT_BYTES
    assert log.stat().st_size > 10 * LIMIT_BYTES


def test_the_newest_messages_stay(log: Path) -> None:
    append(log, LINE * 50_000 + b"the last\n")
    assert trim(str(log))
    data = log.read_bytes()
    assert data.endswith(LINE + b"the last\n")
    assert len(data.lstrip(b"\0")) == pytest.approx(KEPT_BYTES, abs=4096)


def test_the_reason_of_a_failed_start_is_left_alone(log: Path) -> None:
    """libvirt reads it from where the start began."""
    said = LINE * 10_000 + b"could not open kernel file\n"
    append(log, said)
    assert not trim(str(log))
    assert log.read_bytes() == said


def test_where_no_holes_can_be_made_the_log_begins_anew(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_unused: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(qemu_log, "free_range", refuse)
    append(log, LINE * 50_000)
    assert trim(str(log))
    append(log, b"after\n")
    assert log.read_bytes() == b"after\n"


def test_before_the_first_start_there_is_nothing_to_do(log: Path) -> None:
    assert not trim(str(log))


def test_what_is_no_file_is_left_alone(log: Path, tmp_path: Path) -> None:
    os.mkfifo(log)
    assert not trim(str(log))
    other = tmp_path / "other"
    append(other, LINE * 50_000)
    (tmp_path / "link").symlink_to(other)
    assert not trim(str(tmp_path / "link"))
    assert used(other) > LIMIT_BYTES

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""QEMU's log takes limited space, and the newest messages stay."""

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
    """Append as QEMU does."""
    with log.open("ab") as file:
        file.write(data)


def test_an_endless_log_takes_limited_space(log: Path) -> None:
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


def test_the_reason_of_a_failed_start_stays(log: Path) -> None:
    """libvirt reads the log from the position where the start began."""
    messages = LINE * 10_000 + b"could not open kernel file\n"
    append(log, messages)
    assert not trim(str(log))
    assert log.read_bytes() == messages


def test_without_hole_punching_the_log_is_truncated(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_unused: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(qemu_log, "free_range", refuse)
    append(log, LINE * 50_000)
    assert trim(str(log))
    append(log, b"after\n")
    assert log.read_bytes() == b"after\n"


def test_a_missing_log_is_ignored(log: Path) -> None:
    assert not trim(str(log))


def test_a_fifo_or_link_is_left_alone(log: Path, tmp_path: Path) -> None:
    os.mkfifo(log)
    assert not trim(str(log))
    target = tmp_path / "other"
    append(target, LINE * 50_000)
    (tmp_path / "link").symlink_to(target)
    assert not trim(str(tmp_path / "link"))
    assert used(target) > LIMIT_BYTES

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a console session begins with: the end of the log, and no byte of it twice."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from controlplane.domain.layout import CONSOLE_BACKLOG_BYTES
from controlplane.virt_handler.launchers.console_backlog import read_backlog, without_repetition
from controlplane.virt_handler.launchers.ports import Refused


@pytest.mark.parametrize(
    ("log", "backlog"),
    [
        (b"", b""),
        (b"\x1b[1mbooting\r\nlogin: ", b"\x1b[1mbooting\r\nlogin: "),
        (b"x" * CONSOLE_BACKLOG_BYTES, b"x" * CONSOLE_BACKLOG_BYTES),
        (b"cut" * CONSOLE_BACKLOG_BYTES + b"\nlogin: ", b"login: "),
        (b"x" * (2 * CONSOLE_BACKLOG_BYTES), b"x" * CONSOLE_BACKLOG_BYTES),
        (bytes(2 * CONSOLE_BACKLOG_BYTES), b""),
    ],
    ids=["nothing", "short", "the limit", "a whole line first", "one line", "freed"],
)
def test_the_end_of_a_log_is_read(tmp_path: Path, log: bytes, backlog: bytes) -> None:
    (tmp_path / "log").write_bytes(log)
    assert read_backlog(os.open(tmp_path / "log", os.O_RDONLY)) == backlog


def test_only_a_regular_file_is_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "log")
    descriptor = os.open(tmp_path / "log", os.O_RDONLY | os.O_NONBLOCK)
    with pytest.raises(Refused, match="not a regular file"):
        read_backlog(descriptor)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


@pytest.mark.parametrize(
    ("backlog", "live", "rest"),
    [
        (b"login: ", b"", b""),
        (b"", b"login: ", b"login: "),
        (b"login: ", b"root", b"root"),
        (b"login: ro", b"root", b"ot"),
        (b"login: root", b"root", b""),
        (b"root", b"root\nPassword: ", b"\nPassword: "),
        (b"ababac", b"ababaca", b"a"),
        (b"abab", b"abac", b"ac"),
        (b"aab", b"aabaab", b"aab"),
    ],
)
def test_what_the_log_has_already_is_not_repeated(backlog: bytes, live: bytes, rest: bytes) -> None:
    assert without_repetition(backlog, live) == rest

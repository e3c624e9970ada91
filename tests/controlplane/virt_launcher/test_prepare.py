# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What needs no image and no layout; the whole is in test_launcher.py."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from controlplane.api.launch_plan import FoundDisk, Report, parse_report
from controlplane.virt_launcher.errors import PreparationError
from controlplane.virt_launcher.prepare import can_do_direct_io, finish_overlay, write_new, write_report


def test_the_report_is_there_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    report = Report((FoundDisk("root", "/img/volumes/root/disk/a", "raw"),), direct_io=False)
    write_report(report, str(tmp_path / "report.json"))
    data = (tmp_path / "report.json").read_bytes()
    assert parse_report(data, mounts={"root": "/img/volumes/root"}) == report
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]


def test_a_sparse_file_takes_no_room(tmp_path: Path) -> None:
    write_new(str(tmp_path / "disk"), b"", size=1 << 34)
    status = (tmp_path / "disk").stat()
    assert (status.st_size, status.st_blocks, status.st_mode & 0o777 & ~0o640) == (1 << 34, 0, 0)


def test_a_planted_link_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with pytest.raises(OSError, match="symbolic link"):
        write_new(str(tmp_path / "link"), b"x")


def test_direct_io_is_tried_not_assumed(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    assert can_do_direct_io([]) is True
    assert can_do_direct_io([str(tmp_path / "file"), str(tmp_path / "none")]) is False
    assert can_do_direct_io(["/proc/self/status"]) is False


def test_what_qemu_img_said_reaches_the_user() -> None:
    program = "import sys; sys.exit('qemu-img: Image is corrupt')"
    process = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE)
    with pytest.raises(
        PreparationError, match="volume root: qemu-img cannot use the image: qemu-img: Image is corrupt"
    ):
        finish_overlay("root", process)

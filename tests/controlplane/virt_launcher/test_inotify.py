# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from controlplane.virt_launcher.inotify import DirectoryWatch


async def test_a_new_file_wakes_who_waits(tmp_path: Path) -> None:
    with DirectoryWatch(str(tmp_path)) as watch:
        (tmp_path / "new").touch()
        await asyncio.wait_for(watch.wait(), 10)
        with (tmp_path / "new").open("w") as file:
            file.write("more")
        await asyncio.wait_for(watch.wait(), 10)


async def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"cannot watch .*/none: No such file"):
        DirectoryWatch(str(tmp_path / "none"))

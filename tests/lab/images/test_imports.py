# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands that import an image into containerd."""

from __future__ import annotations

from pathlib import Path

from lab.images.archive import read_archive
from lab.images.imports import import_commands


def test_an_import_names_the_image_by_tag_and_by_digest(archive: Path) -> None:
    read = read_archive(archive)
    load, tag = import_commands(read, Path("/c/ctr"), "/run/s", "-")
    assert {"--local", "--digests"} <= set(load)
    assert tag[-2:] == [f"localhost/lab/hello@{read.manifest}", "localhost/lab/hello:1"]

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How an image gets into a containerd."""

from __future__ import annotations

from pathlib import Path

from lab.images.archive import read_archive
from lab.images.imports import import_commands


def test_import_makes_tag_and_digest_resolve(archive: Path) -> None:
    found = read_archive(archive)
    load, tag = import_commands(found, Path("/c/ctr"), "/run/s", "-")
    assert {"--local", "--digests"} <= set(load)
    assert tag[-2:] == [f"localhost/lab/hello@{found.manifest}", "localhost/lab/hello:1"]

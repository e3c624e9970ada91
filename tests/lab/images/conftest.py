# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One small OCI archive, written as the project writes its images."""

from __future__ import annotations

from pathlib import Path

import pytest

from images.oci import Config, LayerWriter, write_archive


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    with LayerWriter(tmp_path / "layer") as layer:
        layer.file("hello", b"hello")
    return write_archive(tmp_path / "image.tar", "localhost/lab/hello:1", [layer.layer], Config()).path

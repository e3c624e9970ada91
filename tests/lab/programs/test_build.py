# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Building one module with Go."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.errors import LabError
from lab.paths import Cache
from lab.programs import build
from lab.programs.modules import MODULES
from lab.progress import silent


def test_a_full_disk_is_reported_before_the_build_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "NEEDED_BYTES", 1 << 60)
    with pytest.raises(LabError, match=r"MiB free at .*; free some space"):
        build.build(MODULES[0], tmp_path / "bin/x", Cache(root=tmp_path), silent)

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The test guest."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from images.tree import Node


def image_files(_rootfs: Mapping[str, Node], _sources: Path) -> dict[str, Node]:
    raise ValueError("the test guest is not built yet")

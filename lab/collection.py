# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""This checkout as Ansible collection virtops.kubevirt, from a folder of any name. Nothing is installed."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def linked_under(directory: Path) -> Path:
    """Link the checkout into a folder for ANSIBLE_COLLECTIONS_PATH, and return that folder."""
    link = directory / "ansible_collections/virtops/kubevirt"
    link.parent.mkdir(parents=True, exist_ok=True)
    if not link.is_symlink():
        link.symlink_to(ROOT)
    return directory

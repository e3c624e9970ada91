# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The name of a VMI as a label value, for its launcher Pod and its migrations. Pure."""

from __future__ import annotations

import hashlib


def vmi_label_value(name: str) -> str:
    """Return the VMI's name as a label value: unchanged if it fits, else cut, with a part of its SHA-1."""
    if len(name) <= 63:
        return name
    return f"{name[:54]}-{hashlib.sha1(name.encode(), usedforsecurity=False).hexdigest()[:8]}"

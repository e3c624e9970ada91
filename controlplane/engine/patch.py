# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The smallest JSON merge patch (RFC 7386) from one object to another. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]


def merge_patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> Json:
    """Return the patch that turns before into after; empty when they are equal.

    Lists are replaced as a whole. None in `after` means the same as a missing member, as in the JSON.
    """
    patch: Json = {}
    for name in {*before, *after}:
        old, new = before.get(name), after.get(name)
        if old == new:
            continue
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            patch[name] = merge_patch(old, new)
        else:
            patch[name] = new
    return dict(sorted(patch.items()))

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keep a VirtualMachine's generated identity when a later write omits it. Works on plain values.

These defaults are chosen once, at creation, and cannot be derived again. `kubectl replace` with the original manifest
must not give the guest another machine type, UUID or serial number.
"""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

KEPT = (
    ("architecture",),
    ("domain", "machine", "type"),
    ("domain", "firmware", "uuid"),
    ("domain", "firmware", "serial"),
)
"""Paths in the template's spec. A user changes such a field by setting it, not by omitting it."""


def keep_identity(vm: Json, old: Json) -> Json:
    """Copy the identity fields that `vm` omits from `old`. Returns the same object when nothing changes.

    `vm` fits its CRD's schema. `old` may have any shape, because another version may have admitted it.
    """
    kept = vm
    for path in KEPT:
        full_path = ("spec", "template", "spec", *path)
        before = _at(old, full_path)
        if isinstance(before, str) and before and _at(kept, full_path) in (None, ""):
            kept = _with(kept, full_path, before)
    return kept


def _at(obj: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        obj = obj.get(step) if isinstance(obj, dict) else None
    return obj


def _with(obj: Json, path: tuple[str, ...], value: str) -> Json:
    """Return a copy with a value at a path. Missing parents are created."""
    first, *rest = path
    return {**obj, first: _with(obj.get(first) or {}, tuple(rest), value) if rest else value}

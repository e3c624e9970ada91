# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a VirtualMachine was given at its creation and keeps, although a later write leaves it out. Plain values.

Such a default is state: made up once from what was there then, it cannot be made up again. `kubectl replace` with the
file that a machine was made from must not give its guest another board, UUID or serial number.
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
"""In the template's spec. What a user wants otherwise is said, not left out."""


def keep_identity(vm: Json, old: Json) -> Json:
    """Return a VirtualMachine with what it leaves out of `old`'s identity; the very same object if that is nothing.

    `old` was let in by any version: it may be of any shape. `vm` fits its CRD's schema.
    """
    kept = vm
    for path in KEPT:
        whole = ("spec", "template", "spec", *path)
        before = _at(old, whole)
        if isinstance(before, str) and before and _at(kept, whole) in (None, ""):
            kept = _with(kept, whole, before)
    return kept


def _at(obj: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        obj = obj.get(step) if isinstance(obj, dict) else None
    return obj


def _with(obj: Json, path: tuple[str, ...], value: str) -> Json:
    """Return a copy with a value at a path; what leads there is made where it is missing."""
    first, *rest = path
    return {**obj, first: _with(obj.get(first) or {}, tuple(rest), value) if rest else value}

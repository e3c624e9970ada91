# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read and replace values of an object by path. The object consists of plain values, and may be malformed. Pure."""

from __future__ import annotations

from typing import Any

from controlplane.api.admission.rules import Json


def value_at(obj: Any, *path: str) -> Any:
    """Return the value at a path; None if there is none."""
    for step in path:
        obj = obj.get(step) if isinstance(obj, dict) else None
    return obj


def list_at(obj: Any, *path: str) -> list[Any]:
    """Return the list at a path; [] for a value of another type."""
    value = value_at(obj, *path)
    return value if isinstance(value, list) else []


def with_value(obj: Json, path: tuple[str, ...], value: Any) -> Json:
    """Return a copy with a value at a path. Missing parents are created."""
    first, *rest = path
    return {**obj, first: with_value(obj.get(first) or {}, tuple(rest), value) if rest else value}

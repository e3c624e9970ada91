# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Predicates on the desired state of objects, as plain JSON values. Missing fields are no errors.

Separate from predicates.py (status), because most tasks do not need that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import run_strategies

Object = Mapping[str, Any]


def is_deleting(obj: Object) -> bool:
    """Tell whether deletion has begun."""
    return bool((obj.get("metadata") or {}).get("deletionTimestamp"))


def run_strategy(vm: Object) -> str:
    """Return runStrategy, or its equivalent of the deprecated running; Halted when neither is set."""
    spec = vm.get("spec") or {}
    if spec.get("runStrategy"):
        return str(spec["runStrategy"])
    return run_strategies.ALWAYS if spec.get("running") else run_strategies.HALTED

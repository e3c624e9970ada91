# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Questions about what was asked of objects, as plain JSON values. Missing fields are answers, not errors.

Apart from predicates.py, which looks into their status: most tasks do not.
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
    """Return the strategy that runStrategy or the deprecated running ask for; Halted when neither is set."""
    spec = vm.get("spec") or {}
    if spec.get("runStrategy"):
        return str(spec["runStrategy"])
    return run_strategies.ALWAYS if spec.get("running") else run_strategies.HALTED

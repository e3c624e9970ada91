# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Remove invalid fields from an object, so that the rest can still be checked."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable
from typing import Any

_STEP = re.compile(r"\.?([^.\[\]]+)|\[([^\[\]]*)\]")
_JOINED = frozenset({"volumes", "networks", "disks", "interfaces"})
"""Lists that refer to each other: without one, each entry of its partner would be reported."""


def without(value: Any, paths: Iterable[str]) -> Any:
    """Return a copy without the fields at these paths; None when the rest could not be checked sensibly."""
    pruned = copy.deepcopy(value)
    for path in paths:
        steps = [name or index for name, index in _STEP.findall(path)]
        if not steps or steps[-1] in _JOINED:
            return None
        _remove(pruned, steps)
    return pruned


def _remove(value: Any, steps: list[str]) -> None:
    here = value
    for step in steps[:-1]:
        if isinstance(here, dict):
            here = here.get(step)
        elif isinstance(here, list) and step.isdigit() and int(step) < len(here):
            here = here[int(step)]
    if isinstance(here, dict):
        here.pop(steps[-1], None)

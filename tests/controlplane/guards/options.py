# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of modules: what would be sent as something else, or carried out otherwise than it reads."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_UNITS = "tests/unit/plugins/module_utils"

GUARDS: tuple[Guard, ...] = (
    Guard(
        file="plugins/module_utils/_client/shapes.py",
        line="    if kind in _TEXTS and isinstance(value, (Mapping, list)):",
        without="    if False:",
        because="A guest would be given what Python calls its user data, and set up by none of it.",
        tests=(f"{_UNITS}/_client/test_shapes.py",),
    ),
    Guard(
        file="plugins/module_utils/_vm/request.py",
        line="        if states and states.isdisjoint(use.states):",
        without="        if False:",
        because="A guest that was to be given time would be ended with its machine, without a word.",
        tests=(f"{_UNITS}/_vm/test_request.py",),
    ),
    Guard(
        file="plugins/module_utils/_service/exposure.py",
        line="    if empty:  # with the name alone, any Service is deleted",
        without="    if False:",
        because="A variable that is empty would leave the name alone, which deletes whatever has it.",
        tests=(f"{_UNITS}/_service/test_expose.py",),
    ),
)

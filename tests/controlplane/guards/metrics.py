# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is shown to monitoring systems: once, true, and without a guest's words."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_MACHINES = "controlplane/virt_controller/metrics/machines.py"
_TRANSITIONS = "controlplane/virt_controller/metrics/transitions.py"
_HEALTH = "controlplane/health.py"
_BY_MACHINES = ("tests/controlplane/virt_controller/metrics/test_machines.py",)
_BY_TRANSITIONS = ("tests/controlplane/virt_controller/metrics/test_transitions.py",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file=_MACHINES,
        line="        if self._is_leader():",
        without="        if True:",
        because="Every replica would show every machine, and sums would be double.",
        tests=_BY_MACHINES,
    ),
    Guard(
        file=_MACHINES,
        line="if one.name and _is_address(one.ip_address)}",
        without="if one.name}",
        because="What a guest says would become a series, a new one each time it says something else.",
        tests=_BY_MACHINES,
    ),
    Guard(
        file=_MACHINES,
        line='status.phase.lower() if is_known(status.phase) else "unknown"',
        without="status.phase.lower()",
        because="A node could make series of any name.",
        tests=_BY_MACHINES,
    ),
    Guard(
        file=_MACHINES,
        line="        except (msgspec.DecodeError, UnicodeError):  # its reconciler says so, on the object",
        without="        except ZeroDivisionError:",
        because="One object that cannot be read would hide all machines.",
        tests=_BY_MACHINES,
    ),
    Guard(
        file=_TRANSITIONS,
        line="        if before is None or after is None or not self._is_leader():",
        without="        if before is None or after is None:",
        because="Every replica would count every change.",
        tests=_BY_TRANSITIONS,
    ),
    Guard(
        file=_TRANSITIONS,
        line="        if old is None or new is None or old.metadata.uid != new.metadata.uid:",
        without="        if old is None or new is None:",
        because="The time between two machines of one name is no machine's.",
        tests=_BY_TRANSITIONS,
    ),
    Guard(
        file=_TRANSITIONS,
        line="        if phase == last or not is_known(phase) or not is_known(last):",
        without="        if phase == last:",
        because="A node could make series of any name.",
        tests=_BY_TRANSITIONS,
    ),
    Guard(
        file=_HEALTH,
        line="            if loop.time() >= self._shown_until:",
        without="            if True:",
        because="Whoever reaches the port could keep a processor busy by asking.",
        tests=("tests/controlplane/test_health.py",),
    ),
)

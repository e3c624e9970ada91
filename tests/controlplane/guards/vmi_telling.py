# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The VMI's controller: what it tells of a machine, and what it leaves to others to tell."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_RECONCILER = "controlplane/virt_controller/vmi/reconciler.py"
_BY_RECONCILER = ("tests/controlplane/virt_controller/vmi/test_reconciler.py",)
_END_EVENT = "controlplane/virt_controller/vmi/end_event.py"
_BY_END_EVENT = ("tests/controlplane/virt_controller/vmi/test_end_event.py",)
_SILENCE = "controlplane/virt_controller/vmi/silence.py"
_BY_SILENCE = ("tests/controlplane/virt_controller/vmi/test_silence.py",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file=_SILENCE,
        line="    if told is not None and told.reason != condition_types.VIRT_HANDLER_SILENT:\n        return listed\n",
        without="",
        because="What virt-handler says of a start that fails would be wiped, and the two write in turn for ever.",
        tests=_BY_SILENCE,
    ),
    Guard(
        file=_SILENCE,
        line=" or phase != SCHEDULED:",
        without=":",
        because="A machine that runs well would be said to wait for a virt-handler.",
        tests=_BY_SILENCE,
    ),
    Guard(
        file=_RECONCILER,
        line='            log.debug("pod is gone already", extra={"key": str(key)})\n            return\n',
        without='            log.debug("pod is gone already", extra={"key": str(key)})\n',
        because="What somebody else has deleted would be told as our deed.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file="controlplane/api/objects/readiness.py",
        line="    if is_paused:",
        without="    if False:",
        because="A guest that stands still answers nobody, and would count as ready.",
        tests=(
            "tests/controlplane/virt_controller/vmi/test_status.py",
            "tests/controlplane/virt_handler/vmi/test_status.py",
        ),
    ),
    Guard(
        file="controlplane/virt_controller/vmi/status.py",
        line="    return readiness(phase, world.source, is_paused=is_paused)",
        without="    return readiness(phase, world.source)",
        because="Nobody else takes the readiness of a guest back that is paused while it runs.",
        tests=("tests/controlplane/virt_controller/vmi/test_status.py",),
    ),
    Guard(
        file=_RECONCILER,
        line="tell_end(self._events, _regarding(world.vmi), world, status)",
        without="pass",
        because="Whether users are told that a run has ended would depend on who hears of it first.",
        tests=_BY_END_EVENT,
    ),
    Guard(
        file=_END_EVENT,
        line="if status.phase == before or before in BEFORE_HAND_OVER:",
        without="if status.phase == before:",
        because="A guest that never ran would be told to have stopped.",
        tests=_BY_END_EVENT,
    ),
    Guard(
        file="controlplane/virt_controller/vmi/status.py",
        line="    elif world.is_to_be_made_anew and new is old:",
        without="    elif world.is_to_be_made_anew:",
        because="A Pod that has ended would be given up for another one without a word of how it ended.",
        tests=("tests/controlplane/virt_controller/vmi/test_status.py",),
    ),
    Guard(
        file="controlplane/virt_controller/vmi/status.py",
        line='reason=step.trouble.reason if step.trouble else "",',
        without="reason=step.trouble.reason if step.trouble else old.reason,",
        because="A run that was lost and has succeeded would say for ever that its launcher was lost.",
        tests=("tests/controlplane/virt_controller/vmi/test_status.py",),
    ),
    Guard(
        file="controlplane/virt_handler/vmi/status.py",
        line='reason=word(reason) if reason else "",',
        without="reason=word(reason) if reason else old.reason,",
        because="A guest that was lost and is seen again would run with the reason for which it was lost.",
        tests=("tests/controlplane/virt_handler/vmi/test_status.py",),
    ),
    Guard(
        file=_END_EVENT,
        line="if status.phase == before or before",
        without="if before",
        because="What virt-handler has told already would be told once more, with the readiness that is taken back.",
        tests=_BY_END_EVENT,
    ),
    Guard(
        file="controlplane/virt_controller/tell.py",
        line="        same = (regarding.uid, reason, message, occurrence)",
        without="        same = (regarding.key.name, reason, message, occurrence)",
        because="Of two machines of one name only the first would be told of what is wrong.",
        tests=("tests/controlplane/virt_controller/test_tell.py",),
    ),
)

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decide which operation a running guest needs: pause, unpause, reset, softreboot, freeze, unfreeze. Pure.

These are operations on a VirtualMachineInstance, also for a VirtualMachine. The API refuses an operation with 409
if it makes no sense in the present state. These tables avoid such operations, so a 409 means that the state has just
changed.
"""

from __future__ import annotations

from typing import Any

from ...kubevirt_api import condition_types, phases
from ...kubevirt_api.desired import is_deleting
from ...kubevirt_api.predicates import is_condition_true, is_final, phase
from .power import Impossible, Operation

OPERATIONS = {
    "paused": "pause",
    "unpaused": "unpause",
    "reset": "reset",
    "softrebooted": "softreboot",
    "frozen": "freeze",
    "unfrozen": "unfreeze",
}
"""The operation for each state."""
_WITH_DRY_RUN = ("pause", "unpause")
"""Operations that take dryRun. Check mode does not send the others."""
_FROZEN = "frozen"
"""fsFreezeStatus of frozen file systems. Its value for others differs between versions of the agent."""
_START = "kubevirt_vmi with state=present, or kubevirt_vm with state=started where a VirtualMachine owns it"

Object = dict[str, Any]


def decide(state: str, vmi: Object | None, unfreeze_timeout: int, *, of_vm: bool = True) -> Operation | None:
    """Return the operation that brings the guest into `state`, None if it is there.

    unfreeze_timeout: seconds after which frozen file systems are thawed; 0: never. of_vm: the task names a
    VirtualMachine, which can be started.
    """
    start = f"{'state=started' if of_vm else _START}, with wait=true"
    if vmi is None:
        raise Impossible(f"it does not run; start it first ({start})")
    if is_final(vmi):
        raise Impossible(f"its run is over ({phase(vmi)}); start it again first")
    if is_deleting(vmi):
        raise Impossible(f"it is being stopped; start it again first ({start})")
    if phase(vmi) != phases.RUNNING:
        phase_text = phase(vmi) or "not yet seen by virt-controller"
        raise Impossible(f"its instance is {phase_text}, not Running; wait for that first ({start})")
    return None if _is_reached(state, vmi) else _operation(state, vmi, unfreeze_timeout)


def is_paused(vmi: Object) -> bool:
    """Tell whether the guest is paused, for any reason."""
    return is_condition_true(vmi, condition_types.PAUSED)


def is_frozen(vmi: Object) -> bool:
    """Tell whether the guest's file systems are frozen."""
    return (vmi.get("status") or {}).get("fsFreezeStatus") == _FROZEN


def _is_reached(state: str, vmi: Object) -> bool:
    if state in ("paused", "unpaused"):
        return is_paused(vmi) == (state == "paused")
    if state in ("frozen", "unfrozen"):
        return is_frozen(vmi) == (state == "frozen")
    return False


def _operation(state: str, vmi: Object, unfreeze_timeout: int) -> Operation:
    if state in ("softrebooted", "frozen", "unfrozen") and is_paused(vmi):
        raise Impossible("its guest is paused and cannot do anything; unpause it first (state=unpaused)")
    if state in ("frozen", "unfrozen") and not is_condition_true(vmi, condition_types.AGENT_CONNECTED):
        raise Impossible("that takes a guest agent, and none is connected; install and start it in the guest")
    name = OPERATIONS[state]
    body = {"unfreezeTimeout": f"{unfreeze_timeout}s"} if name == "freeze" else {}
    return Operation(name, body, of_instance=True, has_dry_run=name in _WITH_DRY_RUN)

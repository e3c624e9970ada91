# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decide what to ask of a guest that runs: pause, unpause, reset, softreboot, freeze, unfreeze. Pure.

Those are operations on a VirtualMachineInstance, also where a VirtualMachine is meant. The API answers 409 to one that
makes no sense in the present state; these tables avoid asking, so that a 409 means that the state has just changed.
"""

from __future__ import annotations

from typing import Any

from ..kubevirt_api import condition_types, phases
from ..kubevirt_api.asked import is_deleting
from ..kubevirt_api.predicates import is_condition_true, is_final, phase
from .power import Ask, Impossible

OPERATIONS = {
    "paused": "pause",
    "unpaused": "unpause",
    "reset": "reset",
    "softrebooted": "softreboot",
    "frozen": "freeze",
    "unfrozen": "unfreeze",
}
"""What brings a guest into a state."""
_WITH_DRY_RUN = ("pause", "unpause")
"""The others take no dryRun, so nothing is sent in check mode."""
_FROZEN = "frozen"
"""What the agent says of file systems that are frozen; what it says of others is not the same in all versions."""
_START = "kubevirt_vmi with state=present, or kubevirt_vm with state=started where a VirtualMachine owns it"

Object = dict[str, Any]


def decide(state: str, vmi: Object | None, unfreeze_timeout: int, *, of_vm: bool = True) -> Ask | None:
    """Return what to ask of the instance so that its guest gets into `state`, None if it is there.

    unfreeze_timeout: seconds after which what is frozen is thawed by itself; 0: never. of_vm: a VirtualMachine was
    asked for, which can be started.
    """
    start = f"{'state=started' if of_vm else _START}, with wait=true"
    if vmi is None:
        raise Impossible(f"it does not run; start it first ({start})")
    if is_final(vmi):
        raise Impossible(f"its run is over ({phase(vmi)}); start it anew first")
    if is_deleting(vmi):
        raise Impossible(f"it is being stopped; start it again first ({start})")
    if phase(vmi) != phases.RUNNING:
        told = phase(vmi) or "not looked at by virt-controller yet"
        raise Impossible(f"its instance is {told}, not Running; wait for that first ({start})")
    return None if _is_so(state, vmi) else _ask(state, vmi, unfreeze_timeout)


def is_paused(vmi: Object) -> bool:
    """Tell whether the guest's processors stand still, for whatever reason."""
    return is_condition_true(vmi, condition_types.PAUSED)


def is_frozen(vmi: Object) -> bool:
    """Tell whether the guest's file systems are frozen."""
    return (vmi.get("status") or {}).get("fsFreezeStatus") == _FROZEN


def _is_so(state: str, vmi: Object) -> bool:
    if state in ("paused", "unpaused"):
        return is_paused(vmi) == (state == "paused")
    if state in ("frozen", "unfrozen"):
        return is_frozen(vmi) == (state == "frozen")
    return False


def _ask(state: str, vmi: Object, unfreeze_timeout: int) -> Ask:
    if state in ("softrebooted", "frozen", "unfrozen") and is_paused(vmi):
        raise Impossible("its guest is paused and cannot do anything; unpause it first (state=unpaused)")
    if state in ("frozen", "unfrozen") and not is_condition_true(vmi, condition_types.AGENT_CONNECTED):
        raise Impossible("that takes a guest agent, and none is connected; install and start it in the guest")
    operation = OPERATIONS[state]
    body = {"unfreezeTimeout": f"{unfreeze_timeout}s"} if operation == "freeze" else {}
    return Ask(operation, body, of_instance=True, has_dry_run=operation in _WITH_DRY_RUN)

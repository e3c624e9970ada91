# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The goals of a guest, and whether an instance has reached one. Pure. goal.py has the goals of VMs."""

from __future__ import annotations

from typing import Any

from ..._client.waiter import Verdict
from ...kubevirt_api import condition_types, phases
from ...kubevirt_api.desired import is_deleting
from ...kubevirt_api.predicates import condition, is_final, is_ready, phase
from ..write.guest_power import is_frozen, is_paused

KINDS = ("instance", "paused", "unpaused", "reset", "softrebooted", "frozen", "unfrozen")
"""instance: it runs and is ready, or is paused if it starts paused. The others are states of modules."""
START_PAUSED = "Paused"
"""The start strategy of an instance whose guest starts paused."""
_PAUSED_BY_USER = "PausedByUser"

Object = dict[str, Any]


def judge(kind: str, vmi: Object | None, *, may_come: bool = False) -> Verdict:
    """Compare a goal with an instance. may_come: another instance may follow a finished or deleted one."""
    if vmi is None:
        return Verdict(hopeless=None if may_come else "its instance is gone", missing="its instance is gone")
    if not may_come and is_final(vmi):
        return Verdict(hopeless=f"its run is over ({phase(vmi)})")
    if not may_come and is_deleting(vmi):
        return Verdict(hopeless="somebody is stopping it")
    if kind == "instance":
        if phase(vmi) == phases.RUNNING and is_paused(vmi):
            return judge_paused(vmi)
        return Verdict(done=is_ready(vmi), missing="the instance is not ready")
    return _judge_operation(kind, vmi)


def judge_paused(vmi: Object) -> Verdict:
    """Judge a paused guest that should run: it started paused, a user paused it, or it is paused for a while."""
    if (vmi.get("spec") or {}).get("startStrategy") == START_PAUSED:
        return Verdict(done=True)
    reason = (condition(vmi, condition_types.PAUSED) or {}).get("reason")
    if reason == _PAUSED_BY_USER:
        return Verdict(hopeless="its guest is paused; unpause it (state=unpaused)")
    return Verdict(missing=f"its guest is paused ({reason or 'no reason given'})")


def _judge_operation(kind: str, vmi: Object) -> Verdict:
    if kind in ("paused", "frozen"):
        done = is_paused(vmi) if kind == "paused" else is_frozen(vmi)
    elif kind == "unfrozen":
        done = not is_frozen(vmi)
    elif kind == "reset" and is_paused(vmi):
        done = True  # a reset keeps a paused guest paused
    else:
        done = is_ready(vmi) and not is_paused(vmi)
    return Verdict(done=done and phase(vmi) == phases.RUNNING, missing=f"the guest is not {kind}")

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Work that virt-handler still has after a reconcile, and that only a timer triggers.

At rest all of it is done, by virt-handler or by the kubelet, which ends what it forgets: the bug would only show as a
delay.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from controlplane.virt_handler.vmi.world import Launcher
from tests.controlplane.simulation.duties import Owed
from tests.controlplane.simulation.launcher import STALLED, is_alive, is_provisional
from tests.support.store import OVER, Json

GOING_ON = ("Scheduled", "Running", "Unknown")
ORPHANS, LOOKS, POWER_BUTTON, END, HELD = 60.0, 15.0, 5.0, 10.0, 15.0
"""Seconds within which virt-handler must return to pending work."""
RESUME_AGAIN = 300.0


PauseLeft = Callable[[str], float]
"""How long to wait after a guest request without a result, by the UID of the Pod."""


def owed(
    vmi: Json | None,
    launchers: Collection[Launcher],
    node: str,
    grace_left: float | None,
    pause_left: PauseLeft,
    *,
    let_go_on: Collection[str],
    is_held: bool,
    orphan_left: float,
) -> Owed | None:
    """Return the work. vmi: of the key, as it is seen; launchers: of Pods that name it.

    let_go_on: UIDs of Pods whose guests were last reported as resumed. is_held: nothing starts here until the node is
    clear. orphan_left: seconds until the next check of a guest without a visible VMI.
    """
    if any(item.operation for item in launchers):
        return None  # its end enqueues the key
    if vmi is None or vmi.get("status", {}).get("nodeName") != node:
        is_orphan = any(map(has_guest, launchers))
        return Owed("a guest runs that no VMI is seen for", min(ORPHANS, orphan_left)) if is_orphan else None
    status, granted = vmi.get("status", {}), vmi.get("status", {}).get("activePods") or {}
    own = [item for item in launchers if item.pod.uid in granted]
    phase, is_going = status.get("phase", ""), "deletionTimestamp" in vmi["metadata"]
    listed = [item for item in own if not item.is_gone]
    if phase in GOING_ON and not listed and not any(map(has_guest, own)):
        return Owed("its Pod is not listed", LOOKS)
    if len(own) != 1:
        return None
    if has_guest(own[0]) and (phase in OVER or (own[0].is_gone and phase in GOING_ON)):
        return Owed("a guest runs whose run is over", END)
    if has_guest(own[0]) and is_going and phase in GOING_ON:
        is_asked = grace_left is None or grace_left > 0
        return Owed("a guest runs that is to end", min(POWER_BUTTON, grace_left or POWER_BUTTON) if is_asked else END)
    if _is_stalled(own[0], vmi, is_let_go_on=own[0].pod.uid in let_go_on) and phase == "Running" and not is_going:
        return Owed("a guest waits to be let go on", RESUME_AGAIN)
    is_waiting = phase == "Scheduled" and not is_going and _may_start(own[0])
    at_once = HELD if is_held else 0.0
    return Owed("its start has come to nothing", max(at_once, pause_left(own[0].pod.uid))) if is_waiting else None


def has_guest(launcher: Launcher) -> bool:
    seen = launcher.status
    return seen.is_connected and seen.state is not None and is_alive(seen.state) and not is_provisional(seen.state)


def _is_stalled(launcher: Launcher, vmi: Json | None, *, is_let_go_on: bool) -> bool:
    """Whether only an I/O error has paused a guest that can be resumed."""
    seen = launcher.status
    listed = [] if vmi is None else vmi.get("status", {}).get("conditions", [])
    is_told = any((item["type"], item.get("reason")) == ("Paused", "PausedByUser") for item in listed)
    is_held = is_told if seen.is_paused_by_user is None else seen.is_paused_by_user
    return seen.is_connected and seen.state == STALLED and not launcher.is_gone and (is_let_go_on or not is_held)


def _may_start(launcher: Launcher) -> bool:
    seen, pod = launcher.status, launcher.pod
    is_over = launcher.is_gone or pod.is_over or pod.metadata.deletion_timestamp is not None or seen.has_run
    is_free = seen.is_connected and seen.state is None and seen.failure is None
    return launcher.failed_operation is not None and is_free and not is_over

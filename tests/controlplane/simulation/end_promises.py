# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The end of a run as virt-handler reports it, compared with what libvirt reported. handler_promises calls it."""

from __future__ import annotations

from collections.abc import Callable

from controlplane.domain.state import Life
from controlplane.virt_handler.vmi.world import Launcher
from tests.controlplane.simulation.answers import Asked
from tests.controlplane.simulation.launcher import is_provisional
from tests.support.store import OVER, Json

SHUT_DOWN, CRASHED, DESTROYED = "shutdown", "crashed", "destroyed"
"""libvirt's reasons for a domain that is off."""


def end_follows(asked: Asked, launcher_of: Callable[[str], Launcher | None]) -> str | None:
    """Return what is wrong with the reported end."""
    new_status, vmi = asked.call.asked["patch"].get("status", {}), asked.decided_on
    if new_status.get("phase") not in OVER or len(vmi["status"].get("activePods") or {}) != 1:
        return None
    (pod_uid,) = vmi["status"]["activePods"]
    launcher = launcher_of(pod_uid)
    seen = None if launcher is None else launcher.status
    if launcher is None or seen is None or not seen.is_connected or seen.state is None:
        return None
    if seen.state.life is not Life.SHUT_OFF and not is_provisional(seen.state):
        return f"{new_status['phase']}, and its domain is {seen.state.life.value}"
    expected = _expected(seen.state.reason, launcher, vmi)
    reported = (new_status["phase"], new_status.get("reason", vmi["status"].get("reason")) or "")
    return None if expected is None or reported == expected else f"{reported}, and {seen.state.reason} means {expected}"


def _expected(reason: str, launcher: Launcher, vmi: Json) -> tuple[str, str] | None:
    """Return the expected phase and reason; None where the observation is ambiguous."""
    is_going = "deletionTimestamp" in vmi["metadata"]
    if reason == SHUT_DOWN:
        return "Succeeded", ""
    if reason not in (CRASHED, DESTROYED):
        return None
    if launcher.is_gone:
        return "Failed", "PodRemoved"
    if reason == DESTROYED and _had_no_time(launcher):
        return "Succeeded", ""
    is_hurried = reason == CRASHED or vmi["spec"].get("terminationGracePeriodSeconds") == 0
    if is_going and is_hurried:
        return "Failed", "Deleted"
    return "Failed", "GuestCrashed" if reason == CRASHED else "ShutdownTimedOut"


def _had_no_time(launcher: Launcher) -> bool:
    """Whether the domain was defined without a shutdown request: a forced end is correct then."""
    observed = launcher.status.observed
    return observed is not None and observed.identity is not None and observed.identity.grace_period_seconds == 0

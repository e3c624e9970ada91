# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decides which launchers of a recovered node are orphans, and how to end them before anything starts. Pure.

Only a response of the API server makes a launcher an orphan. It stays one: a deleted UID does not return, a grant is
permanent, and a finished run does not continue. Without a response nothing changes.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import msgspec

from controlplane.api.objects.meta import Node as Struct
from controlplane.api.objects.meta import ObjectMeta
from controlplane.api.objects.phase import is_final
from controlplane.virt_handler.vmi.world import Launcher, Traces

END_AGAIN_SECONDS = 10.0
DEADLINE_SECONDS = 60.0
"""How long an orphan that does not end blocks starts on its node: enough to destroy its domain three times."""


class MigrationState(Struct, frozen=True, kw_only=True):
    target_pod_uid: str = msgspec.field(default="", name="targetPodUID")
    failed: bool = False


class RunStatus(Struct, frozen=True, kw_only=True):
    phase: str = ""
    active_pods: dict[str, str] = msgspec.field(default_factory=dict)
    migration_state: MigrationState | None = None


class Run(Struct, frozen=True, kw_only=True):
    """The fields of a VMI that decide about orphans. An unreadable other field must not hide an orphan."""

    metadata: ObjectMeta = ObjectMeta()
    status: RunStatus = RunStatus()


@dataclass(frozen=True, slots=True)
class Orphan:
    """A launcher that its VMI no longer needs, as the API server reports."""

    pod_uid: str
    because: str


@dataclass(frozen=True, slots=True)
class Seen:
    """An orphan as observed now."""

    orphan: Orphan
    launcher: Launcher | None
    """None: the registry does not have it any more."""
    traces: Traces | None
    """What virt-node found on the node; None: it could not search."""


@dataclass(frozen=True, slots=True)
class Round:
    """What to do about the orphans now."""

    dial: tuple[Orphan, ...] = ()
    end: tuple[Orphan, ...] = ()
    left: tuple[Orphan, ...] = ()
    """The orphans that may still run."""


def orphan_reason(launcher: Launcher, vmi: Run | None) -> str:
    """Return why a launcher is an orphan; "" if it is not one.

    vmi: the VMI that the launcher's Pod names; None: the API server responded that it does not exist.
    """
    owner, uid = launcher.pod.owner, launcher.pod.uid
    if owner is None:
        return ""
    if vmi is None or vmi.metadata.uid != owner.uid:
        return f"the API server has no VMI of UID {owner.uid}"
    if is_final(vmi.status.phase):
        return "its run is over"
    granted = vmi.status.active_pods
    return "its VMI was granted to another Pod" if granted and uid not in _may_run(vmi) else ""


def _may_run(vmi: Run) -> tuple[str, ...]:
    """Return the UIDs of the Pods that may run the guest. The target of a migration is no orphan."""
    migration = vmi.status.migration_state
    is_without_target = migration is None or migration.failed or not migration.target_pod_uid
    targets = () if migration is None or is_without_target else (migration.target_pod_uid,)
    return (*vmi.status.active_pods, *targets)


def decide_orphans(candidates: Collection[Seen], now: float) -> Round:
    """Connect to orphans that are not admitted, and end those that are up, repeatedly until they are down."""
    running = [candidate for candidate in candidates if not _is_down(candidate)]
    reachable = [(candidate.orphan, candidate.launcher) for candidate in running if candidate.launcher is not None]
    return Round(
        dial=tuple(orphan for orphan, launcher in reachable if not launcher.status.is_admitted),
        end=tuple(orphan for orphan, launcher in reachable if _is_to_be_ended(launcher, now)),
        left=tuple(candidate.orphan for candidate in running),
    )


def _is_down(candidate: Seen) -> bool:
    """Tell whether the launcher has no guest and starts none, as virt-node and (when connected) libvirt report.

    The Pod's phase proves nothing: other components write it while the node is unreachable. A running operation may be
    a start.
    """
    launcher, traces = candidate.launcher, candidate.traces
    may_be_up = launcher is not None and (_is_up(launcher) or launcher.operation != "")
    return traces is not None and traces.emulators == 0 and not may_be_up


def _is_up(launcher: Launcher) -> bool:
    status = launcher.status
    return status.is_connected and status.state is not None and status.state.life.is_up


def _is_to_be_ended(launcher: Launcher, now: float) -> bool:
    asked_at = launcher.status.destroy_asked_at
    is_due = asked_at is None or now - asked_at >= END_AGAIN_SECONDS
    return _is_up(launcher) and is_due and not launcher.operation

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which launchers of a node that comes back are its own no more, and how they are ended before anything starts. Pure.

Only what the API server answers makes a launcher an orphan. It stays one: a UID that is gone does not come back, a
grant is for good, and a run that is over does not go on. What is not answered changes nothing.
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
"""So long an orphan that does not end keeps its node from starting machines: libvirt is told to end it three times."""


class Moving(Struct, frozen=True, kw_only=True):
    target_pod_uid: str = msgspec.field(default="", name="targetPodUID")
    failed: bool = False


class RunStatus(Struct, frozen=True, kw_only=True):
    phase: str = ""
    active_pods: dict[str, str] = msgspec.field(default_factory=dict)
    migration_state: Moving | None = None


class Run(Struct, frozen=True, kw_only=True):
    """Of a VMI what makes a launcher an orphan, and no more: whatever else of it cannot be read hides none."""

    metadata: ObjectMeta = ObjectMeta()
    status: RunStatus = RunStatus()


@dataclass(frozen=True, slots=True)
class Orphan:
    """A launcher whose VMI has no use for it any more, by the API server's own word."""

    pod_uid: str
    because: str


@dataclass(frozen=True, slots=True)
class Seen:
    """An orphan as it is now."""

    orphan: Orphan
    launcher: Launcher | None
    """None: it is not known any more."""
    traces: Traces | None
    """What a look at the node itself found; None: nobody could look."""


@dataclass(frozen=True, slots=True)
class Round:
    """What to do about orphans now."""

    dial: tuple[Orphan, ...] = ()
    end: tuple[Orphan, ...] = ()
    left: tuple[Orphan, ...] = ()
    """Those that may run yet."""


def orphan_reason(launcher: Launcher, vmi: Run | None) -> str:
    """Say why a launcher is not this node's to run any more; "" when it may be.

    vmi: what the API server has under the name that the launcher's Pod gives; None: it says that there is none.
    """
    owner, uid = launcher.pod.owner, launcher.pod.uid
    if owner is None:
        return ""
    if vmi is None or vmi.metadata.uid != owner.uid:
        return f"the API server knows no VMI of UID {owner.uid}"
    if is_final(vmi.status.phase):
        return "its run is over"
    granted = vmi.status.active_pods
    return "its VMI was granted to another Pod" if granted and uid not in _may_run(vmi) else ""


def _may_run(vmi: Run) -> tuple[str, ...]:
    """Name the Pods whose guest is the instance's, or may come to be: a migration's target is no orphan."""
    moving = vmi.status.migration_state
    coming = () if moving is None or moving.failed or not moving.target_pod_uid else (moving.target_pod_uid,)
    return (*vmi.status.active_pods, *coming)


def decide_orphans(seen: Collection[Seen], now: float) -> Round:
    """Dial an orphan that cannot be told to end, and tell it; again now and then, until it is known to be down."""
    left = [one for one in seen if not _is_down(one)]
    there = [(one.orphan, one.launcher) for one in left if one.launcher is not None]
    return Round(
        dial=tuple(orphan for orphan, launcher in there if not launcher.status.is_admitted),
        end=tuple(orphan for orphan, launcher in there if _is_to_be_told(launcher, now)),
        left=tuple(one.orphan for one in left),
    )


def _is_down(seen: Seen) -> bool:
    """Tell whether no guest is in there, nor comes: by the node itself, and by libvirt where that is reached.

    Not by its Pod's phase, which others than the kubelet write of a node that is away. While a verb is under way, a
    start may be it, whose guest is not there yet.
    """
    may_be_up = seen.launcher is not None and (_is_up(seen.launcher) or seen.launcher.operation != "")
    return seen.traces is not None and seen.traces.emulators == 0 and not may_be_up


def _is_up(launcher: Launcher) -> bool:
    status = launcher.status
    return status.is_connected and status.state is not None and status.state.life.is_up


def _is_to_be_told(launcher: Launcher, now: float) -> bool:
    asked = launcher.status.destroy_asked_at
    is_due = asked is None or now - asked >= END_AGAIN_SECONDS
    return _is_up(launcher) and is_due and not launcher.operation

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Failed starts, and the back-off of the next one: pure.

The back-off is 10 s times the square of the failures in a row, plus up to half of that, at most 300 s, as in KubeVirt.
The random part spreads VMs that failed together. The recorded time of the next start comes from a wall clock, and the
next leader's clock may differ: a time that is unreadable or later than any back-off is replaced. A fast clock shortens
one back-off at most.
"""

from __future__ import annotations

import hashlib

import msgspec
from kubevirt_api.run_strategies import ALWAYS, RERUN_ON_FAILURE

from controlplane.api.objects.phase import SUCCEEDED, is_final
from controlplane.api.objects.vm import StartFailure
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.api.timestamps import format_timestamp, parse_timestamp
from controlplane.virt_controller.vm.world import BACKED_OFF, COUNTED, World

BASE_SECONDS = 10.0
CAP_SECONDS = 300.0
SHORTEST_CAP_SECONDS = 250.0


def is_failed_start(world: World, own: VirtualMachineInstance) -> bool:
    """Tell whether the VMI ended by itself and never ran, which counts as a failed start.

    A VMI that was deleted first was ended by a user, or by this controller after recording the failure. One that
    succeeded counts only under Always: a guest may power off at once.
    """
    ended = is_final(own.status.phase) and not own.has_run and not _is_last_run(world, own)
    return ended and world.vm.run_strategy in COUNTED and not world.is_stopping


def _is_last_run(world: World, own: VirtualMachineInstance) -> bool:
    """Tell whether the VMI succeeded and no run follows. Then a failure would be reported for ever."""
    return own.status.phase == SUCCEEDED and world.vm.run_strategy != ALWAYS


def is_recorded(world: World, own: VirtualMachineInstance) -> bool:
    """Tell whether this failed start is counted."""
    failure = world.vm.status.start_failure
    return failure is not None and failure.last_failed_vmi_uid == own.metadata.uid


def next_start_failure(world: World) -> StartFailure | None:
    """Count a failed start once. The count is reset when a VMI runs, or when no run follows by itself."""
    own, old = world.own, world.vm.status.start_failure
    if not world.is_strategy_known:
        return old
    if world.vm.run_strategy not in COUNTED or _has_row_ended(world):
        return None
    if own is None or not is_failed_start(world, own) or is_recorded(world, own):
        return _with_plausible_time(world, old)
    count = (old.consecutive_fail_count if old else 0) + 1
    return StartFailure(
        consecutive_fail_count=count,
        last_failed_vmi_uid=own.metadata.uid,
        retry_after_timestamp=_retry_after(world, count),
    )


def _has_row_ended(world: World) -> bool:
    """Tell whether the row of failures has ended: the VMI ran or was the last one, or no start follows."""
    own = world.own
    return (own is not None and (own.has_run or _is_last_run(world, own))) or _is_stopped(world)


def _is_stopped(world: World) -> bool:
    """Tell whether no start follows by itself: the next one is a user's."""
    strategy, acted_on = world.vm.run_strategy, world.vm.status.run_strategy
    is_idle = world.own is None and world.is_instance_known and not world.pending_requests
    return is_idle and strategy == acted_on == RERUN_ON_FAILURE


def seconds_to_wait(world: World) -> float:
    """Return the remaining back-off in seconds; at most 300, 0 or less without one."""
    failure = next_start_failure(world)
    if world.vm.run_strategy not in BACKED_OFF or failure is None or failure.retry_after_timestamp is None:
        return 0.0
    return parse_timestamp(failure.retry_after_timestamp) - world.now


def delay_seconds(count: int, *, jitter: float) -> float:
    """Return the back-off in seconds after failures in a row. jitter: 0 up to 1, the part of the random addition."""
    shortest = min(BASE_SECONDS * max(count, 1) ** 2, SHORTEST_CAP_SECONDS)
    longest = min(shortest * 1.5, CAP_SECONDS)
    return shortest + jitter * (longest - shortest)


def spread(uid: str, count: int) -> float:
    """Derive the jitter from the VM's UID and its count: all leaders get the same."""
    return int.from_bytes(hashlib.sha256(f"{uid}/{count}".encode()).digest()[:4], "big") / 2**32


def _retry_after(world: World, count: int) -> str:
    return format_timestamp(world.now + delay_seconds(count, jitter=spread(world.vm.metadata.uid, count)))


def _with_plausible_time(world: World, failure: StartFailure | None) -> StartFailure | None:
    if failure is None or failure.retry_after_timestamp is None:
        return failure
    try:
        if parse_timestamp(failure.retry_after_timestamp) - world.now <= CAP_SECONDS:
            return failure
    except ValueError:
        pass
    return msgspec.structs.replace(failure, retry_after_timestamp=_retry_after(world, failure.consecutive_fail_count))

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Starts that failed, and how long the next one waits for it: pure.

10 s times the square of the failures in a row and up to half of that more, at most 300 s: upstream's figures. What is
more spreads VMs which failed together, also those that have come to the longest wait. The time of the next start is a
wall clock's, and the next leader may have another clock: a time that lies further ahead than any wait, or cannot be
read, is set anew. A clock that is ahead ends one wait too early, no more.
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
    """Tell whether the instance ended by itself without ever having run, which counts for the back-off.

    One that was deleted first was ended by somebody: by a person, or by us, who record a failure before we delete.
    One that succeeded counts only where another follows whatever it was: a guest may power off at its first breath.
    """
    ended = is_final(own.status.phase) and not own.has_run and not _is_enough(world, own)
    return ended and world.vm.run_strategy in COUNTED and not world.is_stopping


def _is_enough(world: World, own: VirtualMachineInstance) -> bool:
    """Tell whether the run was the last: nothing waits after it, and a loop that never ends would be told for ever."""
    return own.status.phase == SUCCEEDED and world.vm.run_strategy != ALWAYS


def is_recorded(world: World, own: VirtualMachineInstance) -> bool:
    """Tell whether this failed start is counted already."""
    failure = world.vm.status.start_failure
    return failure is not None and failure.last_failed_vmi_uid == own.metadata.uid


def next_start_failure(world: World) -> StartFailure | None:
    """Count an instance that ended before it ran, once; forget all when one runs, or no other follows by itself."""
    own, old = world.own, world.vm.status.start_failure
    if not world.is_strategy_known:
        return old
    if world.vm.run_strategy not in COUNTED or _is_over(world):
        return None
    if own is None or not is_failed_start(world, own) or is_recorded(world, own):
        return _believable(world, old)
    count = (old.consecutive_fail_count if old else 0) + 1
    return StartFailure(
        consecutive_fail_count=count,
        last_failed_vmi_uid=own.metadata.uid,
        retry_after_timestamp=_retry_after(world, count),
    )


def _is_over(world: World) -> bool:
    """Tell whether the loop has ended: the instance has run or was the last, or no start is to follow."""
    own = world.own
    return (own is not None and (own.has_run or _is_enough(world, own))) or _is_stopped(world)


def _is_stopped(world: World) -> bool:
    """Tell whether no start is to follow by itself: then none waits, and the next one is a person's."""
    strategy, acted_on = world.vm.run_strategy, world.vm.status.run_strategy
    is_over = world.own is None and world.is_instance_known and not world.pending_requests
    return is_over and strategy == acted_on == RERUN_ON_FAILURE


def seconds_to_wait(world: World) -> float:
    """Say how long the next start still has to wait; at most 300 s, 0 or less when it need not."""
    failure = next_start_failure(world)
    if world.vm.run_strategy not in BACKED_OFF or failure is None or failure.retry_after_timestamp is None:
        return 0.0
    return parse_timestamp(failure.retry_after_timestamp) - world.now


def delay_seconds(count: int, *, jitter: float) -> float:
    """Say how long to wait after so many failures in a row. jitter: from 0 up to 1, for the share that is added."""
    shortest = min(BASE_SECONDS * max(count, 1) ** 2, SHORTEST_CAP_SECONDS)
    longest = min(shortest * 1.5, CAP_SECONDS)
    return shortest + jitter * (longest - shortest)


def spread(uid: str, count: int) -> float:
    """Make a jitter of a VM and its count: each VM its own, the same whoever computes it."""
    return int.from_bytes(hashlib.sha256(f"{uid}/{count}".encode()).digest()[:4], "big") / 2**32


def _retry_after(world: World, count: int) -> str:
    return format_timestamp(world.now + delay_seconds(count, jitter=spread(world.vm.metadata.uid, count)))


def _believable(world: World, failure: StartFailure | None) -> StartFailure | None:
    if failure is None or failure.retry_after_timestamp is None:
        return failure
    try:
        if parse_timestamp(failure.retry_after_timestamp) - world.now <= CAP_SECONDS:
            return failure
    except ValueError:
        pass
    return msgspec.structs.replace(failure, retry_after_timestamp=_retry_after(world, failure.consecutive_fail_count))

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which requests of a VM's queue are still to be carried out: one answer for who takes and who carries out."""

from __future__ import annotations

from controlplane.api.objects.vm import StateChangeRequest

PAUSED, GENERATION = "paused", "generation"
"""Options of a start: whether the guest is to wait for an unpause, and of which generation of a halted VM it is."""


def start_request(*, is_paused: bool, generation: int | None = None) -> StateChangeRequest:
    """Ask for a run. generation: of a VM that is halted; a start that was asked for before it was is none."""
    data = {PAUSED: "true"} if is_paused else {}
    if generation is not None:
        data[GENERATION] = str(generation)
    return StateChangeRequest(action="Start", data=data)


def asks_paused(request: StateChangeRequest) -> bool:
    """Tell whether a start asks for a guest that waits for an unpause."""
    return request.action == "Start" and request.data.get(PAUSED, "").lower() == "true"


def switches_on(request: StateChangeRequest, generation: int) -> bool:
    """Tell whether a start is one of a machine that was halted already when it was asked for, and is as it was then.

    A paused start cannot switch its machine on by itself, as others do: the run would begin before it is known to be
    paused. Halting a machine, or changing anything else of its spec, is newer than such a start and counts.
    """
    return asks_paused(request) and request.data.get(GENERATION) == str(generation)


def pending(queue: tuple[StateChangeRequest, ...], *, uid: str | None, is_own: bool) -> tuple[StateChangeRequest, ...]:
    """Leave out what is done: a stop when the instance that it names is gone, a start when the VM has an instance.

    In whatever state that is: its run may have begun and ended before anybody took the start off the queue, and must
    not be run again. Who wants another run than the one that is there queues the stop of that one before the start.

    uid: of the instance that is there and may be the VM's, None without one. is_own: it is the VM's.
    """
    while queue and _is_done(queue[0], uid=uid, is_own=is_own):
        queue = queue[1:]
    return queue


def _is_done(request: StateChangeRequest, *, uid: str | None, is_own: bool) -> bool:
    if request.action == "Stop":
        return uid is None or (request.uid is not None and request.uid != uid)
    return is_own and request.action == "Start"

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Start and stop requests in a VM's status: which are pending. Pure; virt-api and virt-controller share it."""

from __future__ import annotations

from controlplane.api.objects.vm import StateChangeRequest

PAUSED, GENERATION = "paused", "generation"
"""Options of a start: whether the guest is to wait for an unpause, and of which generation of a halted VM it is."""


def start_request(*, is_paused: bool, generation: int | None = None) -> StateChangeRequest:
    """Return a start request. generation: of a halted VM; the start is void once the VM's spec changes."""
    data = {PAUSED: "true"} if is_paused else {}
    if generation is not None:
        data[GENERATION] = str(generation)
    return StateChangeRequest(action="Start", data=data)


def asks_paused(request: StateChangeRequest) -> bool:
    """Tell whether a request starts the guest paused."""
    return request.action == "Start" and request.data.get(PAUSED, "").lower() == "true"


def switches_on(request: StateChangeRequest, generation: int) -> bool:
    """Tell whether a paused start applies to a halted machine, whose spec has not changed since the request.

    Other starts set the run strategy. A paused start cannot: the run would begin before the request is read. A later
    change of the spec, e.g. halting the machine again, makes the request void.
    """
    return asks_paused(request) and request.data.get(GENERATION) == str(generation)


def pending(queue: tuple[StateChangeRequest, ...], *, uid: str | None, is_own: bool) -> tuple[StateChangeRequest, ...]:
    """Drop completed requests: a stop when its instance is gone, a start when the VM has an instance in any phase.

    The run may have ended before the start was removed from the queue; it must not run a second time. A restart queues
    a stop of the current instance before the start.

    uid: of the instance with the VM's name, if there is one. is_own: the VM owns it.
    """
    while queue and _is_done(queue[0], uid=uid, is_own=is_own):
        queue = queue[1:]
    return queue


def _is_done(request: StateChangeRequest, *, uid: str | None, is_own: bool) -> bool:
    if request.action == "Stop":
        return uid is None or (request.uid is not None and request.uid != uid)
    return is_own and request.action == "Start"

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which requests of a VM's queue are still to be carried out: one answer for who takes and who carries out."""

from __future__ import annotations

from controlplane.api.objects.vm import StateChangeRequest


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

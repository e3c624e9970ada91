# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which requests of a VM's queue are still to be carried out: one answer for who takes and who carries out."""

from __future__ import annotations

from controlplane.api.objects.vm import StateChangeRequest


def pending(queue: tuple[StateChangeRequest, ...], *, uid: str | None, lives: bool) -> tuple[StateChangeRequest, ...]:
    """Leave out what is done: a stop when the instance that it names is gone, a start when one lives.

    uid: of the instance that is there and may be the VM's, None without one. lives: one of the VM's own runs, may run
    or is about to, and is not on its way out.
    """
    while queue and _is_done(queue[0], uid=uid, lives=lives):
        queue = queue[1:]
    return queue


def _is_done(request: StateChangeRequest, *, uid: str | None, lives: bool) -> bool:
    if request.action == "Stop":
        return uid is None or (request.uid is not None and request.uid != uid)
    return lives and request.action == "Start"

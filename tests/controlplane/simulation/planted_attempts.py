# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bugs about runs that are tried again. Each must be found."""

from __future__ import annotations

from controlplane.api.objects.pod import Failure
from controlplane.virt_controller.vmi.next_attempt import FailedStart
from controlplane.virt_controller.vmi.world import World


def without_end(_world: World) -> int:
    """Try as often as nodes fail."""
    return 99


def whatever_it_was(world: World) -> FailedStart | None:
    """Take every end of a Pod for its node's fault, a machine's own broken disk as well."""
    pod = world.source
    if pod is None or not pod.is_over or world.is_deleting or len(world.vmi.status.failed_attempts) >= 2:
        return None
    return FailedStart(Failure("UnexpectedAdmissionError", "it ended"), True)

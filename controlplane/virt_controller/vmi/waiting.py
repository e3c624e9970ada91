# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run waits for before it can have a launcher Pod, or be granted the start. Pure.

Until it has a Pod its phase is Pending, as upstream.
"""

from __future__ import annotations

from controlplane.api.objects.pod import Failure
from controlplane.virt_controller.vmi.predecessor import wait_for_predecessor
from controlplane.virt_controller.vmi.volumes import missing_claim, written_elsewhere
from controlplane.virt_controller.vmi.world import World


def why_wait(world: World) -> str:
    """Return why the run cannot have a Pod yet; "" if it can."""
    if world.predecessors:
        return "a Pod of a former instance of its name may still have a guest"
    if world.missing_claims:
        return "a claim that it names does not exist"
    if world.unfilled:
        return "a DataVolume that it names is not filled"
    if world.claim_writers:
        return "another instance writes to a block device that it names"
    return ""


def what_it_waits_for(world: World) -> Failure | None:
    """Return why there is no Pod or no grant yet, for users; DataVolumes have a condition of their own."""
    if world.source is not None:
        return written_elsewhere(world)
    return wait_for_predecessor(world) or missing_claim(world) or written_elsewhere(world)

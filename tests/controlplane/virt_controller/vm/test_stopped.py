# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine that was stopped is reported as stopped, whatever it was doing: no start of it waits."""

from __future__ import annotations

import pytest
from kubevirt_api.run_strategies import BUILT

from controlplane.api.objects import conditions
from controlplane.virt_controller.vm.world import Ownership, World
from tests.controlplane.virt_controller.vm.play import SCENES, ask, run_to_rest, the_scene


def stopped(strategy: str) -> list[tuple[tuple[str, ...], World]]:
    """The worlds at rest after a stop, for every scene that accepts a stop."""
    results = []
    for scene in SCENES:
        world = the_scene(*scene) if scene[0] == strategy else None
        after = None if world is None or world.claim is Ownership.FOREIGN else ask("stop", world)
        if after is not None:
            results.append((scene, run_to_rest(after).world))
    return results


@pytest.mark.parametrize("strategy", BUILT)
def test_a_machine_that_was_stopped_waits_for_no_start(strategy: str) -> None:
    for scene, world in stopped(strategy):
        assert not world.vm.status.state_change_requests, scene
        assert world.vm.status.printable_status == "Stopped", scene
        assert world.vm.status.start_failure is None, scene
        assert conditions.find(world.vm.status.conditions, "Failure") is None, scene

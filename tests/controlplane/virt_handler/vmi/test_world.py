# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which launcher belongs to a run, and which Pod is missing."""

from __future__ import annotations

import msgspec
import pytest

from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.virt_handler.vmi.world import Launcher, Traces, World
from tests.controlplane.virt_handler.builders import NODE, OTHER, POD_UID, a_launcher, a_pod, a_vmi, a_world

MINE, ANOTHER = a_launcher(), a_launcher(pod=a_pod("another"))
LEFT = a_launcher(gone=True)
WAITING, GRANTED = a_vmi("Scheduling"), a_vmi("Running")


def granted(**pods: str) -> VirtualMachineInstance:
    return msgspec.structs.replace(GRANTED, status=msgspec.structs.replace(GRANTED.status, active_pods=pods))


TWO = granted(**{POD_UID: NODE, "another": NODE})
LAUNCHERS: dict[str, tuple[World, Launcher | None]] = {
    "not handed over": (a_world(None, MINE), None),
    "none": (a_world(WAITING), None),
    "before the grant, the only one": (a_world(WAITING, MINE), MINE),
    "before the grant, one of two": (a_world(WAITING, MINE, ANOTHER), None),
    "granted": (a_world(GRANTED, MINE), MINE),
    "granted, one of two": (a_world(GRANTED, ANOTHER, MINE), MINE),
    "not granted": (a_world(GRANTED, ANOTHER), None),
    "two granted": (a_world(TWO, MINE, ANOTHER), None),
}
MISSING: dict[str, tuple[World, str]] = {
    "not handed over": (a_world(None), ""),
    "nothing granted": (a_world(WAITING), ""),
    "not listed": (a_world(GRANTED), POD_UID),
    "listed": (a_world(GRANTED, MINE), ""),
    "removed, still connected": (a_world(GRANTED, LEFT), POD_UID),
    "incomplete list": (a_world(GRANTED, are_launchers_known=False), ""),
    "granted elsewhere": (a_world(granted(**{POD_UID: OTHER})), ""),
    "granted here and elsewhere": (a_world(granted(**{POD_UID: NODE, "another": OTHER})), POD_UID),
    "two missing": (a_world(TWO), ""),
    "two granted, one listed": (a_world(TWO, MINE), "another"),
}


@pytest.mark.parametrize(("world", "launcher"), LAUNCHERS.values(), ids=LAUNCHERS)
def test_the_launcher_of_a_run(world: World, launcher: Launcher | None) -> None:
    assert world.launcher is launcher


@pytest.mark.parametrize(("world", "uid"), MISSING.values(), ids=MISSING)
def test_the_missing_pod_of_a_run(world: World, uid: str) -> None:
    assert world.lost_pod == uid


@pytest.mark.parametrize(
    ("traces", "is_clean"),
    [
        (Traces(has_directory=False, processes=0), True),
        (Traces(has_directory=True, processes=0), False),
        (Traces(has_directory=False, processes=1), False),
    ],
)
def test_a_node_is_clean_without_directory_and_processes(traces: Traces, is_clean: bool) -> None:
    assert traces.is_clean is is_clean

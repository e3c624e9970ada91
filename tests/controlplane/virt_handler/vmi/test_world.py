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


@pytest.mark.parametrize(
    ("world", "launcher"),
    [
        (a_world(None, MINE), None),
        (a_world(WAITING), None),
        (a_world(WAITING, MINE), MINE),
        (a_world(WAITING, MINE, ANOTHER), None),
        (a_world(GRANTED, MINE), MINE),
        (a_world(GRANTED, ANOTHER, MINE), MINE),
        (a_world(GRANTED, ANOTHER), None),
        (a_world(granted(**{POD_UID: NODE, "another": NODE}), MINE, ANOTHER), None),
    ],
    ids=[
        "a VMI that was not handed over",
        "none",
        "before the grant the only one",
        "before the grant one of two: nobody knows which",
        "the granted one",
        "the granted one of two",
        "one that was not granted",
        "two were granted: nobody knows which",
    ],
)
def test_the_launcher_of_a_run(world: World, launcher: Launcher | None) -> None:
    assert world.launcher is launcher


@pytest.mark.parametrize(
    ("world", "uid"),
    [
        (a_world(None), ""),
        (a_world(WAITING), ""),
        (a_world(GRANTED), POD_UID),
        (a_world(GRANTED, MINE), ""),
        (a_world(GRANTED, LEFT), POD_UID),
        (a_world(GRANTED, are_launchers_known=False), ""),
        (a_world(granted(**{POD_UID: OTHER})), ""),
        (a_world(granted(**{POD_UID: NODE, "another": OTHER})), POD_UID),
        (a_world(granted(**{POD_UID: NODE, "another": NODE})), ""),
        (a_world(granted(**{POD_UID: NODE, "another": NODE}), MINE), "another"),
    ],
    ids=[
        "a VMI that was not handed over",
        "nothing was granted",
        "the granted one is not listed",
        "it is listed",
        "the API server does not know it any more, though we hold on to it",
        "not all are known yet",
        "it was granted elsewhere",
        "the one that was granted here",
        "two are missing: nobody knows which",
        "of two that were granted one is listed",
    ],
)
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

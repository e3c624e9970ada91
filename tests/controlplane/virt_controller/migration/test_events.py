# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is said of a guest whose CPU no other node has."""

from __future__ import annotations

import msgspec
import pytest

from controlplane.virt_controller.migration.events import host_cpu_event
from tests.controlplane.virt_controller.migration.worlds import a_migration, a_target, a_world, an_instance

EPYC = {"cpu-model-migration.node.kubevirt.io/EPYC": "true", "cpu-feature.node.kubevirt.io/avx2": "true"}


@pytest.mark.parametrize(
    ("needed", "others", "is_said"),
    [
        (EPYC, [], True),
        (EPYC, [{"cpu-model-migration.node.kubevirt.io/EPYC": "true"}, {"zone": "a"}], True),
        (EPYC, [{"zone": "a"}, {**EPYC, "zone": "b"}], False),
        ({"zone": "c"}, [{"zone": "a"}], False),
    ],
    ids=["no other node", "none has all", "one has", "another reason"],
)
def test_it_is_said_if_no_other_node_has_the_cpu(
    needed: dict[str, str], others: list[dict[str, str]], is_said: bool
) -> None:
    target = a_target("Pending", node="")
    target = msgspec.structs.replace(target, spec=msgspec.structs.replace(target.spec, node_selector=needed))
    world = a_world(a_migration("Scheduling"), an_instance(), target=target)
    event = host_cpu_event(world, others)
    assert (None if event is None else (event.kind, event.reason)) == (
        ("Warning", "NoSuitableNodesForHostModelMigration") if is_said else None
    )

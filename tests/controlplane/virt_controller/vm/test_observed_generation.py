# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The VM generation that an instance implements.

An annotation holds the generation that the instance was created from, so it may have any value. A later generation
with the
same template is the same machine: a change of the run strategy alone is observed at once.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from kubevirt_api.names import TEMPLATE_HASH, VM_GENERATION

from controlplane.virt_controller.vm.status import derive_status
from controlplane.virt_controller.vm.template import template_hash
from tests.controlplane.virt_controller.builders import a_vm, a_vmi, vm_world

TEMPLATE = b'{"domain":{"memory":{"guest":"64Mi"}}}'
ANOTHER = b'{"domain":{"memory":{"guest":"128Mi"}}}'


def observed(
    text: str, made_from: bytes | None = None, *, before: int = 1, created: bool = True, **instance: Any
) -> int:
    """The VM has generation 3. before: the observed generation, with an instance (created) or without.

    made_from: the template hash of the instance.
    """
    annotations = {VM_GENERATION: text}
    if made_from is not None:
        annotations[TEMPLATE_HASH] = template_hash(made_from)
    vmi = a_vmi(**{"phase": "Running", **instance})
    vmi = msgspec.structs.replace(vmi, metadata=msgspec.structs.replace(vmi.metadata, annotations=annotations))
    status = derive_status(vm_world(a_vm(observedGeneration=before, created=created), vmi, template=TEMPLATE), None)
    assert status is not None
    return status.observed_generation


INSTANCES: dict[str, dict[str, Any]] = {
    "runs": {},
    "is on its way": {"phase": "Scheduling"},
    "is going": {"deleting": True},
    "is over": {"phase": "Succeeded"},
}


@pytest.mark.parametrize("text", ["2", "0", "two", ""])
@pytest.mark.parametrize("instance", INSTANCES.values(), ids=INSTANCES)
def test_an_instance_with_the_template_of_the_vm_is_its_newest_generation(instance: dict[str, Any], text: str) -> None:
    """Otherwise a wait for observedGeneration after a change of the run strategy would never end."""
    assert observed(text, TEMPLATE, **instance) == 3


def test_an_instance_with_another_template_is_the_generation_in_its_annotation() -> None:
    assert observed("2", ANOTHER) == 2


def test_an_instance_without_a_template_hash_is_the_generation_in_its_annotation() -> None:
    assert observed("2") == 2


def test_an_instance_of_another_vm_is_ignored() -> None:
    assert observed("2", TEMPLATE, owner="another") == 1


def test_an_observed_generation_stays_when_the_template_changes() -> None:
    """Generation 2 changed only the run strategy, and the instance of generation 1 is observed as 2; 3 is not
    observed.
    """
    assert observed("1", ANOTHER, before=2) == 2


def test_the_observed_generation_of_a_former_run_is_dropped() -> None:
    assert observed("1", ANOTHER, before=2, created=False) == 1


def test_an_impossible_observed_generation_is_replaced() -> None:
    assert observed("2", ANOTHER, before=4) == 2


@pytest.mark.parametrize("text", ["2", "3"])
def test_a_possible_generation_in_the_annotation_is_observed(text: str) -> None:
    assert observed(text) == int(text)


NONSENSE = ["", "0", "4", "-2", "2.0", " 2", "two", "²", "٢", "9" * 18, "9" * 20, "9" * 5_000]


@pytest.mark.parametrize("text", NONSENSE, ids=lambda text: ascii(text[:8]) + f" of {len(text)}")
def test_an_impossible_generation_in_the_annotation_is_ignored(text: str) -> None:
    """5,000 digits would raise a ValueError in every pass; the API server would refuse a status with 20 digits."""
    assert observed(text) == 1

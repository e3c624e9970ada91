# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which generation of a VM its instance is.

The one that it was made from is an annotation, so anything may be in it. A later one with the same template is that
very machine, too: a change of the run strategy alone is observed at once.
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
    """The VM is of generation 3. before: what was observed, with an instance (created) or without.

    made_from: a template that the instance names.
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
    """Who waits for observedGeneration after a change of the run strategy waited for ever."""
    assert observed(text, TEMPLATE, **instance) == 3


def test_an_instance_with_another_template_is_the_generation_that_it_was_made_from() -> None:
    assert observed("2", ANOTHER) == 2


def test_an_instance_that_does_not_name_its_template_is_the_generation_that_it_was_made_from() -> None:
    assert observed("2") == 2


def test_what_belongs_to_another_vm_is_no_generation_of_this_one() -> None:
    assert observed("2", TEMPLATE, owner="another") == 1


def test_a_generation_that_was_observed_stays_so_when_the_template_moves_on() -> None:
    """Generation 2 changed the run strategy alone, and was observed as the machine that was made from 1; 3 is not."""
    assert observed("1", ANOTHER, before=2) == 2


def test_what_was_observed_of_a_former_run_is_not_said_of_the_next() -> None:
    assert observed("1", ANOTHER, before=2, created=False) == 1


def test_what_no_generation_of_the_vm_can_be_is_not_held_on_to() -> None:
    assert observed("2", ANOTHER, before=4) == 2


@pytest.mark.parametrize("text", ["2", "3"])
def test_a_generation_that_the_vm_has_had_is_observed(text: str) -> None:
    assert observed(text) == int(text)


NONSENSE = ["", "0", "4", "-2", "2.0", " 2", "two", "²", "٢", "9" * 18, "9" * 20, "9" * 5_000]


@pytest.mark.parametrize("text", NONSENSE, ids=lambda text: ascii(text[:8]) + f" of {len(text)}")
def test_what_cannot_be_a_generation_of_the_vm_is_ignored(text: str) -> None:
    """5,000 digits ended every pass in a ValueError, 20 made a status that the API server refuses."""
    assert observed(text) == 1

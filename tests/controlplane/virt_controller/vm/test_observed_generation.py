# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which generation of a VM its instance was made from: an annotation, so anything may be in it."""

from __future__ import annotations

import msgspec
import pytest
from kubevirt_api.names import VM_GENERATION

from controlplane.virt_controller.vm.status import derive_status
from tests.controlplane.virt_controller.builders import a_vm, a_vmi, vm_world


def observed(text: str) -> int:
    """The VM is of generation 3, and 1 was observed before."""
    vmi = a_vmi("Running")
    vmi = msgspec.structs.replace(
        vmi, metadata=msgspec.structs.replace(vmi.metadata, annotations={VM_GENERATION: text})
    )
    status = derive_status(vm_world(a_vm(observedGeneration=1), vmi), None)
    assert status is not None
    return status.observed_generation


@pytest.mark.parametrize("text", ["2", "3"])
def test_a_generation_that_the_vm_has_had_is_observed(text: str) -> None:
    assert observed(text) == int(text)


NONSENSE = ["", "0", "4", "-2", "2.0", " 2", "two", "²", "٢", "9" * 18, "9" * 20, "9" * 5_000]


@pytest.mark.parametrize("text", NONSENSE, ids=lambda text: ascii(text[:8]) + f" of {len(text)}")
def test_what_cannot_be_a_generation_of_the_vm_is_ignored(text: str) -> None:
    """5,000 digits ended every pass in a ValueError, 20 made a status that the API server refuses."""
    assert observed(text) == 1

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a Node says of its processor, and what a guest needs of the one that it goes to."""

from __future__ import annotations

import pytest

from controlplane.api.cpu_labels import UnknownProcessorError, label_processor, needed_at_target, of_processor

EPYC = label_processor(
    model="EPYC", vendor="AMD", models=["EPYC", "qemu64"], required=["x2apic"], features=["x2apic", "avx2"]
)
OF_EPYC = {"cpu-model-migration.node.kubevirt.io/EPYC": "true", "cpu-feature.node.kubevirt.io/x2apic": "true"}


def needed(
    model: str, *, own: dict[str, str] | None = None, of_pod: dict[str, str] | None = None, unknown: bool = False
) -> dict[str, str]:
    return needed_at_target(model, own=own or {}, of_pod=of_pod or {}, of_node={} if unknown else EPYC)


def test_a_node_says_what_its_processor_is_and_has() -> None:
    assert EPYC == {
        "cpu-feature.node.kubevirt.io/avx2": "true",
        "cpu-feature.node.kubevirt.io/x2apic": "true",
        "cpu-model-migration.node.kubevirt.io/EPYC": "true",
        "cpu-model-migration.node.kubevirt.io/qemu64": "true",
        "cpu-model.node.kubevirt.io/EPYC": "true",
        "cpu-model.node.kubevirt.io/qemu64": "true",
        "cpu-vendor.node.kubevirt.io/AMD": "true",
        "host-model-cpu.node.kubevirt.io/EPYC": "true",
        "host-model-required-features.node.kubevirt.io/x2apic": "true",
    }
    assert of_processor({**EPYC, "zone": "a", "kubevirt.io/schedulable": "true"}) == EPYC


def test_a_vendor_that_is_not_known_is_not_told() -> None:
    assert "cpu-vendor.node.kubevirt.io/" not in label_processor(
        model="EPYC", vendor="", models=[], required=[], features=[]
    )


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("", OF_EPYC),
        ("host-model", OF_EPYC),
        ("host-passthrough", {**OF_EPYC, "host-model-cpu.node.kubevirt.io/EPYC": "true"}),
        ("Nehalem", {"cpu-model.node.kubevirt.io/Nehalem": "true"}),
    ],
)
def test_a_guest_goes_where_the_processor_can_carry_it(model: str, expected: dict[str, str]) -> None:
    assert needed(model) == expected


def test_a_guest_that_has_moved_keeps_what_it_began_with() -> None:
    """It began on a Skylake; the EPYC that it is on now does not matter, or it could not go back."""
    began = {
        "cpu-model-migration.node.kubevirt.io/Skylake-Client": "true",
        "cpu-feature.node.kubevirt.io/ss": "true",
        "host-model-cpu.node.kubevirt.io/Skylake-Client": "true",
    }
    assert needed("host-model", of_pod={**began, "zone": "a"}) == began


def test_what_its_instance_asks_for_itself_says_nothing_of_where_it_began() -> None:
    own = {"cpu-feature.node.kubevirt.io/avx2": "true", "cpu-model-migration.node.kubevirt.io/qemu64": "true"}
    assert needed("host-model", own=own, of_pod=own) == OF_EPYC


@pytest.mark.parametrize("model", ["", "host-model", "host-passthrough"])
def test_a_guest_whose_processor_is_not_known_goes_nowhere(model: str) -> None:
    with pytest.raises(UnknownProcessorError, match="does not say which processor"):
        needed(model, unknown=True)


def test_a_model_that_is_named_needs_no_word_of_its_node() -> None:
    assert needed("Nehalem", unknown=True) == {"cpu-model.node.kubevirt.io/Nehalem": "true"}

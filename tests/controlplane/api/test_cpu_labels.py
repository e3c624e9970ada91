# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CPU labels of a node, and the CPU labels that a migration target must have."""

from __future__ import annotations

import pytest

from controlplane.api.cpu_labels import (
    UnknownProcessorError,
    label_processor,
    needed_at_target,
    of_processor,
)

EPYC = label_processor(
    model="EPYC", vendor="AMD", models=["EPYC", "qemu64"], required=["x2apic"], features=["x2apic", "avx2"]
)
OF_EPYC = {"cpu-model-migration.node.kubevirt.io/EPYC": "true", "cpu-feature.node.kubevirt.io/x2apic": "true"}


def needed(
    model: str, *, own: dict[str, str] | None = None, of_pod: dict[str, str] | None = None, unknown: bool = False
) -> dict[str, str]:
    return needed_at_target(model, own=own or {}, of_pod=of_pod or {}, of_node={} if unknown else EPYC)


def test_a_node_labels_its_cpu_model_and_features() -> None:
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


def test_a_node_that_emulates_labels_only_its_cpu_models() -> None:
    """No guest comes by its host model, and features are not promised."""
    assert label_processor(model="", vendor="", models=["EPYC", "qemu64"], required=[], features=[]) == {
        "cpu-model.node.kubevirt.io/EPYC": "true",
        "cpu-model.node.kubevirt.io/qemu64": "true",
    }


def test_a_board_is_labelled_if_a_label_can_have_its_name() -> None:
    names = ["pc-q35-10.0", "pc-q35-10.0+deb13", "-", "x" * 64]
    labels = label_processor(model="", vendor="", models=[], required=[], features=[], machines=names)
    assert labels == {"machine-type.node.kubevirt.io/pc-q35-10.0": "true"}


def test_an_unknown_vendor_gets_no_label() -> None:
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
def test_a_guest_goes_to_nodes_with_a_matching_cpu(model: str, expected: dict[str, str]) -> None:
    assert needed(model) == expected


def test_a_migrated_guest_keeps_the_requirements_of_its_first_node() -> None:
    """It started on a Skylake. If the EPYC it runs on now counted, it could not go back."""
    began = {
        "cpu-model-migration.node.kubevirt.io/Skylake-Client": "true",
        "cpu-feature.node.kubevirt.io/ss": "true",
        "host-model-cpu.node.kubevirt.io/Skylake-Client": "true",
    }
    assert needed("host-model", of_pod={**began, "zone": "a"}) == began


def test_the_node_selector_of_an_instance_does_not_say_where_it_started() -> None:
    own = {"cpu-feature.node.kubevirt.io/avx2": "true", "cpu-model-migration.node.kubevirt.io/qemu64": "true"}
    assert needed("host-model", own=own, of_pod=own) == OF_EPYC


@pytest.mark.parametrize("model", ["", "host-model", "host-passthrough"])
def test_a_guest_with_an_unknown_cpu_cannot_migrate(model: str) -> None:
    with pytest.raises(UnknownProcessorError, match="does not say which processor"):
        needed(model, unknown=True)


def test_a_named_cpu_model_needs_no_label_of_the_source_node() -> None:
    assert needed("Nehalem", unknown=True) == {"cpu-model.node.kubevirt.io/Nehalem": "true"}

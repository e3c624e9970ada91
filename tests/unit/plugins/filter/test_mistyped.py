# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Unknown names, each with the nearest known name."""

from __future__ import annotations

import pytest
from ansible_collections.virtops.kubevirt.plugins.filter._mistyped import FilterModule

mistyped = FilterModule().filters()["_mistyped"]
KNOWN = ["control_plane_replicas", "control_plane_state", "node_kvm_required"]


def test_known_names_are_not_mistyped() -> None:
    assert mistyped(KNOWN[:2], KNOWN) == []


def test_known_names_that_differ_only_in_underscores_are_known() -> None:
    names = ["control_plane_replicas", "controlplane_replicas"]
    assert mistyped(names, names) == mistyped(names, names, alike=0.9) == []


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("control_plane_replica", "control_plane_replicas"),
        ("control_plane_sate", "control_plane_state"),
        ("node_kvm_require", "node_kvm_required"),
    ],
)
def test_the_nearest_known_name_is_suggested(name: str, meant: str) -> None:
    assert mistyped([name], KNOWN) == [f"{name} (is {meant} meant?)"]


def test_without_known_names_nothing_is_suggested() -> None:
    assert mistyped(["any"], []) == ["any"]


PLAYBOOKS = ["kubevirt_nodes", "kubevirt_client", "kubevirt_become"]


@pytest.mark.parametrize(
    ("name", "is_listed"),
    [
        *((name, True) for name in ("kubevirt_node", "kubevirt_Nodes", "kubevirt_cleint", "kubevirt_become_")),
        *((name, False) for name in ("kubevirt_version", "kubevirt_node_selector", "kubevirt_mode")),
        *((name, False) for name in ("kubevirt_client_ip", "kubevirt_nodes_ip", "kubevirt_become_x")),
    ],
)
def test_with_a_similarity_only_names_close_to_a_known_one_are_listed(name: str, is_listed: bool) -> None:
    """Also under a shared prefix. A known name with a suffix is another name."""
    assert bool(mistyped([name], PLAYBOOKS, alike=0.9)) is is_listed
    assert len(mistyped([name], PLAYBOOKS)) == 1


ALIKE = 0.92
"""The value of the roles: one wrong letter from 13 letters on, which all names have, two from 25 on."""
OPTIONS = [
    "control_plane_use_emulation",
    "control_plane_replicas",
    "control_plane_namespace",
    "control_plane_remove_with_workloads",
    "control_plane_wait",
    "control_plane_wait_timeout",
    "control_plane_node_affinity",
    "launcher_image_names",
    "node_kvm_required",
    "virtual_machine_namespace",
    *PLAYBOOKS,
    "provision_name",
    "provision_namespace",
    "provision_image",
    "provision_definition",
]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("CONTROL_PLANE_USE_EMULATION", "control_plane_use_emulation"),
        ("controlPlaneReplicas", "control_plane_replicas"),
        ("contorl_plane_replicas", "control_plane_replicas"),
        ("controlplane_namespace", "control_plane_namespace"),
        ("contol_plane_remove_with_workload", "control_plane_remove_with_workloads"),
        ("control-plane-use-emulation", "control_plane_use_emulation"),
        ("nodekvm_required", "node_kvm_required"),
        ("kube_virt_nodes", "kubevirt_nodes"),
        ("kubevirt_cleint", "kubevirt_client"),
        ("Provision_Image", "provision_image"),
    ],
)
def test_a_wrong_case_underscore_or_letter_is_detected_at_any_position(name: str, meant: str) -> None:
    assert mistyped([name], OPTIONS, alike=ALIKE) == [f"{name} (is {meant} meant?)"]


@pytest.mark.parametrize(
    "name",
    [
        *("my_control_plane_namespace", "my-control-plane-namespace", "OLD_CONTROL_PLANE_NAMESPACE"),
        *("__control_plane_node_affinity", "_kubevirt_nodes", "ansible_connection", "inventory_hostname"),
        *("control_plane2_replicas", "kubevirt_nodes2", "kubevirt_client_ip", "kubevirt_mode", "controlplane_endpoint"),
        *("controller_replicas", "launcher_names", "node_required", "virtual_machines", "machine_namespace"),
        *("provider_name", "provisioner_name", "provisioned_image", "provisioning_name"),
    ],
)
def test_plausible_names_of_others_are_accepted(name: str) -> None:
    assert mistyped([name], OPTIONS, alike=ALIKE) == []


def test_no_known_name_is_taken_for_another() -> None:
    for name in OPTIONS:
        assert mistyped([name], [item for item in OPTIONS if item != name], alike=ALIKE) == []


@pytest.mark.parametrize("known", OPTIONS)
def test_one_wrong_letter_is_detected_at_any_position(known: str) -> None:
    places = range(len(known))
    missing = {known[:at] + known[at + 1 :] for at in places}
    doubled = {known[: at + 1] + known[at:] for at in places}
    another = {known[:at] + "q" + known[at + 1 :] for at in places}
    exchanged = {known[:at] + known[at : at + 2][::-1] + known[at + 2 :] for at in places}
    wrong = sorted((missing | doubled | another | exchanged) - {known})

    assert mistyped(wrong, [known], alike=ALIKE) == [f"{name} (is {known} meant?)" for name in wrong]


@pytest.mark.parametrize("known", [item for item in OPTIONS if len(item) > 30])
def test_two_swapped_letters_are_detected_in_a_long_name(known: str) -> None:
    wrong = [known[1::-1] + known[2:at] + known[at : at + 2][::-1] + known[at + 2 :] for at in range(2, len(known) - 1)]

    for name in set(wrong) - {known}:
        assert mistyped([name], [known], alike=ALIKE) == [f"{name} (is {known} meant?)"]

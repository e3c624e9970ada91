# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names that nobody knows, each with the nearest that somebody does."""

from __future__ import annotations

import pytest
from ansible_collections.virtops.kubevirt.plugins.filter.mistyped import FilterModule

mistyped = FilterModule().filters()["mistyped"]
KNOWN = ["control_plane_replicas", "control_plane_state", "node_kvm_required"]


def test_known_names_are_not_mistyped() -> None:
    assert mistyped(KNOWN[:2], KNOWN) == []


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("control_plane_replica", "control_plane_replicas"),
        ("control_plane_sate", "control_plane_state"),
        ("node_kvm_require", "node_kvm_required"),
    ],
)
def test_the_nearest_known_name_is_said(name: str, meant: str) -> None:
    assert mistyped([name], KNOWN) == [f"{name} (is {meant} meant?)"]


def test_where_nothing_is_known_nothing_is_near() -> None:
    assert mistyped(["any"], []) == ["any"]


PLAYBOOKS = ["kubevirt_nodes", "kubevirt_client", "kubevirt_become"]


@pytest.mark.parametrize("name", ["kubevirt_node", "kubevirt_Nodes", "kubevirt_cleint", "kubevirt_become_"])
def test_a_name_that_is_nearly_a_known_one_is_mistyped_also_where_others_have_such_names(name: str) -> None:
    assert len(mistyped([name], PLAYBOOKS, alike=0.9)) == 1


@pytest.mark.parametrize("name", ["kubevirt_version", "kubevirt_namespace", "kubevirt_node_selector", "kubevirt_mode"])
def test_what_is_not_near_is_somebody_elses_there(name: str) -> None:
    assert mistyped([name], PLAYBOOKS, alike=0.9) == []


@pytest.mark.parametrize("name", ["kubevirt_client_ip", "kubevirt_nodes_ip", "kubevirt_become_x"])
def test_what_goes_on_from_a_known_name_is_somebody_elses_there_too(name: str) -> None:
    assert mistyped([name], PLAYBOOKS, alike=0.9) == []
    assert len(mistyped([name], PLAYBOOKS)) == 1

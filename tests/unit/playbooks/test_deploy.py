# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts that the playbooks pass from the nodes to the control plane."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.tests.unit.tasks import PLAYBOOKS, Host, load

DIGESTS = {"control-plane": "sha256:" + "1" * 64, "virt-launcher": "sha256:" + "2" * 64}


def value(hosts: dict[str, dict[str, Any]], template: str) -> Any:
    """Return a template's value after roles have set facts on hosts."""
    names = [name for name in hosts if name != "localhost"]
    return Host(PLAYBOOKS, {"groups": {"all": names}, "hostvars": {"localhost": {}} | hosts}).value(template)


@pytest.mark.parametrize(
    ("digests", "expected"),
    [
        pytest.param({"other": {}, "n1": DIGESTS, "n2": DIGESTS}, DIGESTS, id="two nodes beside another host"),
        pytest.param({"other": {}, "localhost": DIGESTS}, DIGESTS, id="localhost, which no inventory has"),
        pytest.param({"other": {}, "n1": {}}, {}, id="no image was brought to a node"),
    ],
)
@pytest.mark.parametrize("playbook", ["deploy", "upgrade"])
def test_the_revisions_are_the_digests_on_the_nodes(
    playbook: str, digests: dict[str, dict[str, str]], expected: dict[str, str]
) -> None:
    """A new digest rolls out an image that was rebuilt under its tag."""
    *_nodes, client = load(PLAYBOOKS / f"{playbook}.yml")
    if playbook == "deploy":
        (role,) = client["roles"]
    else:
        (role,) = client["tasks"][1]["block"]
    facts = {name: {"launcher_image_digests": item} if item else {} for name, item in digests.items()}

    assert value(facts, role["vars"]["control_plane_image_revisions"]) == expected


@pytest.mark.parametrize(
    ("usable", "is_emulated"),
    [
        pytest.param({"n1": True, "n2": False}, False, id="a node has KVM"),
        pytest.param({"n1": False, "n2": False}, True, id="no node has KVM"),
        pytest.param({"localhost": True}, False, id="localhost has KVM"),
    ],
)
def test_the_quickstart_emulates_without_kvm_on_any_node_whatever_the_group_is_called(
    usable: dict[str, bool], is_emulated: bool
) -> None:
    deploy, _provision = load(PLAYBOOKS / "quickstart.yml")
    facts = {name: {"node_kvm_usable": item} for name, item in usable.items()}

    assert value(facts, deploy["vars"]["control_plane_use_emulation"]) is is_emulated

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Status of the KubeVirt object."""

from __future__ import annotations

import msgspec

from controlplane.api.objects.decode import decode_kubevirt
from controlplane.api.version import KUBEVIRT_VERSION, VERSION
from controlplane.virt_controller.kubevirt.status import derive_status
from tests.controlplane.virt_controller.builders import NOW, STAMP


def test_a_leader_reports_the_control_plane_as_deployed_and_writes_it_once() -> None:
    kubevirt = decode_kubevirt({"metadata": {"name": "kubevirt", "generation": 4}})
    status = derive_status(kubevirt, version=VERSION, now=NOW)
    assert status is not None
    assert (status.phase, status.observed_generation, status.operator_version) == ("Deployed", 4, VERSION)
    assert {status.target_kube_virt_version, status.observed_kube_virt_version} == {KUBEVIRT_VERSION}
    assert {condition.type: condition.status for condition in status.conditions} == {
        "Available": "True",
        "Progressing": "False",
        "Degraded": "False",
        "Created": "True",
    }
    assert {condition.last_transition_time for condition in status.conditions} == {STAMP}
    again = msgspec.structs.replace(kubevirt, status=status)
    assert derive_status(again, version=VERSION, now=NOW + 1000) is None


def test_a_leader_of_another_version_updates_its_own() -> None:
    old = derive_status(decode_kubevirt({"metadata": {"name": "kubevirt"}}), version="1", now=NOW)
    assert old is not None
    kubevirt = msgspec.structs.replace(decode_kubevirt({"metadata": {"name": "kubevirt"}}), status=old)
    new = derive_status(kubevirt, version="2", now=NOW)
    assert new is not None
    assert new.operator_version == "2"


def test_a_deleting_object_gets_no_status() -> None:
    kubevirt = decode_kubevirt({"metadata": {"name": "kubevirt", "deletionTimestamp": STAMP}})
    assert derive_status(kubevirt, version=VERSION, now=NOW) is None

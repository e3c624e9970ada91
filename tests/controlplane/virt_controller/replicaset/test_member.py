# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fields of a VMI that a replica set reads."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from controlplane.virt_controller.replicaset.member import fingerprint, read_member
from tests.controlplane.virt_controller.builders import STAMP
from tests.controlplane.virt_controller.members.stand import READY
from tests.controlplane.virt_controller.replicaset.stage import POD_GOES

OWNER = {"uid": "o", "controller": True}
META = {"name": "a", "uid": "u", "labels": {"x": "1"}, "resourceVersion": "1"}
BASE: dict[str, Any] = {"metadata": META, "status": {"phase": "Running"}}


def changed(part: str, **fields: Any) -> dict[str, Any]:
    return {**BASE, part: {**BASE[part], **fields}}


@pytest.mark.parametrize(
    ("other", "differs"),
    [
        pytest.param(changed("metadata", resourceVersion="2"), False, id="version"),
        pytest.param(changed("metadata", annotations={"a": "b"}), False, id="annotations"),
        pytest.param(changed("status", interfaces=[{"ipAddress": "10.0.0.1"}]), False, id="interfaces"),
        pytest.param(changed("status", phase="Scheduled"), False, id="a phase among those that count"),
        pytest.param(changed("status", phase="Failed"), True, id="over"),
        pytest.param(changed("status", conditions=[READY]), True, id="ready"),
        pytest.param(changed("status", conditions=[POD_GOES]), True, id="losing its Pod"),
        pytest.param(changed("metadata", labels={"x": "2"}), True, id="labels"),
        pytest.param(changed("metadata", deletionTimestamp=STAMP), True, id="going"),
        pytest.param(changed("metadata", ownerReferences=[OWNER]), True, id="owners"),
        pytest.param(changed("metadata", uid="v"), True, id="another of the name"),
    ],
)
def test_the_fingerprint_has_only_the_fields_that_a_set_decides_by(other: dict[str, Any], differs: bool) -> None:
    before, after = (fingerprint(read_member(msgspec.json.encode(body))) for body in (BASE, other))
    assert (before != after) is differs


@pytest.mark.parametrize(("status", "is_losing"), [("False", True), ("True", False)])
def test_a_ready_vmi_is_not_losing_its_pod(status: str, is_losing: bool) -> None:
    vmi = changed("status", conditions=[{**POD_GOES, "status": status}])
    assert read_member(msgspec.json.encode(vmi)).is_losing_its_pod is is_losing

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules over two places of a machine; rules over one are in the corpus."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from controlplane.api.admission.kinds import vm
from controlplane.api.admission.validate.check import check_object
from controlplane.api.admission.validate.storage import SEED_BYTES
from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.vm import VirtualMachine
from tests.controlplane.api import golden

SPEC = "spec/template/spec"


@pytest.mark.parametrize(
    ("target", "is_refused"),
    [
        ({}, True),
        ({"disk": {}}, True),
        ({"disk": {"bus": "sata"}}, True),
        ({"disk": {"bus": "virtio"}}, False),
        ({"cdrom": {"bus": "sata"}}, False),
    ],
    ids=["no target", "no bus", "sata", "virtio", "cdrom"],
)
def test_a_read_only_claim_cannot_back_a_writable_disk(target: dict[str, Any], is_refused: bool) -> None:
    """A disk without a bus is on the default bus, which has no read-only disks."""
    result = golden.changed(golden.load("vm-full"), f"{SPEC}/domain/devices/disks/3", {"name": "data", **target})
    result = golden.changed(result, f"{SPEC}/volumes/3/persistentVolumeClaim/readOnly", True)

    problems = check_object(result, KubeVirtConfiguration(), kind=VirtualMachine, rules=vm.RULES)

    where = ["spec.template.spec.volumes[3].persistentVolumeClaim.readOnly"]
    assert [problem.path for problem in problems] == (where if is_refused else [])


@pytest.mark.parametrize(("size", "is_refused"), [(SEED_BYTES, False), (SEED_BYTES + 1, True)])
def test_inline_data_is_measured_decoded(size: int, is_refused: bool) -> None:
    """Base64 is a third longer than the data."""
    for seed in ({"userData": "x" * size}, {"userDataBase64": base64.b64encode(b"x" * size).decode()}):
        manifest = golden.changed(golden.load("vm-full"), f"{SPEC}/volumes/2/cloudInitNoCloud", seed)

        problems = check_object(manifest, KubeVirtConfiguration(), kind=VirtualMachine, rules=vm.RULES)

        where = [f"spec.template.spec.volumes[2].cloudInitNoCloud.{next(iter(seed))}"]
        assert [problem.path for problem in problems] == (where if is_refused else [])

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A name that no claim can have: the machine is accepted, as a Pod is, with a warning."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.api.admission.validate.claim_names import warn_of_claim_names
from controlplane.api.admission.verdict import Request, Settings, Verdict, review
from tests.controlplane.api import golden

IMPOSSIBLE = {"name": "data", "persistentVolumeClaim": {"claimName": "nonExistingPVC"}}
DATA_VOLUME = {"name": "data", "dataVolume": {"name": "Data_1"}}
WORDS = "no claim can be called"


def judge(manifest: Any, *path: str) -> Verdict:
    manifest = golden.changed(manifest, "/".join([*path, "volumes"]), [IMPOSSIBLE])
    manifest = golden.changed(manifest, "/".join([*path, "domain", "devices", "disks"]), [])
    return review(
        Request(operation="CREATE", kind=manifest["kind"], user="u", uid="1", obj=manifest, old=None), Settings()
    )


@pytest.mark.parametrize(
    ("example", "path"),
    [
        ("vmi-efi", ["spec"]),
        ("vm-cirros", ["spec", "template", "spec"]),
        ("vmi-replicaset-cirros", ["spec", "template", "spec"]),
        ("pool-cirros", ["spec", "virtualMachineTemplate", "spec", "template", "spec"]),
    ],
)
def test_each_kind_of_machine_gets_a_warning_that_names_the_field(example: str, path: list[str]) -> None:
    verdict = judge(golden.load(example), *path)

    (warning,) = [text for text in verdict.warnings if WORDS in text]
    assert verdict.problems == ()
    assert warning.startswith(f'{".".join(path)}.volumes[0].persistentVolumeClaim.claimName: {WORDS} "nonExistingPVC"')


@pytest.mark.parametrize(
    ("volumes", "fields"),
    [
        ([IMPOSSIBLE, DATA_VOLUME], ["volumes[0].persistentVolumeClaim.claimName", "volumes[1].dataVolume.name"]),
        ([{"persistentVolumeClaim": {"claimName": "disk.1"}}, {"dataVolume": {"name": ""}}, {"emptyDisk": {}}], []),
        ([None, 1, {"persistentVolumeClaim": None}, {"persistentVolumeClaim": {"claimName": 1}}], []),
        (None, []),
        ({}, []),
    ],
)
def test_only_names_that_no_claim_can_have_are_named(volumes: Any, fields: list[str]) -> None:
    assert [text.split(":")[0] for text in warn_of_claim_names({"volumes": volumes}, "")] == fields


def test_no_machine_has_no_claims() -> None:
    assert list(warn_of_claim_names(None, "spec")) == []

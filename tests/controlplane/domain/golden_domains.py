# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Golden domains: vmi.yaml has a VMI and the facts of its launch, domain.xml the domain that libvirt gets."""

from __future__ import annotations

import pathlib
from dataclasses import dataclass
from typing import Any

import yaml
from libvirt_domain.model.domain import Domain

from controlplane.api.launch_plan import ImageFile, LauncherReport
from controlplane.api.objects.decode import decode_vmi
from controlplane.domain.builders.domain import build_domain
from controlplane.domain.builders.facts import Facts, Link

HOME = pathlib.Path(__file__).parent.parent / "golden" / "domain"


@dataclass(frozen=True)
class Case:
    """One directory with vmi.yaml and domain.xml."""

    path: pathlib.Path

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def expected(self) -> pathlib.Path:
        return self.path / "domain.xml"

    def build(self) -> Domain:
        raw = yaml.safe_load((self.path / "vmi.yaml").read_text())
        facts = raw.pop("facts")
        return build_domain(decode_vmi(raw), read_facts(facts))


def read_facts(raw: dict[str, Any]) -> Facts:
    disks = tuple(ImageFile(**disk) for disk in raw.get("container_disks", ()))
    return Facts(
        pod_uid="0f2d5a80-3c0e-4d38-a6c0-9b3f1d4c1e77",
        epoch=3,
        is_kvm=raw["is_kvm"],
        report=LauncherReport(
            disks, direct_io=raw.get("direct_io", True), block_claims=tuple(raw.get("block_claims", ()))
        ),
        links={name: Link(**link) for name, link in raw.get("links", {}).items()},
    )


CASES = sorted((Case(path) for path in HOME.iterdir()), key=lambda case: case.name)

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""dataVolume: the disk is the claim of the same name. CDI has filled it before the machine starts."""

from __future__ import annotations

from controlplane.api import launch_plan
from controlplane.api.objects.claim import Claims
from controlplane.api.objects.vmi.volumes import DataVolumeSource, PersistentVolumeClaimSource
from controlplane.domain.guest_identity import GuestIdentity
from controlplane.domain.volumes import persistent_volume_claim
from controlplane.domain.volumes.kind import DiskImage, InPod, VolumeKind

_CLAIM = persistent_volume_claim.KIND


def _claim(source: DataVolumeSource) -> PersistentVolumeClaimSource:
    return PersistentVolumeClaimSource(claim_name=source.name)


def _in_pod(name: str, source: DataVolumeSource, claims: Claims) -> InPod:
    return _CLAIM.in_pod(name, _claim(source), claims)


def _in_plan(
    name: str, source: DataVolumeSource, guest: GuestIdentity, claims: Claims
) -> launch_plan.DiskSource | None:
    return _CLAIM.in_plan(name, _claim(source), guest, claims)


def _in_domain(name: str, source: DataVolumeSource, report: launch_plan.LauncherReport) -> DiskImage:
    return _CLAIM.in_domain(name, _claim(source), report)


KIND = VolumeKind(member="data_volume", in_pod=_in_pod, in_plan=_in_plan, in_domain=_in_domain)

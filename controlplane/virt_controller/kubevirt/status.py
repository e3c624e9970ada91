# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Status of the KubeVirt object: a leader runs, so the control plane is deployed. Pure."""

from __future__ import annotations

import msgspec

from controlplane.api.objects import conditions
from controlplane.api.objects.kubevirt import KubeVirt, KubeVirtStatus
from controlplane.api.objects.meta import Condition
from controlplane.api.timestamps import format_timestamp
from controlplane.api.version import KUBEVIRT_VERSION

DEPLOYED = "Deployed"
STATES = (
    Condition(
        type="Created", status="True", reason="AllResourcesCreated", message="virt-controller runs, with what it needs."
    ),
    Condition(type="Available", status="True", reason="Leading", message="virt-controller leads and watches."),
    Condition(type="Progressing", status="False", reason="Deployed", message="Nothing is being rolled out."),
    Condition(type="Degraded", status="False", reason="Deployed", message="virt-controller knows of no fault."),
)


def derive_status(kubevirt: KubeVirt, *, version: str, now: float) -> KubeVirtStatus | None:
    """Return the status to write; None if the written status is right, or the object is being deleted."""
    if kubevirt.metadata.deletion_timestamp is not None:
        return None
    old = kubevirt.status
    listed = old.conditions
    for state in STATES:
        listed = conditions.put(listed, state, format_timestamp(now))
    new = msgspec.structs.replace(
        old,
        phase=DEPLOYED,
        conditions=listed,
        observed_generation=kubevirt.metadata.generation,
        operator_version=version,
        target_kube_virt_version=KUBEVIRT_VERSION,
        observed_kube_virt_version=KUBEVIRT_VERSION,
        default_architecture="amd64",
    )
    return None if new == old else new

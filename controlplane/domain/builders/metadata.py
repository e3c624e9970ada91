# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Our metadata in the domain: which VMI, Pod and launch it belongs to."""

from __future__ import annotations

from libvirt_domain.model.metadata import Identity, Metadata

from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.domain.builders.facts import Facts


def build_metadata(vmi: VirtualMachineInstance, facts: Facts) -> Metadata:
    """Return the VMI, the Pod and the number of the launch."""
    return Metadata(
        identity=Identity(
            namespace=vmi.metadata.namespace,
            name=vmi.metadata.name,
            uid=vmi.metadata.uid,
            pod_uid=facts.pod_uid,
            epoch=facts.epoch,
            grace_period_seconds=vmi.spec.grace_period_seconds,
        )
    )

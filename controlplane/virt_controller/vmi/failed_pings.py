# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An Event of an instance whose guest agent does not respond to a probe, as upstream's.

The kubelet says so of the Pod, whose name few users know. Anybody who may create Events in a namespace can write what
the kubelet writes; so only whether one is about such a probe of a running guest counts, and its text is not repeated.
"""

from __future__ import annotations

from collections.abc import Callable

from controlplane.api.objects.decode import DecodeError, decode, decode_vmi
from controlplane.api.objects.event import Event
from controlplane.api.objects.phase import RUNNING
from controlplane.api.objects.resources import Key
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.engine.ports import Cache
from controlplane.virt_controller.reporting.events import Events, Regarding

UNHEALTHY = "Unhealthy"
"""The kubelet's reason for a failed probe."""
PING_FAILED = "GuestAgentPingFailed"


def failed_ping_recorder(
    vmis: Cache, vmi_of_pod: Callable[[Key], Key | None], events: Events
) -> Callable[[bytes], None]:
    """Return a function that takes each Warning Event of a Pod."""

    def on_pod_warning(raw: bytes) -> None:
        try:
            event = decode(raw, Event)
            key = vmi_of_pod(Key(event.metadata.namespace, event.involved_object.name))
            found = None if key is None or event.reason != UNHEALTHY else vmis.get(key)
            vmi = None if found is None else decode_vmi(found)
        except DecodeError:
            return
        if vmi is not None and is_failed_ping(event, vmi):
            text = f"GuestAgentPing probe failed for VMI {vmi.metadata.name}"
            events.record(Regarding.of(vmi), "Warning", PING_FAILED, text)

    return on_pod_warning


def is_failed_ping(event: Event, vmi: VirtualMachineInstance) -> bool:
    """Tell whether the kubelet says that the agent of this running guest did not respond to a probe."""
    probes = {"Liveness": vmi.spec.liveness_probe, "Readiness": vmi.spec.readiness_probe}
    probe = probes.get(event.message.partition(" probe ")[0])
    return (
        event.reason == UNHEALTHY
        and vmi.status.phase == RUNNING
        and event.involved_object.uid in vmi.status.active_pods
        and probe is not None
        and probe.guest_agent_ping is not None
    )

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Events about guests that node recovery did not end in time. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from controlplane.api.objects.resources import VIRTUAL_MACHINE_INSTANCE
from controlplane.engine.ports import Json
from controlplane.virt_handler.node_recovery.orphans import DEADLINE_SECONDS, Orphan
from controlplane.virt_handler.vmi.events import VmiEvent
from controlplane.virt_handler.vmi.world import Launcher

_DEADLINE = f"{DEADLINE_SECONDS:.0f} s"

UNANSWERED = VmiEvent(
    "OwnerUnknown",
    f"the API server did not respond within {_DEADLINE} whether this guest still belongs to its node: "
    "it continues to run, other guests start on this node again, and virt-handler repeats the request",
    is_warning=True,
)
"""The API server has not responded, so the guest may be an orphan."""


def orphan_event(orphan: Orphan) -> VmiEvent:
    """Return the Event for an orphan that may still run."""
    message = (
        f"{orphan.because}, and nothing proves that its guest ended within {_DEADLINE}: "
        "other guests start on this node again"
    )
    return VmiEvent("OrphanLeft", message, is_warning=True)


def who(launcher: Launcher) -> Mapping[str, str]:
    """Return the log fields of a launcher."""
    owner = launcher.pod.owner
    return {
        "key": str(launcher.pod.vmi_key),
        "uid": "" if owner is None else owner.uid,
        "pod": launcher.pod.metadata.name,
    }


def about(launcher: Launcher) -> Json:
    """Return a reference to the launcher's VMI, whether or not the VMI still exists."""
    pod, kind = launcher.pod, VIRTUAL_MACHINE_INSTANCE
    key, uid = pod.vmi_key, "" if pod.owner is None else pod.owner.uid
    metadata = {"name": "" if key is None else key.name, "namespace": pod.metadata.namespace, "uid": uid}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}

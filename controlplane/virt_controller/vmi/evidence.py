# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Evidence whether the guest of a granted Pod is alive. Pure.

Absence is never proof of death. If the API server does not have a Pod, only the object was deleted: its node may be
unreachable and still run the guest. There are four proofs that the guest has ended:

    kubelet                the Pod ended, by its current or its last status
    virt-handler           the run's phase is final: virt-handler writes that when its node has no such launcher
    no Node object         confirmed by the API server, not only missing in a cache
    taint out-of-service   an administrator declares the node off; confirmed by the API server, too
"""

from __future__ import annotations

from dataclasses import dataclass

from controlplane.api.objects.node import OUT_OF_SERVICE
from controlplane.api.objects.phase import FAILED, SUCCEEDED
from controlplane.api.objects.pod import Failure, Pod, find_end_failure

LAUNCHER_LOST = "LauncherLost"
NODE_GONE = "NodeGone"
NODE_OUT_OF_SERVICE = "NodeOutOfService"


@dataclass(frozen=True, slots=True)
class NodeState:
    """The observed state of the node that a run was granted to."""

    name: str
    is_unseen: bool = False
    """The cache does not have the Node. That proves nothing."""
    is_gone: bool = False
    """The API server confirmed that there is no such Node."""
    looks_out_of_service: bool = False
    """The cache has the taint. That may be outdated: the taint is removed when the node is back."""
    is_out_of_service: bool = False
    """The API server confirmed the taint for the version in the cache."""
    takes_none: bool = False
    """The node takes no machines: its virt-handler is silent or shuts down. That proves nothing about guests."""

    @property
    def is_to_be_asked_for(self) -> bool:
        """Tell whether the cached state would be proof if the API server confirmed it."""
        return (self.is_unseen and not self.is_gone) or (self.looks_out_of_service and not self.is_out_of_service)


@dataclass(frozen=True, slots=True)
class Alive:
    """No evidence of an end."""


@dataclass(frozen=True, slots=True)
class Dead:
    """The guest ended, and how."""

    outcome: str
    trouble: Failure | None = None


@dataclass(frozen=True, slots=True)
class Unknown:
    """The Pod is gone, and nothing proves whether the guest has ended."""

    trouble: Failure


Evidence = Alive | Dead | Unknown


def weigh_evidence(pod: Pod | None, node: NodeState | None, *, uid: str, is_absence_confirmed: bool) -> Evidence:
    """Weigh the evidence about the granted Pod of this UID. The caller handles final phases.

    pod: its current state, or the last one before it was removed. is_absence_confirmed: the API server confirmed that
    it does not exist; until then a Pod that the cache lacks counts as alive.
    """
    if pod is not None and (pod.is_over or pod.compute.terminated is not None):
        return Dead(SUCCEEDED) if pod.has_succeeded else Dead(FAILED, find_end_failure(pod))
    if not is_absence_confirmed:
        return Alive()
    where = "its node" if node is None else f"node {node.name}"
    if node is not None and node.is_gone:
        return Dead(FAILED, Failure(NODE_GONE, f"the launcher Pod and {where} do not exist any more"))
    if node is not None and node.is_out_of_service:
        return Dead(FAILED, Failure(NODE_OUT_OF_SERVICE, f"the launcher Pod is gone, and {where} is out of service"))
    return Unknown(
        Failure(
            LAUNCHER_LOST,
            f"launcher Pod {uid} was removed from the API, but nothing proves that its guest ended on {where}: it does "
            "not start again without a proof. Bring the node back, so that its virt-handler finds no such launcher; or "
            f"delete its Node object; or add the taint {OUT_OF_SERVICE} (only when the node is powered off)",
        )
    )

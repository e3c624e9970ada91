# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Does the guest of a granted Pod live? What the evidence allows to say: pure.

Absence is never proof of death. That the API server does not know a Pod any more says that somebody deleted an object;
its node may be cut off and run the guest on. Proof is one of four:

    the kubelet's word          the Pod ended, as its status says now or said last
    the node's handler's word   the run's phase is final: virt-handler writes that when no such launcher is there
    the Node object is gone     by the API server's own word, not by a cache's silence
    taint out-of-service        a person says that the node is off; by the API server's own word, too
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
    """What is known of the node that a run was given to."""

    name: str
    is_unseen: bool = False
    """It is not in the cache, from which nothing follows."""
    is_gone: bool = False
    """The API server itself said that there is no such Node."""
    looks_out_of_service: bool = False
    """The cache says so. It may be a state of long ago: a taint that was taken off when the node came back."""
    is_out_of_service: bool = False
    """The API server itself said so, of the very state that the cache has."""
    takes_none: bool = False
    """It is said to take no machines: its virt-handler is silent, or leaves. No evidence of anything."""

    @property
    def is_to_be_asked_for(self) -> bool:
        """What the cache has would be proof, if it were the API server's word."""
        return (self.is_unseen and not self.is_gone) or (self.looks_out_of_service and not self.is_out_of_service)


@dataclass(frozen=True, slots=True)
class Alive:
    """Nothing says that it ended."""


@dataclass(frozen=True, slots=True)
class Dead:
    """It ended, and this is how it is known."""

    outcome: str
    trouble: Failure | None = None


@dataclass(frozen=True, slots=True)
class Unknown:
    """Its Pod is gone and nobody who could know has said what became of the guest."""

    trouble: Failure


Evidence = Alive | Dead | Unknown


def weigh_evidence(pod: Pod | None, node: NodeState | None, *, uid: str, is_absence_confirmed: bool) -> Evidence:
    """Weigh what is known about the granted Pod of this UID. Final phases are not asked about here.

    pod: as it is, or as it was when the API server removed it. is_absence_confirmed: the API server itself does not
    know it; before it was asked, a Pod that is not seen counts as alive.
    """
    if pod is not None and (pod.is_over or pod.compute.terminated is not None):
        return Dead(SUCCEEDED) if pod.has_succeeded else Dead(FAILED, find_end_failure(pod))
    if not is_absence_confirmed:
        return Alive()
    where = "its node" if node is None else f"node {node.name}"
    if node is not None and node.is_gone:
        return Dead(FAILED, Failure(NODE_GONE, f"the launcher Pod is gone, and so is {where}"))
    if node is not None and node.is_out_of_service:
        return Dead(FAILED, Failure(NODE_OUT_OF_SERVICE, f"the launcher Pod is gone, and {where} is out of service"))
    return Unknown(
        Failure(
            LAUNCHER_LOST,
            f"launcher Pod {uid} was removed from the API, but nobody has confirmed that its guest ended on {where}: "
            "it is not started again before that. Proof would be: virt-handler on that node finds no such launcher "
            f"(bring the node back), its Node object is deleted, or the node has the taint {OUT_OF_SERVICE} "
            "(only when it is powered off)",
        )
    )

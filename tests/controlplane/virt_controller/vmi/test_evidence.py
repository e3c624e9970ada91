# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Only proof makes a guest dead."""

from __future__ import annotations

import pytest

from controlplane.api.objects.pod import Pod
from controlplane.virt_controller.vmi.evidence import Alive, Dead, Evidence, NodeState, Unknown, weigh_evidence
from tests.controlplane.virt_controller.builders import UP, a_pod, a_running_pod

HERE = NodeState("node-1")
UNSEEN = NodeState("node-1", is_unseen=True)
GONE = NodeState("node-1", is_unseen=True, is_gone=True)
OFF = NodeState("node-1", is_out_of_service=True)
EXITED = {"terminated": {"exitCode": 0}}
CRASHED = {"terminated": {"exitCode": 1, "message": "QEMU was killed"}}

TABLE: dict[str, tuple[Pod | None, NodeState | None, bool, type[Evidence], str]] = {
    # Pod, node, absence confirmed, verdict, outcome or reason
    "the Pod runs": (a_running_pod(), HERE, False, Alive, ""),
    "the Pod is going": (a_running_pod(deleting=True), HERE, False, Alive, ""),
    "the Pod runs on a node that is gone": (a_running_pod(), GONE, False, Alive, ""),
    "the kubelet says it succeeded": (a_pod("Succeeded", compute=EXITED), HERE, False, Dead, "Succeeded"),
    "the kubelet says it failed": (a_pod("Failed", compute=CRASHED), HERE, False, Dead, "LauncherFailed"),
    "the launcher ended, a sidecar runs on": (a_pod("Running", compute=EXITED), HERE, False, Dead, "Succeeded"),
    "the launcher crashed, a sidecar runs on": (a_pod("Running", compute=CRASHED), HERE, False, Dead, "LauncherFailed"),
    "removed after the kubelet's word": (a_pod("Failed", compute=CRASHED), HERE, True, Dead, "LauncherFailed"),
    "removed while it ran, by force": (a_pod("Running", compute=UP), HERE, True, Unknown, "LauncherLost"),
    "unseen, not confirmed": (None, HERE, False, Alive, ""),
    "unseen, node unseen, not confirmed": (None, UNSEEN, False, Alive, ""),
    "gone from the API: no proof": (None, HERE, True, Unknown, "LauncherLost"),
    "gone, and the node is not in the cache: no proof": (None, UNSEEN, True, Unknown, "LauncherLost"),
    "gone, node unknown: no proof": (None, None, True, Unknown, "LauncherLost"),
    "gone, and so is its Node": (None, GONE, True, Dead, "NodeGone"),
    "gone, and its Node is out of service": (None, OFF, True, Dead, "NodeOutOfService"),
}


@pytest.mark.parametrize(("pod", "node", "absent", "kind", "word"), TABLE.values(), ids=TABLE.keys())
def test_which_verdict_the_evidence_supports(
    pod: Pod | None, node: NodeState | None, absent: bool, kind: type[Evidence], word: str
) -> None:
    verdict = weigh_evidence(pod, node, uid="u", is_absence_confirmed=absent)
    assert isinstance(verdict, kind)
    match verdict:
        case Dead(outcome=outcome, trouble=trouble):
            assert (trouble.reason if trouble else outcome) == word
        case Unknown(trouble=trouble):
            assert trouble.reason == word


def test_the_message_names_the_possible_proofs() -> None:
    verdict = weigh_evidence(None, HERE, uid="4711", is_absence_confirmed=True)
    assert isinstance(verdict, Unknown)
    for word in ("4711", "node node-1", "virt-handler", "delete its Node object", "out-of-service"):
        assert word in verdict.trouble.message


@pytest.mark.parametrize(
    ("node", "is_asked_for"),
    [
        (HERE, False),
        (UNSEEN, True),
        (GONE, False),
        (NodeState("node-1", looks_out_of_service=True), True),
        (NodeState("node-1", looks_out_of_service=True, is_out_of_service=True), False),
    ],
    ids=["there", "not seen", "gone", "looks off", "off"],
)
def test_which_node_states_are_confirmed_by_the_api_server(node: NodeState, is_asked_for: bool) -> None:
    assert node.is_to_be_asked_for is is_asked_for

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When Services send to a Pod that a guest has moved to: once it has the run, by one write of one condition."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_RECONCILER = "controlplane/virt_controller/vmi/reconciler.py"
_BY_TABLE = ("tests/controlplane/virt_controller/vmi/test_decide.py",)
_BY_STORY = ("tests/controlplane/virt_controller/vmi/test_reconciler.py",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file="controlplane/virt_controller/vmi/launcher_pod.py",
        line='"readinessGates": [] if target is None else [{"conditionType": UNPAUSED}],',
        without='"readinessGates": [],',
        because="Services would send to a guest that is not there yet, for as long as it takes to move.",
        tests=("tests/controlplane/virt_controller/migration/test_target_pod.py",),
    ),
    Guard(
        file="controlplane/virt_controller/vmi/launcher_pod.py",
        line="[] if target is None else [{",
        without="[{",
        because="Each start of a machine would cost one more write, and Services would learn of it later.",
        tests=("tests/controlplane/virt_controller/vmi/test_launcher_pod.py",),
    ),
    Guard(
        file="controlplane/virt_controller/vmi/decide.py",
        line="if is_paused or pod.is_deleting or pod.is_over or not pod.is_kept_from_services:",
        without="if is_paused or pod.is_over or not pod.is_kept_from_services:",
        because="Services would be told of a Pod that is about to end.",
        tests=_BY_TABLE,
    ),
    Guard(
        file="controlplane/virt_controller/vmi/decide.py",
        line="if is_paused or pod.is_deleting",
        without="if pod.is_deleting",
        because="Services would send to a guest that stands still where it has moved to.",
        tests=_BY_TABLE,
    ),
    Guard(
        file="controlplane/api/objects/pod.py",
        line="return condition_types.UNPAUSED in self.waits_for and not is_said",
        without="return not is_said",
        because="Each Pod would be written, that waits for nothing.",
        tests=_BY_TABLE,
    ),
    Guard(
        file=_RECONCILER,
        line='[*others, {**said, "lastTransitionTime": now}]',
        without='[{**said, "lastTransitionTime": now}]',
        because="What kubelets say of a Pod would be taken off.",
        tests=_BY_STORY,
    ),
    Guard(
        file=_RECONCILER,
        line='subresource="status", uid=action.uid, resource_version=version)',
        without='subresource="status", resource_version=version)',
        because="Services would be told of another Pod that has the name by now.",
        tests=_BY_STORY,
    ),
    Guard(
        file=_RECONCILER,
        line='subresource="status", uid=action.uid, resource_version=version)',
        without='subresource="status", uid=action.uid)',
        because="What a kubelet has said meanwhile would be taken back.",
        tests=_BY_STORY,
    ),
    Guard(
        file="controlplane/api/objects/readiness.py",
        line="if is_ours and theirs.reason ==",
        without="if False and theirs.reason ==",
        because="A machine would be said not to be ready each time that it has moved.",
        tests=("tests/controlplane/virt_controller/vmi/test_status.py",),
    ),
    Guard(
        file="controlplane/api/objects/readiness.py",
        line="if is_ours and theirs.reason ==",
        without="if theirs.reason ==",
        because="A machine would be said to be ready whose Pod waits for a load balancer.",
        tests=("tests/controlplane/virt_controller/vmi/test_status.py",),
    ),
    Guard(
        file=_RECONCILER,
        line='if one["type"] != condition_types.UNPAUSED]',
        without="]",
        because="That it is not there would be found first, and Services never told that it is.",
        tests=_BY_STORY,
    ),
    Guard(
        file="controlplane/virt_controller/vmi/decide.py",
        line="or pod.is_over or not pod.is_kept_from_services",
        without="or not pod.is_kept_from_services",
        because="The end of a run would be told late, for the sake of a Pod that nobody sends to.",
        tests=_BY_TABLE,
    ),
    Guard(
        file="controlplane/virt_controller/vmi/decide.py",
        line='return (Each((LetServe(pod.metadata.name, pod.uid, because="its guest has moved there"),)),)',
        without='return (LetServe(pod.metadata.name, pod.uid, because="its guest has moved there"),)',
        because="Where it is refused, the node's label would stay the old one.",
        tests=_BY_STORY,
    ),
)

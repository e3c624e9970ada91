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
        line="if is_paused or pod.is_deleting or not pod.is_kept_from_services:",
        without="if is_paused or not pod.is_kept_from_services:",
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
        line="return condition_types.UNPAUSED in waits_for and not conditions.is_true(",
        without="return not conditions.is_true(",
        because="Each Pod would be written, that waits for nothing.",
        tests=_BY_TABLE,
    ),
    Guard(
        file=_RECONCILER,
        line='{"status": {"conditions": [*others, said]}}',
        without='{"status": {"conditions": [said]}}',
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
        line="if theirs.reason == condition_types.READINESS_GATES_NOT_READY:",
        without="if False:",
        because="A machine would be said not to be ready each time that it has moved.",
        tests=("tests/controlplane/virt_controller/vmi/test_status.py",),
    ),
)

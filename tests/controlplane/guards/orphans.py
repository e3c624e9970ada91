# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is left of migrations that are gone: ended by proof alone, and never the Pod where a guest may be."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_DECIDE = "controlplane/virt_controller/orphan/decide.py"
_WORLD = "controlplane/virt_controller/orphan/world.py"
_RECONCILER = "controlplane/virt_controller/orphan/reconciler.py"
_BY_TABLE = ("tests/controlplane/virt_controller/orphan/test_decide.py",)
_BY_STORY = ("tests/controlplane/virt_controller/orphan/test_reconciler.py",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file=_RECONCILER,
        line=" if version <= self._migrations.position)",
        without=")",
        because="A migration that a cache has not read of yet would be ended.",
        tests=_BY_STORY,
    ),
    Guard(
        file=_RECONCILER,
        line="uid: min(version, before.get(uid, version))",
        without="uid: version",
        because="Who keeps writing what tells of a migration would hide for ever that it is gone.",
        tests=_BY_STORY,
    ),
    Guard(
        file=_RECONCILER,
        line="            if any(before < version <= position for version in unseen.values()):",
        without="            if False:",
        because="What is left would stay, where a cache has read too late that its migration is gone.",
        tests=_BY_STORY,
    ),
    Guard(
        file=_RECONCILER,
        line="        if after is None:",
        without="        if False:",
        because="What is known of machines that are gone would be kept for ever.",
        tests=_BY_STORY,
    ),
    Guard(
        file=_RECONCILER,
        line="        if may_have_guest(vmi, action.uid):",
        without="        if False:",
        because="A Pod would be deleted that was handed over, by another leader, since the cache was read.",
        tests=_BY_STORY,
    ),
    Guard(
        file=_WORLD,
        line="            if not may_have_guest(self.vmi, one.uid)\n            and",
        without="            if",
        because="Whoever may label a Pod would have the machine in it end.",
        tests=_BY_TABLE,
    ),
    Guard(
        file=_WORLD,
        line="    return pod in vmi.status.active_pods or is_target",
        without="    return is_target",
        because="The Pod of the guest itself would be deleted.",
        tests=_BY_STORY,
    ),
    Guard(
        file=_WORLD,
        line=" for one in done)",
        without=" for one in self.migrations)",
        because="A Pod that was left would stay while a migration is kept that had failed to leave it.",
        tests=_BY_TABLE,
    ),
    Guard(
        file=_WORLD,
        line="moving.target_pod_uid == pod and not moving.failed",
        without="False",
        because="A guest that has left its source, and is not given away yet, would be lost.",
        tests=_BY_TABLE,
    ),
    Guard(
        file=_DECIDE,
        line="    if state.start_timestamp is None:",
        without="    if True:",
        because="Who sends a guest would be told that it stays, while the target takes it.",
        tests=_BY_TABLE,
    ),
    Guard(
        file=_DECIDE,
        line="    return None if state.abort_requested else RequestAbort(because=GONE)",
        without="    return RequestAbort(because=GONE)",
        because="The same would be written for as long as the source takes to end it.",
        tests=_BY_TABLE,
    ),
    Guard(
        file=_WORLD,
        line=" and job not in {one.metadata.uid for one in done}",
        without="",
        because="A Pod that a guest has left again would stay, where what told of that is gone.",
        tests=_BY_TABLE,
    ),
    Guard(
        file=_WORLD,
        line=" or any(one is not None and one.source_pod_uid == pod.uid for one in told)",
        without="",
        because="The Pod that a guest has left would be deleted twice, by its migration and here.",
        tests=_BY_TABLE,
    ),
    Guard(
        file=_DECIDE,
        line="not is_to_be_given(world.vmi) and world.is_labelled",
        without="world.is_labelled",
        because="The label's writer would have the commit refused, and the guest stand still for longer.",
        tests=_BY_TABLE,
    ),
    Guard(
        file="controlplane/virt_controller/migration_wakes.py",
        line="        is_gone = after is None or _meta(before).uid != _meta(after).uid",
        without="        is_gone = after is None",
        because="What one leaves would stay that was replaced under its name while a watch was broken.",
        tests=("tests/controlplane/virt_controller/test_migration_wakes.py",),
    ),
    Guard(
        file="controlplane/virt_controller/migration_wakes.py",
        line="        if is_new or has_moved or was.is_moving or now.is_moving:",
        without="        if after is not None:",
        because="Every change of every machine would be looked at for what migrations may have left.",
        tests=("tests/controlplane/virt_controller/test_process_wakes.py",),
    ),
)

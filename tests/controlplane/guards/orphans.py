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
        line=" if uid in before or version <= read)",
        without=")",
        because="A migration that a cache has not read of yet would be ended.",
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
        file=_RECONCILER,
        line="if uid in before or version <= read",
        without="if version <= read",
        because="The last of what is left would wait for a minute: for what tells of the migration was just written.",
        tests=_BY_STORY,
    ),
    Guard(
        file=_RECONCILER,
        line="            self._wake(key)",
        without="            pass",
        because="What is left would stay, where a cache has read too late that its migration is gone.",
        tests=_BY_STORY,
    ),
    Guard(
        file=_WORLD,
        line="            and not may_have_guest(self.vmi, one.uid)\n",
        without="",
        because="Whoever may label a Pod would have the machine in it end.",
        tests=_BY_TABLE,
    ),
    Guard(
        file=_WORLD,
        line="    return pod in vmi.status.active_pods or is_target",
        without="    return is_target",
        because="The Pod of the guest itself would be deleted.",
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
        line="        if state.start_timestamp is None:",
        without="        if True:",
        because="Who sends a guest would be told that it stays, while the target takes it.",
        tests=_BY_TABLE,
    ),
    Guard(
        file=_DECIDE,
        line="        return Plan() if state.abort_requested else Plan((RequestAbort(because=GONE),))",
        without="        return Plan((RequestAbort(because=GONE),))",
        because="The same would be written for as long as the source takes to end it.",
        tests=_BY_TABLE,
    ),
    Guard(
        file="controlplane/virt_controller/migration_wakes.py",
        line="        if was.is_moving or now.is_moving or has_moved:",
        without="        if after is not None:",
        because="Every change of every machine would be looked at for what migrations may have left.",
        tests=("tests/controlplane/virt_controller/test_process_wakes.py",),
    ),
)

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node's virt-handler: what it knows, remembers and writes."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_STATUS = "controlplane/virt_handler/vmi/status.py"
_RECONCILER = "controlplane/virt_handler/vmi/reconciler.py"
_BY_STATUS = ("tests/controlplane/virt_handler/vmi/test_status.py",)
_BY_RECONCILER = ("tests/controlplane/virt_handler/vmi/test_reconciler.py",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file=_STATUS,
        line="readiness(new.phase, pod, is_paused=is_paused)",
        without="readiness(new.phase, pod)",
        because="A guest that begins paused would be declared ready for a moment, and Services of others heed that.",
        tests=_BY_STATUS,
    ),
    Guard(
        file=_STATUS,
        line="vmi.status.node_name != world.node or vmi",
        without="vmi",
        because="Only the handler of the VMI's node may write its status.",
        tests=_BY_STATUS,
    ),
    Guard(
        file=_STATUS,
        line=" or vmi.status.phase not in AFTER_HAND_OVER:",
        without=":",
        because="Before the hand-over, after the end and in unknown phases the status is not ours.",
        tests=_BY_STATUS,
    ),
    Guard(
        file=_STATUS,
        line="        case _:\n            return old",
        without='        case _:\n            phase, reason = "Failed", ""',
        because="What is not known is not written down as an end.",
        tests=_BY_STATUS,
    ),
    Guard(
        file=_STATUS,
        line="    is_early = world.look is None or world.look.count < 2",
        without="    is_early = world.look is None",
        because="A watch that is behind is no lost launcher.",
        tests=_BY_STATUS,
    ),
    Guard(
        file=_STATUS,
        line=(
            "    if isinstance(verdict, Alive) and world.launcher is not None and world.launcher.is_gone:\n"
            "        return None"
        ),
        without="    if False:\n        return None",
        because="Nothing better is said of a guest whose Pod was removed: it is about to be ended.",
        tests=_BY_STATUS,
    ),
    Guard(
        file=_STATUS,
        line="    if any(one.phase == phase for one in times):\n        return times\n",
        without="",
        because="A list that grows with every partition would meet its bound, and the status be refused for good.",
        tests=_BY_STATUS,
    ),
    Guard(
        file=_RECONCILER,
        line="        if not self._vmis.synced:\n",
        without="        if False:\n",
        because="While not all VMIs are known, a guest without one is no orphan.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_RECONCILER,
        line="vmi is None or vmi.status.node_name != self._node:",
        without="vmi is None:",
        because="A VMI that was handed to another node is not this one's.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_RECONCILER,
        line="        if memory.look is not None and memory.sought != sought_pod(world):",
        without="        if False:",
        because="A look for one Pod says nothing about another.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_RECONCILER,
        line="            resource_version=meta.resource_version,\n            uid=meta.uid,\n",
        without="            uid=meta.uid,\n",
        because="A status derived from an older state must not be written over a newer one.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_RECONCILER,
        line="            resource_version=meta.resource_version,\n            uid=meta.uid,\n",
        without="            resource_version=meta.resource_version,\n",
        because="A VMI that has taken the name meanwhile is not the one that was judged.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_RECONCILER,
        line="        try:\n            now = decode_vmi(await self._api.get(VIRTUAL_MACHINE_INSTANCE, key))",
        without="        try:\n            now = vmi",
        because="A start is granted by the API server itself; a cache may be minutes behind.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_RECONCILER,
        line='            raise NoContact(f"the start is not granted: {refusal}")',
        without="            pass",
        because="What the API server does not grant must not be started.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_RECONCILER,
        line='            refusal = "it is another VMI by now"',
        without="            pass",
        because="A guest is started for a VMI that was deleted, in the name of the one that came after it.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_RECONCILER,
        line='        if found is not None and found.get("metadata", {}).get("uid") == pod.uid:',
        without="        if False:",
        because="A Pod that only lost its label has not been removed: its guest must live on.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_RECONCILER,
        line='found.get("metadata", {}).get("uid") == action.vmi_uid:',
        without="False:",
        because="A VMI that exists, though not for this node, is no reason to end its guest.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_RECONCILER,
        line="        return Expected(vmi if vmi.metadata.uid == pod.owner.uid else None)",
        without="        return Expected(vmi)",
        because="A VMI that has taken the name meanwhile is not the one that a Pod is for.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_RECONCILER,
        line="        except CannotLook as error:\n            raise Unavailable(str(error)) from error",
        without="        except CannotLook:\n            return",
        because="A look that failed must come again.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file="controlplane/virt_handler/vmi/decide.py",
        line="    if vmi.metadata.deletion_timestamp is not None or launcher.is_gone or launcher.pod.is_over:",
        without="    if launcher.is_gone or launcher.pod.is_over:",
        because="No network is set up, and no start begun, for a machine that is deleted.",
        tests=("tests/controlplane/virt_handler/vmi/test_decide.py",),
    ),
    Guard(
        file="controlplane/virt_handler/vmi/verdict.py",
        line="    if world.lost_pod:\n        return _by_traces(world.lost_pod, world.look)",
        without="    if world.lost_pod and launcher is None:\n        return _by_traces(world.lost_pod, world.look)",
        because="Of a Pod that is not listed all has to be gone, not its QEMU alone.",
        tests=("tests/controlplane/virt_handler/vmi/test_verdict.py",),
    ),
    Guard(
        file="controlplane/virt_handler/vmi/memory.py",
        line="        self._orphaned_since.pop(key, None)\n        memory = ",
        without="        memory = ",
        because="A VMI that is not shown now and then must not sum up to the minute after which its guest is ended.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file="controlplane/virt_handler/vmi/verdict.py",
        line='(exited_well and pod.status.phase != "Failed")',
        without="exited_well",
        because="A launcher that was evicted has not succeeded, however quietly it went.",
        tests=("tests/controlplane/virt_handler/vmi/test_verdict.py",),
    ),
)

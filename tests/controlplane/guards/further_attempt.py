# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs that are tried again: not for ever, not where a guest may run, and with nobody to blame but who it was."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_FURTHER = "controlplane/virt_controller/vmi/further_attempt.py"
_TIMEOUT = "controlplane/virt_controller/vmi/run_timeout.py"
_OTHER = "controlplane/virt_controller/vmi/other_nodes.py"
_WORLD = "controlplane/virt_controller/vmi/world.py"
_STATUS = "controlplane/virt_controller/vmi/status.py"
_MEMORY = "controlplane/virt_controller/vmi/memory.py"
_BY_FURTHER = ("tests/controlplane/virt_controller/vmi/test_further_attempt.py",)
_BY_TIMEOUT = ("tests/controlplane/virt_controller/vmi/test_run_timeout.py",)
_BY_OTHER = ("tests/controlplane/virt_controller/vmi/test_other_nodes.py",)
_BY_RECONCILER = ("tests/controlplane/virt_controller/vmi/test_reconciler.py",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file="controlplane/virt_controller/vmi/reconciler.py",
        line="memory.placed_for(world.source, now)",
        without="memory.placed_for(world.source, self._clock.now())",
        because="A clock that is set ahead would give up every launcher that is coming up.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file="controlplane/virt_controller/vmi/further_attempt.py",
        line="bounded(setback.trouble.message)[:MESSAGE_LENGTH]",
        without="bounded(setback.trouble.message)",
        because="What ten nodes say at length would fill the status, which is written and watched as a whole.",
        tests=("tests/controlplane/virt_controller/vmi/test_further_attempt.py",),
    ),
    Guard(
        file=_FURTHER,
        line="    if len(world.vmi.status.failed_attempts) >= further_attempts(world):\n        return None\n",
        without="",
        because="A run that no node can begin would be tried for ever.",
        tests=_BY_FURTHER,
    ),
    Guard(
        file=_FURTHER,
        line="world.is_deleting or world.is_granted:",
        without="world.is_deleting:",
        because="A run whose guest may run would get another Pod.",
        tests=_BY_FURTHER,
    ),
    Guard(
        file=_FURTHER,
        line="pod.is_deleting or world.is_deleting or",
        without="world.is_deleting or",
        because="A Pod that somebody takes away would be answered with another.",
        tests=_BY_FURTHER,
    ),
    Guard(
        file=_FURTHER,
        line="or world.vmi.status.attempt == 0:",
        without=":",
        because="An attempt that was never recorded would be skipped.",
        tests=_BY_FURTHER,
    ),
    Guard(
        file=_FURTHER,
        line="        if ended.reason not in NOT_STARTED:\n            return None\n",
        without="",
        because="A disk that is none would be tried on node after node.",
        tests=_BY_FURTHER,
    ),
    Guard(
        file=_FURTHER,
        line="find_end_trouble(pod), reason == DEVICES_FAILED)",
        without="find_end_trouble(pod), True)",
        because="What a tenant can bring about by asking for much would count against nodes.",
        tests=_BY_FURTHER,
    ),
    Guard(
        file=_FURTHER,
        line='or "the container could not be started"), False)',
        without='or "the container could not be started"), True)',
        because="What a tenant's image can bring about would count against nodes.",
        tests=_BY_FURTHER,
    ),
    Guard(
        file=_FURTHER,
        line="    return not pod.spec.image_pull_secrets and ",
        without="    return ",
        because="A tenant's wrong credential keeps the launcher's image away, and would take nodes out.",
        tests=_BY_FURTHER,
    ),
    Guard(
        file=_FURTHER,
        line=" and pod.launcher_image not in disks",
        without=" and True",
        because="A tenant who asks for the launcher's image as a disk would say what its absence means.",
        tests=_BY_FURTHER,
    ),
    Guard(
        file=_FURTHER,
        line="not names_time(world) and all(",
        without="all(",
        because="A tenant who gives machines a second, and a node's kubelet something to do, would take nodes out.",
        tests=_BY_FURTHER,
    ),
    Guard(
        file=_FURTHER,
        line="set(one.volume) <= FROM_NODE",
        without='"secret" not in one.volume',
        because="A tenant who holds a disk elsewhere would take nodes out.",
        tests=_BY_FURTHER,
    ),
    Guard(
        file=_FURTHER,
        line="    return is_plain and not has_sandbox(pod)",
        without="    return not has_sandbox(pod)",
        because="A tenant who takes a Secret away and puts it back would take nodes out.",
        tests=_BY_FURTHER,
    ),
    Guard(
        file=_FURTHER,
        line="not set(pod.metadata.annotations) - OURS and ",
        without="",
        because="A tenant's annotation that no network accepts would take nodes out.",
        tests=_BY_FURTHER,
    ),
    Guard(
        file=_WORLD,
        line="and f'\"{pod.launcher_image}\"' in waiting.message",
        without="",
        because="A tenant's image that cannot be pulled would be looked for on node after node.",
        tests=_BY_FURTHER,
    ),
    Guard(
        file=_STATUS,
        line="        if new.failed_attempts != world.vmi.status.failed_attempts:\n            listed,",
        without="        if False:\n            listed,",
        because="The condition would name the node of the attempt before.",
        tests=_BY_FURTHER,
    ),
    Guard(
        file=_TIMEOUT,
        line="world.is_granted or not pod.spec.node_name",
        without="not pod.spec.node_name",
        because="A run whose guest may run would be ended by a clock.",
        tests=_BY_TIMEOUT,
    ),
    Guard(
        file=_TIMEOUT,
        line="not pod.spec.node_name or ",
        without="",
        because="A machine that waits for room would be ended.",
        tests=_BY_TIMEOUT,
    ),
    Guard(
        file=_TIMEOUT,
        line="pod.is_up or pod.is_deleting",
        without="pod.is_deleting",
        because="A launcher that is up would be out of time.",
        tests=_BY_TIMEOUT,
    ),
    Guard(
        file=_TIMEOUT,
        line="(asked is None and not _is_nodes_silence(world, pod))",
        without="False",
        because="A large disk that is being pulled would be given up, and pulled elsewhere from the beginning.",
        tests=_BY_TIMEOUT,
    ),
    Guard(
        file=_TIMEOUT,
        line="not has_sandbox(pod) and (",
        without="(",
        because="A large disk that is being pulled would be given up, and pulled elsewhere from the beginning.",
        tests=_BY_TIMEOUT,
    ),
    Guard(
        file=_TIMEOUT,
        line=" and (heard is None or heard.reason not in WAITS_FOR_VOLUMES)",
        without="",
        because="A machine that waits for its Secret would be ended.",
        tests=_BY_TIMEOUT,
    ),
    Guard(
        file=_MEMORY,
        line="        if self.placed[0] != pod.uid:\n",
        without="        if not self.placed[0]:\n",
        because="The next Pod would be out of time before it begins.",
        tests=_BY_TIMEOUT,
    ),
    Guard(
        file=_OTHER,
        line="times = min(whole // MOST_WEIGHT + 1, MOST_PREFERENCES)",
        without="times = 1",
        because="A machine that prefers a broken node would go there each time.",
        tests=_BY_OTHER,
    ),
    Guard(
        file=_OTHER,
        line="if _selects(one) else one",
        without="if True else one",
        because="A term that fits no node would fit all but the quarantined.",
        tests=_BY_OTHER,
    ),
    Guard(
        file=_WORLD,
        line="            or pod.spec.node_name\n",
        without="",
        because="A Pod that is about to come up would be given up because another node is free.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_FURTHER,
        line="is_plain and not has_sandbox(pod) and",
        without="is_plain and",
        because="A user's image that takes its time to be pulled would count for quarantine of the node.",
        tests=_BY_FURTHER,
    ),
    Guard(
        file="controlplane/virt_controller/vmi/attempt_events.py",
        line=" and owner.kind == VIRTUAL_MACHINE.kind:",
        without=":",
        because="A machine that has the name of a set would be told of a run that is not its own.",
        tests=_BY_RECONCILER,
    ),
)

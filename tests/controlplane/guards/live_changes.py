# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes of machines that run: what is written into an instance, and which guest gets CPUs."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_CHANGE = "controlplane/virt_controller/vm/live_change.py"
_BY_CHANGE = ("tests/controlplane/virt_controller/vm/test_live_change.py",)
_RECONCILER = "controlplane/virt_controller/vm/reconciler.py"
_BY_RECONCILER = ("tests/controlplane/virt_controller/vm/test_reconciler.py",)
_CPUS = "controlplane/virt_controller/cpu_change.py"
_PLUGGING = "controlplane/virt_handler/vmi/plugging.py"
_MEMORY = "controlplane/virt_controller/memory_change.py"
_SESSION = "controlplane/virt_handler/launchers/session.py"
_BY_MEMORY = ("tests/controlplane/virt_controller/vm/test_live_memory.py",)
_BY_PLUGGING_MEMORY = ("tests/controlplane/virt_handler/vmi/test_plugging_memory.py",)
_BY_SESSION = ("tests/controlplane/virt_handler/launchers/test_session_verbs.py",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file=_CHANGE,
        line="    if world.configuration.vm_rollout_strategy == STAGE or own.status.phase != RUNNING:\n",
        without="    if own.status.phase != RUNNING:\n",
        because="Who stages changes would have them in machines that run.",
        tests=_BY_CHANGE,
    ),
    Guard(
        file=_CHANGE,
        line="    if world.configuration.vm_rollout_strategy == STAGE or own.status.phase != RUNNING:\n",
        without="    if world.configuration.vm_rollout_strategy == STAGE:\n",
        because="A guest would start with CPUs for which its Pod was not made.",
        tests=_BY_CHANGE,
    ),
    Guard(
        file=_CHANGE,
        line="or (moving is not None and moving.is_under_way):",
        without="or False:",
        because="A migration's target was made of what the instance said when it began.",
        tests=_BY_CHANGE,
    ),
    Guard(
        file=_CHANGE,
        line="    cpus_wait = added and (cpu_change(own) is not None or refuse_sockets(world, own))\n",
        without="    cpus_wait = added and refuse_sockets(world, own)\n",
        because="As upstream: sockets come one change after the other.",
        tests=_BY_CHANGE,
    ),
    Guard(
        file=_CHANGE,
        line="    cpus_wait = added and (cpu_change(own) is not None or refuse_sockets(world, own))\n",
        without="    cpus_wait = added and cpu_change(own) is not None\n",
        because="Sockets would be taken away, and added that the domain has no room for.",
        tests=_BY_CHANGE,
    ),
    Guard(
        file=_RECONCILER,
        line="        await self._insist_on_being_current(world.vm)\n",
        without="",
        because="A leader that lags would add sockets that nobody asks for any more, and none are taken away.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_RECONCILER,
        line="            action.patch,\n            resource_version=meta.resource_version,\n",
        without="            action.patch,\n",
        because="A migration that was handed over meanwhile goes to a Pod that was made of something else.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_CPUS,
        line="or (pod is not None and pod.vcpus >= cpu.vcpus):",
        without="or False:",
        because="A guest would move again and again, until virt-handler has come to give it its CPUs.",
        tests=("tests/controlplane/virt_controller/test_cpu_change.py",),
    ),
    Guard(
        file=_PLUGGING,
        line="not has < cpu.vcpus <= launcher.pod.vcpus:",
        without="not has < cpu.vcpus:",
        because="A guest would get CPUs that its Pod's limits do not know.",
        tests=("tests/controlplane/virt_handler/vmi/test_plugging.py",),
    ),
    Guard(
        file=_SESSION,
        line="        self._observation.note(())  # its description is another one\n",
        without="",
        because="A guest that has its CPUs would be given them again, for ever.",
        tests=_BY_SESSION,
    ),
    Guard(
        file=_SESSION,
        line="        if (seen := self._sighting.observed) is not None and seen.vcpus not in (0, count):\n",
        without="        if False:\n",
        because="A launcher that only says that it has plugged them would be asked again at once, for ever.",
        tests=_BY_SESSION,
    ),
    Guard(
        file=_PLUGGING,
        line="        memory = msgspec.structs.replace(told, guest_requested=None)\n",
        without="        memory = told\n",
        because="A guest without a device would be moved for memory that it cannot be asked to have.",
        tests=_BY_PLUGGING_MEMORY,
    ),
    Guard(
        file="controlplane/virt_controller/vm/live_memory.py",
        line="not most or (told is not None and told.guest_requested is None),",
        without="not most,",
        because="Nobody would say that such a guest gets its memory by a restart only.",
        tests=_BY_MEMORY,
    ),
    Guard(
        file=_CHANGE,
        line="    if cpus_wait or (grown and refuse_memory(own, wanted)):\n",
        without="    if cpus_wait:\n",
        because="A guest would be asked to have what its domain has no room for, or less than it began with.",
        tests=_BY_MEMORY,
    ),
    Guard(
        file=_MEMORY,
        line="or (pod is not None and pod.guest_bytes == guest_bytes(vmi.spec.domain)):",
        without="or False:",
        because="A guest would move again and again, until virt-handler has come to ask it to have its memory.",
        tests=("tests/controlplane/virt_controller/test_memory_change.py",),
    ),
    Guard(
        file=_PLUGGING,
        line="    return wanted if launcher.pod.guest_bytes == guest_bytes(domain) else None\n",
        without="    return wanted\n",
        because="A guest would take memory that its Pod's limits do not know, and be killed for it.",
        tests=_BY_PLUGGING_MEMORY,
    ),
    Guard(
        file=_PLUGGING,
        line="    return observed is not None and not observed.is_kvm and bool(",
        without="    return False and bool(",
        because="QEMU's emulation dies of a guest that writes to such memory while it is sent.",
        tests=_BY_PLUGGING_MEMORY,
    ),
    Guard(
        file="controlplane/virt_controller/vmi/launch.py",
        line="    return held if held > guest_bytes(vmi.spec.domain) else 0\n",
        without="    return 0\n",
        because="A guest that is to give memory back would be killed at its target before it can.",
        tests=("tests/controlplane/virt_controller/vmi/test_launch.py",),
    ),
    Guard(
        file=_SESSION,
        line="        if seen is not None and seen.requested_bytes != requested_bytes:\n",
        without="        if False:\n",
        because="A launcher that only says that it has asked its guest would be told again at once, for ever.",
        tests=_BY_SESSION,
    ),
    Guard(
        file="controlplane/virt_handler/launchers/session.py",
        line="held, writes, is_still=still, ",
        without="held, writes, ",
        because="QEMU's emulation would end while it sends memory that its guest writes to.",
        tests=("tests/controlplane/virt_handler/launchers/test_session_transfer.py",),
    ),
    Guard(
        file="controlplane/virt_handler/migration/sending.py",
        line="        is_still=order.is_still,\n",
        without="",
        because="QEMU's emulation would end while it sends memory that its guest writes to.",
        tests=("tests/controlplane/virt_handler/migration/test_sending.py",),
    ),
    Guard(
        file="controlplane/hypervisor/migration.py",
        line="    if not options.is_still:\n",
        without="    if True:\n",
        because="QEMU's emulation would end while it sends memory that its guest writes to.",
        tests=("tests/controlplane/hypervisor/test_migration.py",),
    ),
    Guard(
        file="controlplane/virt_handler/launchers/session.py",
        line="        self._observation.note(())  # its description is another one, even if no answer comes\n",
        without="",
        because="Where its answer was lost a guest that was asked to have memory would be sent while it runs.",
        tests=("tests/controlplane/virt_handler/launchers/test_session_verbs.py",),
    ),
    Guard(
        file="controlplane/virt_handler/launchers/session.py",
        line="        self._taking.begin()\n",
        without="",
        because="Nobody would see when the guest has its memory.",
        tests=("tests/controlplane/virt_handler/launchers/test_session_verbs.py",),
    ),
)

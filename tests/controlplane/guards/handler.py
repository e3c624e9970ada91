# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node's virt-handler: a guest is started only by grant, and ended or taken for ended only for a cause."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_DECIDE = "controlplane/virt_handler/vmi/decide.py"
_STATUS = "controlplane/virt_handler/vmi/status.py"
_BY_STATUS = ("tests/controlplane/virt_handler/vmi/test_status.py",)
_VERDICT = "controlplane/virt_handler/vmi/verdict.py"
_BY_DECIDE = ("tests/controlplane/virt_handler/vmi/test_decide.py",)
_BY_VERDICT = (
    "tests/controlplane/virt_handler/vmi/test_verdict.py",
    "tests/controlplane/virt_handler/vmi/test_status.py",
    "tests/controlplane/virt_handler/vmi/test_decide.py",
)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file="controlplane/virt_handler/vmi/decide.py",
        line="    if by_phase is None:\n        return Plan()\n    plan = by_phase(world, vmi)",
        without="    plan = (by_phase or _running)(world, vmi)",
        because="Of a phase that this version does not know nothing is done.",
        tests=("tests/controlplane/virt_handler/vmi/test_decide.py",),
    ),
    Guard(
        file="controlplane/virt_handler/vmi/decide.py",
        line="    is_granted = vmi.status.active_pods.get(launcher.pod.uid) == world.node",
        without="    is_granted = True",
        because="A Pod that looks like a launcher is dialled, and what it says is read.",
        tests=("tests/controlplane/virt_handler/vmi/test_decide.py",),
    ),
    Guard(
        file=_DECIDE,
        line="    busy = {one.pod.uid for one in world.launchers if one.doing}\n",
        without="    busy: set[str] = set()\n",
        because="While a start is carried out, nothing else may be asked of its launcher.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line=(
            "    if (pause := _pause(world, launcher)) > 0:\n"
            "        return Plan(look_again_in=pause)\n"
            "    if not sighting"
        ),
        without="    if not sighting",
        because="A start that fails must not be tried many times a second.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="        if plan.steps or not has_interface or not _lacks_network(world, launcher):\n",
        without="        if True:\n",
        because="A guest that runs would keep the rules of a virt-handler long gone, or none where they were lost.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file="controlplane/virt_handler/launchers/session.py",
        line='            if not self._sighting.has_run:\n                self._publish(failure=Failure("InvalidSpec"',
        without='            if True:\n                self._publish(failure=Failure("InvalidSpec"',
        because="What a newer version would not start would be said to have failed while its guest runs on.",
        tests=("tests/controlplane/virt_handler/launchers/test_session_verbs.py",),
    ),
    Guard(
        file=_DECIDE,
        line='(verdict.state.life, verdict.state.reason) != (Life.PAUSED, "ioerror"):',
        without="verdict.state.life is not Life.PAUSED:",
        because="A guest that a user paused must not be let go on by us.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_STATUS,
        line=" or (isinstance(verdict, Alive) and vmi.status.phase == SCHEDULED and is_busy):\n",
        without=":\n",
        because="A VMI is Running only after its start has ended, and with its addresses.",
        tests=_BY_STATUS,
    ),
    Guard(
        file=_STATUS,
        line="    return told if is_on_trial and verdict.state.life is not Life.PAUSED else None",
        without="    return None",
        because="A guest that meets its I/O error again must not cost two writes at every attempt.",
        tests=_BY_STATUS,
    ),
    Guard(
        file=_DECIDE,
        line="owner is None or owner.uid != vmi.metadata.uid,",
        without="False,",
        because="A Pod that another VMI controls must not start this one's guest.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line='        "the VMI is being deleted": vmi.metadata.deletion_timestamp is not None,\n',
        without="",
        because="A VMI that is being deleted must not be started.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="{vmi.status.phase or 'unset'}\": vmi.status.phase != SCHEDULED,",
        without="{vmi.status.phase or 'unset'}\": vmi.status.phase not in (SCHEDULED, RUNNING, UNKNOWN),",
        because="A guest that has run is never started a second time in the same run.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line='        "it was handed to another node": vmi.status.node_name != node,\n',
        without="",
        because="A VMI that was handed to another node must not be started here.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="set(vmi.status.active_pods) != {launcher.pod.uid},",
        without="launcher.pod.uid not in vmi.status.active_pods,",
        because="While two Pods are named, neither may start the guest.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="set(vmi.status.active_pods) != {launcher.pod.uid},",
        without="False,",
        because="Only the Pod that was granted the start may start the guest.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line=('        "the Pod is going": launcher.is_gone or launcher.pod.is_deleting or launcher.pod.is_over,\n'),
        without="",
        because="A Pod that is going must not begin a guest.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="    if not is_startable(sighting):\n        return _wait",
        without="    if False:\n        return _wait",
        because="A domain that ran, or of which nothing is known, must not be started.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="    if refuse_start(vmi, world.node, launcher) is not None:\n        return Plan()\n",
        without="",
        because="A start that was not granted must not be tried.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line=(
            "    if launcher is None or not isinstance(weigh(world), Alive):\n"
            "        return Plan()\n"
            '    return _end_now(world, launcher, "its run is over")'
        ),
        without="    return Plan()",
        because="A guest that runs on after the end of its run would never be ended.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="    if world.deleting_since is not None:\n        return _end(world, vmi, launcher)",
        without=(
            "    if world.deleting_since is not None or vmi.metadata.finalizers == ():\n"
            "        return _end(world, vmi, launcher)"
        ),
        because="A guest is ended only for a cause that is in an object.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="    left = vmi.spec.grace_period_seconds - (world.monotonic - since)\n    if left <= 0:",
        without=(
            "    left = vmi.spec.grace_period_seconds - (world.monotonic - since)\n"
            "    if left <= vmi.spec.grace_period_seconds:"
        ),
        because="A guest has its grace period to shut down.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="    if next_in > 0:\n        return Plan(look_again_in=min(next_in, left))\n",
        without="",
        because="The power button must not be pressed many times a second.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="    if wait > 0:\n        return Plan(look_again_in=wait)\n",
        without="",
        because="A guest paused by an I/O error must not be resumed many times a second.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line=(
            "    left = ORPHAN_SECONDS - (world.monotonic - world.orphaned_since)\n"
            "    if left > 0:\n"
            "        return Plan(look_again_in=left)\n"
        ),
        without="",
        because="A VMI that this node's watch does not show yet is no reason to end its guest.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="    if len(staying) != 1:\n        return Plan()",
        without="    if not staying:\n        return Plan()",
        because="Of two Pods nobody knows which will get the guest: no network is made for either.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="    if not isinstance(verdict, Unknown):\n        return Plan()\n    if missed",
        without="    if missed",
        because="What is known needs no look at the node.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="    if pause > 0:\n        return Plan(look_again_in=pause)\n",
        without="",
        because="A look at the whole node's processes must not be taken many times a second.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_VERDICT,
        line="    state = sighting.state if sighting.is_connected else None",
        without="    state = sighting.state",
        because="What was seen before contact was lost says nothing about now.",
        tests=_BY_VERDICT,
    ),
    Guard(
        file=_VERDICT,
        line="    if state is not None and not foreign:",
        without="    if state is not None:",
        because="A domain that carries another identity says nothing about this VMI.",
        tests=_BY_VERDICT,
    ),
    Guard(
        file=_VERDICT,
        line='            return Unknown("QEMU is being started") if state.is_starting else Alive(state)',
        without="            return Alive(state)",
        because="A QEMU that is being started may yet refuse: its VMI is not running.",
        tests=_BY_VERDICT,
    ),
    Guard(
        file=_VERDICT,
        line="    if pod.is_over or pod.compute.terminated is not None:\n        return _by_pod(pod)\n",
        without="",
        because="The kubelet's word that the launcher ended is proof.",
        tests=_BY_VERDICT,
    ),
    Guard(
        file=_VERDICT,
        line="    is_lost = sighting.is_connected and _is_lost(sighting.state)",
        without="    is_lost = _is_lost(sighting.state)",
        because="A launcher that cannot be reached is not one whose guest is gone.",
        tests=_BY_VERDICT,
    ),
    Guard(
        file=_VERDICT,
        line='    if not (vmi.has_run or sighting.has_run or _was_up(sighting.state)):\n        return ""\n',
        without="",
        because="A domain that is not started yet is no guest that ended.",
        tests=_BY_VERDICT,
    ),
    Guard(
        file=_VERDICT,
        line="    if not (vmi.has_run or sighting.has_run or _was_up(sighting.state)):",
        without="    if not (vmi.has_run or _was_up(sighting.state)):",
        because="A guest that ran before that could be written is started again in its Pod.",
        tests=("tests/controlplane/virt_handler/vmi/test_decide.py",),
    ),
    Guard(
        file=_VERDICT,
        line="    if not (vmi.has_run or sighting.has_run or _was_up(sighting.state)):",
        without="    if not (vmi.has_run or sighting.has_run):",
        because="A machine whose libvirt died with its QEMU in the middle of a start would be Scheduled for ever.",
        tests=_BY_VERDICT,
    ),
    Guard(
        file=_VERDICT,
        line="    return _by_emulators(world.look) if sought_pod(world) else verdict",
        without="    return verdict",
        because="A guest whose QEMU vanished without a word would count as running for ever.",
        tests=_BY_VERDICT,
    ),
    Guard(
        file=_VERDICT,
        line="    if look.traces.emulators:\n",
        without="    if False:\n",
        because="A guest that libvirt forgot may live.",
        tests=_BY_VERDICT,
    ),
    Guard(
        file=_VERDICT,
        line="    if not sighting.is_connected or sighting.failure is not None:\n        return False",
        without="    if not sighting.is_connected:\n        return False",
        because="A start that can never succeed must not be tried again for ever.",
        tests=_BY_VERDICT,
    ),
    Guard(
        file=_VERDICT,
        line="    if not sighting.is_connected or sighting.failure is not None:\n        return False",
        without="    if sighting.failure is not None:\n        return False",
        because="Without contact nobody knows whether a domain ran.",
        tests=_BY_VERDICT,
    ),
    Guard(
        file=_VERDICT,
        line="(state.life is Life.SHUT_OFF and state.reason in STARTABLE)",
        without="state.life is Life.SHUT_OFF",
        because="A guest that shut down must not be started again in the same run.",
        tests=_BY_VERDICT,
    ),
    Guard(
        file=_VERDICT,
        line="    if not isinstance(verdict, Unknown):\n        return verdict\n    if world.lost_pod:",
        without="    if world.lost_pod:",
        because="A guest that is seen alive is not judged by the traces of its Pod.",
        tests=_BY_VERDICT,
    ),
    Guard(
        file=_VERDICT,
        line="(identity.uid, identity.pod_uid) != (vmi_uid, pod_uid):",
        without="identity.uid != vmi_uid:",
        because="A domain of another Pod of the VMI is another run.",
        tests=_BY_VERDICT,
    ),
    Guard(
        file=_VERDICT,
        line="(identity.uid, identity.pod_uid) != (vmi_uid, pod_uid):",
        without="identity.pod_uid != pod_uid:",
        because="A domain of another VMI is another guest.",
        tests=_BY_VERDICT,
    ),
    Guard(
        file=_STATUS,
        line="    if world.node_trouble is not None:\n        return",
        without="    if False:\n        return",
        because="A machine whose node has no virt-node must say what it waits for: nobody reads a node's log.",
        tests=_BY_STATUS,
    ),
    Guard(
        file=_STATUS,
        line="    return away if away is not None and world.monotonic - away.since >= PATIENCE_SECONDS else None",
        without="    return away",
        because="At each roll-out of virt-node nothing is written about every launcher that is not listed.",
        tests=_BY_STATUS,
    ),
    Guard(
        file=_STATUS,
        line=" and told.reason not in (VIRT_NODE_NOT_READY, condition_types.VIRT_HANDLER_SILENT)",
        without="",
        because="That a launcher cannot be looked for must not be said for ever, when it is looked for again.",
        tests=_BY_STATUS,
    ),
    Guard(
        file=_STATUS,
        line="if is_node_missed or isinstance(verdict, Dead) else ()",
        without="if is_node_missed else ()",
        because="A final status is not written again: a run that is over would be said to wait for ever.",
        tests=_BY_STATUS,
    ),
    Guard(
        file="controlplane/virt_handler/launchers/session.py",
        line=">= _START_ATTEMPTS and waited >=",
        without=">= _START_ATTEMPTS or waited >=",
        because="A lack of memory that passes in a moment would be the end of a machine.",
        tests=("tests/controlplane/virt_handler/launchers/test_session_start.py",),
    ),
    Guard(
        file="controlplane/virt_handler/launchers/freeze.py",
        line="        if told.is_frozen is False or not told.is_connected:",
        without="        if told.is_frozen is False:",
        because="A guest that is found frozen would be thawed at the end of another freeze.",
        tests=("tests/controlplane/virt_handler/launchers/test_freeze.py",),
    ),
)

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Power verbs and paused starts: whose guest obeys, and whose pause it is."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_PERSON = "controlplane/virt_handler/vmi/person.py"
_DECIDE = "controlplane/virt_handler/vmi/decide.py"
_SESSION = "controlplane/virt_handler/launchers/session.py"
_VERBS = "controlplane/virt_handler/launchers/verbs.py"
_POWER = "controlplane/virt_handler/power.py"
_REQUESTS = "controlplane/virt_controller/vm/requests.py"
_VM_DECIDE = "controlplane/virt_controller/vm/decide.py"
_QUEUE = "controlplane/api/objects/requests.py"
_LIFECYCLE = "controlplane/virt_api/lifecycle.py"
_FREEZE = "controlplane/virt_handler/launchers/freeze.py"
_PACE = "controlplane/virt_handler/launchers/pace.py"
_BY_FREEZE = ("tests/controlplane/virt_handler/launchers/test_freeze.py",)
_BY_PERSON = ("tests/controlplane/virt_handler/vmi/test_person.py",)
_BY_OBEY = ("tests/controlplane/virt_handler/launchers/test_session_obey.py",)
_BY_VERBS = ("tests/controlplane/virt_handler/launchers/test_verbs.py",)
_BY_POWER = ("tests/controlplane/virt_handler/test_power.py",)
_BY_REQUESTS = ("tests/controlplane/virt_controller/vm/test_requests.py",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file="controlplane/virt_handler/vmi/decide.py",
        line="if is_held(world.vmi, launcher.sighting):",
        without="if is_held(None, launcher.sighting):",
        because="What a person has paused would go on after virt-handler began anew.",
        tests=("tests/controlplane/virt_handler/vmi/test_decide.py",),
    ),
    Guard(
        file="controlplane/virt_handler/launchers/soft_reboot.py",
        line="        await agent.order(PING)\n",
        without="        agent._present()\n",
        because="An agent that hangs would be taken for one that reboots its guest.",
        tests=("tests/controlplane/virt_handler/launchers/test_soft_reboot.py",),
    ),
    Guard(
        file=_FREEZE,
        line="            self._thaw_at(self._clock.monotonic() + thaw_after if thaw_after else math.inf)\n",
        without="            self._thaw_at(math.inf)\n",
        because="A guest whose backup died would hang for ever.",
        tests=_BY_FREEZE,
    ),
    Guard(
        file=_FREEZE,
        line="if told.is_frozen is False or not told.is_connected:",
        without="if not told.is_frozen:",
        because="A freeze that was not answered would have no end.",
        tests=_BY_FREEZE,
    ),
    Guard(
        file=_FREEZE,
        line="            if await self._is_frozen():\n                return\n",
        without="",
        because="A second freeze would put the end of the first one off, or take it away.",
        tests=_BY_FREEZE,
    ),
    Guard(
        file=_FREEZE,
        line="        if await self._is_frozen():\n            await self._order(THAW)",
        without="        if True:\n            await self._order(THAW)",
        because="What a guest does after a thaw would be done again.",
        tests=_BY_FREEZE,
    ),
    Guard(
        file=_FREEZE,
        line="        elif told.is_frozen and self._until is None:\n",
        without="        elif False:\n",
        because="What was frozen before virt-handler was started anew would stay frozen.",
        tests=_BY_FREEZE,
    ),
    Guard(
        file=_PACE,
        line="    return max(FIRST_SECONDS, took / _SHARE)",
        without="    return FIRST_SECONDS",
        because="Agents that do not thaw would take a node's questions from its other guests.",
        tests=_BY_FREEZE,
    ),
    Guard(
        file="controlplane/api/admission/validate/probes.py",
        line="    if liveness is not None and spec.is_start_paused:",
        without="    if False:",
        because="A guest is ended for not living before anybody could unpause it.",
        tests=("tests/controlplane/api/admission/validate/test_probes.py",),
    ),
    Guard(
        file="controlplane/virt_api/power.py",
        line='    if verb == "pause" and liveness is not None and liveness.handlers != ("guestAgentPing",):',
        without="    if False:",
        because="A person pauses a guest, and the kubelet ends it for that.",
        tests=("tests/controlplane/virt_api/test_guests.py",),
    ),
    Guard(
        file=_LIFECYCLE,
        line="    if options.paused and vm.spec.template.spec.liveness_probe is not None:",
        without="    if False:",
        because="A start is taken that nobody can carry out.",
        tests=("tests/controlplane/virt_api/test_lifecycle.py",),
    ),
    Guard(
        file=_DECIDE,
        line="    if is_held(world.vmi, launcher.sighting):\n        return Plan()\n",
        without="",
        because="A guest that a person has paused goes on when an I/O error is over.",
        tests=("tests/controlplane/virt_handler/vmi/test_decide.py",),
    ),
    Guard(
        file=_PERSON,
        line="    return vmi is not None and is_pause_told(vmi)\n",
        without="    return False\n",
        because="A restart of virt-handler forgets that a person has paused a guest.",
        tests=_BY_PERSON,
    ),
    Guard(
        file=_PERSON,
        line="        return held\n    return False",
        without="        return held\n    return held",
        because="A pause that is over makes the next I/O error's one a person's, and the guest stands for ever.",
        tests=_BY_PERSON,
    ),
    Guard(
        file=_SESSION,
        line="                self._publish(is_held=hold_after(True, self._sighting.state))\n",
        without="",
        because="A person's pause of a guest that an I/O error has paused is answered and forgotten.",
        tests=_BY_OBEY,
    ),
    Guard(
        file=_SESSION,
        line=" or not _is_up(state) or not is_own(self.launcher(), self._vmi_uid):",
        without=" or not _is_up(state):",
        because="A domain that carries another's identity obeys for it.",
        tests=_BY_OBEY,
    ),
    Guard(
        file=_SESSION,
        line=" or not _is_up(state) or not is_own",
        without=" or not is_own",
        because="A QEMU that is being started is reset, and one that is off is said to have been.",
        tests=_BY_OBEY,
    ),
    Guard(
        file=_SESSION,
        line="is_paused=vmi.spec.is_start_paused",
        without="is_paused=False",
        because="A guest that was to wait runs.",
        tests=("tests/controlplane/virt_handler/launchers/test_session_start.py",),
    ),
    Guard(
        file=_VERBS,
        line="        await asyncio.shield(ended)\n",
        without="        await ended\n",
        because="A person who does not wait cancels what others learn of the verb.",
        tests=_BY_VERBS,
    ),
    Guard(
        file=_VERBS,
        line="        if self._doing:\n            raise Busy(",
        without="        if False:\n            raise Busy(",
        because="Two verbs at a time meet in one launcher.",
        tests=_BY_VERBS,
        may_hang=True,
    ),
    Guard(
        file=_POWER,
        line="        if guest.node != self._node or session is None or not is_own(session.launcher(), guest.vmi_uid):",
        without="        if session is None:",
        because="What is asked of one machine is done to another's guest.",
        tests=_BY_POWER,
    ),
    Guard(
        file=_QUEUE,
        line="    return asks_paused(request) and request.data.get(GENERATION) == str(generation)",
        without="    return asks_paused(request)",
        because="A machine that was halted is started by a request from before.",
        tests=_BY_REQUESTS,
    ),
    Guard(
        file=_REQUESTS,
        line="(strategy == ALWAYS and _is_owed_paused(world, own))",
        without="False",
        because="After a paused start that failed the next attempt runs.",
        tests=_BY_REQUESTS,
    ),
    Guard(
        file=_REQUESTS,
        line="    return own.spec.is_start_paused and not own.has_run and not is_own_wish",
        without="    return own.spec.is_start_paused and not is_own_wish",
        because="A machine whose paused guest was let go on and crashed never runs by itself again.",
        tests=_BY_REQUESTS,
    ),
    Guard(
        file=_VM_DECIDE,
        line="CreateVmi(because, is_paused=is_next_paused(world))",
        without="CreateVmi(because)",
        because="A run that was asked for paused begins to run.",
        tests=_BY_REQUESTS,
    ),
    Guard(
        file=_LIFECYCLE,
        line="    if machine.strategy == HALTED and not options.paused:",
        without="    if machine.strategy == HALTED:",
        because="The switch starts the machine before anybody knows that it is to be paused.",
        tests=("tests/controlplane/virt_api/test_lifecycle.py",),
    ),
)

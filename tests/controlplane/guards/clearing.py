# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node that comes back: what is no longer its own ends first, and only by the API server's word."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_CLEARING = "controlplane/virt_handler/clearing.py"
_ENDING = "controlplane/virt_handler/ending.py"
_BY_CLEARING = ("tests/controlplane/virt_handler/test_clearing.py",)
_BY_UNANSWERED = ("tests/controlplane/virt_handler/test_clearing_unanswered.py",)
_BY_AGAIN = ("tests/controlplane/virt_handler/test_clearing_again.py",)
_ORPHANS = "controlplane/virt_handler/vmi/orphans.py"
_BY_ORPHANS = ("tests/controlplane/virt_handler/vmi/test_orphans.py",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file="controlplane/kube/lease.py",
        line="was_silent = self._clock.monotonic() - ",
        without="was_silent = sent - ",
        because="Whoever looked before a slow answer came has found a silence: what the node runs is to be asked for.",
        tests=("tests/controlplane/kube/test_lease.py",),
    ),
    Guard(
        file=_CLEARING,
        line="self._asked_at, self._silences, self._missing = asking.at,",
        without="self._asked_at, self._silences, self._missing = self._clock.monotonic(),",
        because="A late answer would count as news, though what it tells is from before the node fell silent.",
        tests=_BY_AGAIN,
    ),
    Guard(
        file=_CLEARING,
        line="if asking.failures >= AT_ONCE and not asking.has_answers:",
        without="if asking.failures >= AT_ONCE:",
        because="Eight VMIs that cannot be answered for would keep an orphan from being asked about.",
        tests=_BY_AGAIN,
    ),
    Guard(
        file=_CLEARING,
        line="told, self._told = self._told, {(said.reason, uid) for uid, said in left}",
        without="told, self._told = self._told, self._told | {(said.reason, uid) for uid, said in left}",
        because="What was answered meanwhile would not hold the node at its next return.",
        tests=_BY_AGAIN,
    ),
    Guard(
        file=_CLEARING,
        line='        """Ask and look again now."""\n        self._rested_at, self._pause = -inf, ASK_SECONDS\n',
        without='        """Ask and look again now."""\n',
        because="A node that is heard again would wait for as long as it last waited in vain.",
        tests=_BY_AGAIN,
    ),
    Guard(
        file=_ENDING,
        line="        if turn.dial and (session",
        without="        if traces is not None and turn.dial and (session",
        because="Where virt-node is away no orphan out of contact would end.",
        tests=_BY_AGAIN,
    ),
    Guard(
        file=_ENDING,
        line="            self._since.pop(uid, None)\n",
        without="",
        because="An orphan that is up again would not hold the node.",
        tests=_BY_AGAIN,
    ),
    Guard(
        file="controlplane/virt_handler/clearing.py",
        line="self._asked_at, self._silences, self._missing = asking.at, asking.silences, asking.missing",
        without="self._asked_at, self._silences, self._missing = asking.at, self._heard.silences, asking.missing",
        because="An answer from before the node was suspended would count for its return.",
        tests=("tests/controlplane/virt_handler/test_clearing_unanswered.py",),
    ),
    Guard(
        file="controlplane/virt_handler/clearing.py",
        line="for uid, since in self._missing.items() if uid in known}\n        return Asking",
        without="for uid, since in self._missing.items()}\n        return Asking",
        because="A launcher that goes while nobody answers for it would end the process.",
        tests=("tests/controlplane/virt_handler/test_clearing_unanswered.py",),
    ),
    Guard(
        file="controlplane/virt_handler/clearing.py",
        line="                self._wake.clear()\n",
        without="",
        because="Once woken it would go round and round, and take a whole processor.",
        tests=("tests/controlplane/virt_handler/test_clearing_unanswered.py",),
    ),
    Guard(
        file="controlplane/virt_handler/clearing.py",
        line="await telling.go_on(group, LOOK_SECONDS, is_due=not self.held)",
        without="await (self._say() if not self.held else asyncio.sleep(0))",
        because="Events that nobody takes would hold up the end of what is another node's by now.",
        tests=("tests/controlplane/virt_handler/test_clearing_unanswered.py",),
    ),
    Guard(
        file="controlplane/kube/lease.py",
        line="(self.last_beat or self._begun)",
        without="(self.last_beat or self._clock.monotonic())",
        because="A process that began while the server took no renewals would not ask again whose its guests are.",
        tests=("tests/controlplane/kube/test_lease.py",),
    ),
    Guard(
        file=_ORPHANS,
        line=' or seen.launcher.doing != "")',
        without=")",
        because="A start that was under way when the node was cut off comes to its end beside the next instance.",
        tests=_BY_ORPHANS,
    ),
    Guard(
        file="controlplane/virt_handler/vmi/decide.py",
        line="    if world.held:  # its end wakes all, as that of a verb does\n",
        without="    if not vmi:\n",
        because="A node starts a machine beside a guest that is no longer its own.",
        tests=(
            "tests/controlplane/virt_handler/vmi/test_decide.py",
            "tests/controlplane/virt_handler/test_story_return.py",
        ),
    ),
    Guard(
        file="controlplane/virt_handler/vmi/reconciler.py",
        line='        if held := self._held():\n            raise NoContact(f"the start has to wait: {held}")\n',
        without="",
        because="A start that was under way when the node was cut off goes on before anything is cleared.",
        tests=("tests/controlplane/virt_handler/vmi/test_reconciler.py",),
    ),
    Guard(
        file="controlplane/virt_handler/listed.py",
        line="return held_back(patch) if held else patch",
        without="return patch",
        because="Machines are sent to a node that is not clear of what is no longer its own.",
        tests=("tests/controlplane/virt_handler/test_listed.py",),
    ),
    Guard(
        file=_CLEARING,
        line="        if self._asked_at is None or self._heard.silences != self._silences:\n            return True\n",
        without="        if self._asked_at is None:\n            return True\n",
        because="A silence that nobody saw (a host that was suspended) is forgotten by the renewal that ends it.",
        tests=_BY_CLEARING,
    ),
    Guard(
        file=_CLEARING,
        line="        return self._silent_in() <= 0\n",
        without="        return False\n",
        because="After a silence a watch is quicker than the Lease, and a machine starts before anything is cleared.",
        tests=_BY_CLEARING,
    ),
    Guard(
        file=_CLEARING,
        line="            self._failures[uid] = self._failures.get(uid, 0) + 1\n            return\n",
        without='            because = "nobody answers"\n',
        because="A guest is ended because the API server could not be reached.",
        tests=_BY_CLEARING,
    ),
    Guard(
        file=_CLEARING,
        line="or any(map(self._ending.is_in_time, self._missing.values())):",
        without="or self._missing:",
        because="One VMI that the API server cannot answer for keeps its node from taking machines for ever.",
        tests=_BY_UNANSWERED,
    ),
    Guard(
        file=_CLEARING,
        line="or any(map(self._ending.is_in_time, self._missing.values())):",
        without="or False:",
        because="A node takes machines before it was answered whose its guests are, though it could be in a moment.",
        tests=_BY_UNANSWERED,
    ),
    Guard(
        file=_CLEARING,
        line="        if self._is_heard or not asking.missing:\n            self._reach(asking)\n",
        without="        self._reach(asking)\n",
        because="A node that reaches nobody is clear after a while, and starts machines beside others' guests.",
        tests=_BY_UNANSWERED,
    ),
    Guard(
        file=_CLEARING,
        line="self._missing if silences == self._silences else self._given_up()",
        without="self._missing",
        because="The time that a host was suspended counts as time in which the API server did not answer.",
        tests=_BY_UNANSWERED,
    ),
    Guard(
        file=_CLEARING,
        line="        if not asking.is_reached:\n            self._missing = self._given_up()\n",
        without="",
        because="The time in which nobody could be reached counts as time in which the API server did not answer.",
        tests=_BY_UNANSWERED,
    ),
    Guard(
        file=_CLEARING,
        line="since = self._missing if silences == self._silences else self._given_up()",
        without="since = self._missing if silences == self._silences else {}",
        because="A VMI that the API server cannot answer for has its node held anew by every silence.",
        tests=_BY_UNANSWERED,
    ),
    Guard(
        file=_CLEARING,
        line="        if asking.failures >= AT_ONCE and not asking.has_answers:\n            return\n",
        without="",
        because="An API server that is on its knees is asked about every launcher of every node again and again.",
        tests=_BY_UNANSWERED,
    ),
    Guard(
        file=_CLEARING,
        line='            log.warning("a VMI cannot be read", extra={**who(launcher), "error": str(error)})\n'
        '            return ""\n',
        without="            return why_orphan(launcher, None)\n",
        because="A guest is ended because its VMI cannot be read by this version.",
        tests=_BY_CLEARING,
    ),
    Guard(
        file=_ENDING,
        line="sum(self.is_in_time(self._since[uid]) for uid in self._left)",
        without="len(self._left)",
        because="A guest that hangs keeps its node from starting machines for ever.",
        tests=_BY_CLEARING,
    ),
    Guard(
        file=_ENDING,
        line="self._since.setdefault(uid, since if self.is_in_time(since) else self._clock.monotonic())",
        without="self._since[uid] = since if self.is_in_time(since) else self._clock.monotonic()",
        because="A guest that hangs has its node held anew by every silence.",
        tests=_BY_CLEARING,
    ),
    Guard(
        file=_ENDING,
        line="since if self.is_in_time(since) else self._clock.monotonic()",
        without="since",
        because="Machines start beside a guest that is known to be another's, since that was answered late.",
        tests=_BY_UNANSWERED,
    ),
    Guard(
        file=_ENDING,
        line="        self._end((orphan,))\n",
        without="",
        because="A guest that is another's by now runs on until the last of its node's launchers was asked about.",
        tests=_BY_UNANSWERED,
    ),
    Guard(
        file=_ORPHANS,
        line="    if vmi is None or vmi.metadata.uid != owner.uid:\n",
        without="    if vmi is None:\n",
        because="The guest of a former VMI runs on under the name of its successor.",
        tests=_BY_ORPHANS,
    ),
    Guard(
        file=_ORPHANS,
        line="if granted and uid not in _may_run(vmi) else",
        without="if uid not in _may_run(vmi) else",
        because="A launcher that waits for its hand-over is taken for another's.",
        tests=_BY_ORPHANS,
    ),
    Guard(
        file=_ORPHANS,
        line="seen.traces is not None and seen.traces.emulators == 0 and not may_be_up",
        without="not may_be_up",
        because="What cannot be reached is taken for down, and a machine starts beside it.",
        tests=_BY_ORPHANS,
    ),
    Guard(
        file=_ORPHANS,
        line="seen.traces is not None and seen.traces.emulators == 0 and not may_be_up",
        without="seen.traces is not None and seen.traces.emulators == 0",
        because="A QEMU that hides its name is taken for down while libvirt says that it runs.",
        tests=_BY_ORPHANS,
    ),
    Guard(
        file="controlplane/kube/lease.py",
        line="            self.silences += 1\n",
        without="",
        because="A node does not notice that it was away for longer than its Lease.",
        tests=("tests/controlplane/kube/test_lease.py",),
    ),
)

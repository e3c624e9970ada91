# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One leader at a time: whose time ends before another's can begin."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_LEADER = "controlplane/kube/leader.py"
_BY_LEADER = ("tests/controlplane/kube/test_leader.py",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file=_LEADER,
        line="held.holder != self._identity:\n            self._until",
        without='held.holder not in ("", self._identity):\n            self._until',
        because="A Lease that was given to nobody may be taken at once: its former holder leads no more.",
        tests=_BY_LEADER,
    ),
    Guard(
        file=_LEADER,
        line="        if not self.is_leader:\n            self._until = None\n            return",
        without="        if self._until is None:\n            return",
        because="Who is past its time writes nothing more, not even that it ends.",
        tests=_BY_LEADER,
    ),
    Guard(
        file=_LEADER,
        line="        self._until = sent + self._terms.renew_deadline_seconds",
        without="        self._until = self._clock.monotonic() + self._terms.renew_deadline_seconds",
        because=(
            "A holder counts from when it sent a renewal: one whose answer was slow would still lead when another may."
        ),
        tests=_BY_LEADER,
    ),
    Guard(
        file=_LEADER,
        line="    if not held.holder or left <= 0:",
        without="    if not held.holder or left <= held.duration_seconds / 2:",
        because="A Lease is taken only after it stood still for its whole time.",
        tests=_BY_LEADER,
    ),
    Guard(
        file=_LEADER,
        line="min(held.duration_seconds, LONGEST_SECONDS)",
        without="held.duration_seconds",
        because="Who could write the Lease once would keep every leader away for 68 years.",
        tests=_BY_LEADER,
    ),
    Guard(
        file=_LEADER,
        line="        if version != self._seen[0]:\n            self._seen",
        without='        if self._seen[0] == "":\n            self._seen',
        because="A Lease that moves is held, however long ago it was first seen.",
        tests=_BY_LEADER,
    ),
    Guard(
        file=_LEADER,
        line="return self._until is not None and self._clock.monotonic() < self._until",
        without="return self._until is not None",
        because="Leadership ends by time, also when nobody has said so.",
        tests=_BY_LEADER,
    ),
    Guard(
        file=_LEADER,
        line="        if not self.is_leader:\n            raise NotLeader",
        without="        if False:\n            raise NotLeader",
        because="Who leads no more must not write.",
        tests=_BY_LEADER,
    ),
    Guard(
        file=_LEADER,
        line="                await self._patch(spec, self._seen[0], sent)",
        without="                await self._patch(spec, None, sent)",
        because="A Lease that somebody else took is not ours to renew.",
        tests=_BY_LEADER,
    ),
    Guard(
        file=_LEADER,
        line="            await self._patch(spec, choice.version, sent)",
        without="            await self._patch(spec, None, sent)",
        because="Two candidates must not both take the same Lease.",
        tests=_BY_LEADER,
    ),
    Guard(
        file=_LEADER,
        line="        if held is not None and held.holder != self._identity:",
        without="        if False:",
        because="Once the Lease is another's, its version must not be learnt and renewed over.",
        tests=_BY_LEADER,
    ),
    Guard(
        file=_LEADER,
        line="                if not self.is_leader:\n                    raise LeadershipLostError",
        without="                if False:\n                    raise LeadershipLostError",
        because="A holder that cannot renew must end its work.",
        tests=_BY_LEADER,
        may_hang=True,
    ),
    Guard(
        file=_LEADER,
        line='            raise LeadershipLostError(f"{self._key} was deleted") from None',
        without="            return False",
        because="A Lease that was deleted may be another's the next moment.",
        tests=_BY_LEADER,
    ),
    Guard(
        file=_LEADER,
        line="            for task in (leading, holding):\n                task.cancel()\n",
        without="            holding.cancel()\n",
        because="What was led must be cancelled before another begins.",
        tests=_BY_LEADER,
        may_hang=True,
    ),
    Guard(
        file=_LEADER,
        line="        if not self.is_leader:\n            self._until = None\n            return\n",
        without="",
        because="Who leads no more has nothing to give back.",
        tests=_BY_LEADER,
    ),
    Guard(
        file=_LEADER,
        line="            if self._seconds_late() > self.GRACE_SECONDS:",
        without="            if False:",
        because="A process whose event loop stands still must end before another leads.",
        tests=_BY_LEADER,
    ),
    Guard(
        file=_LEADER,
        line="    renew_deadline_seconds: float = 10.0",
        without="    renew_deadline_seconds: float = 16.0",
        because="A holder stops well before another may begin.",
        tests=_BY_LEADER,
    ),
)

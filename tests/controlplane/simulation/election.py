# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The real leader election, in a play of its own: candidates on one Lease that hang, die, end, and get no answers.

At no moment two of them may act; each takes the Lease only when that is its right; in calm one leads, and writes
no more than its renewals.
"""

from __future__ import annotations

import asyncio
import random

from controlplane.api.objects.resources import LEASE, Key
from controlplane.kube.leader import ElectionTiming, Leadership, LeadershipLostError
from tests.controlplane.simulation.answers import Asked
from tests.controlplane.simulation.loop import Unwatched
from tests.controlplane.simulation.process import Process
from tests.support.breach import Breach
from tests.support.calls import READ, CallingApi, Fate
from tests.support.clock import SimulatedClock, WrongClock
from tests.support.store import Store

KEY = Key("kubevirt", "virt-controller")
TERMS = ElectionTiming()
FATES: tuple[Fate, ...] = ("done",) * 6 + ("request lost", "answer lost", "throttled")
LATENESS = 0.3
"""How often time may pass between a write and its answer."""
CALM_SECONDS = 100.0
TOLERANCE = 0.01
LONGEST_SECONDS = 120.0
"""So long at most a Lease keeps others out, whatever a person has written there."""
SOON_SECONDS = 2 * TERMS.retry_seconds
"""Within which somebody takes a Lease that nobody holds."""
LASTS_FOR_EVER = 10**6
EDITS: tuple[tuple[dict[str, object], float], ...] = (
    ({}, TERMS.duration_seconds + SOON_SECONDS),
    ({"leaseDurationSeconds": LASTS_FOR_EVER}, LONGEST_SECONDS + SOON_SECONDS),
    ({"holderIdentity": ""}, SOON_SECONDS),
    ({"holderIdentity": None}, SOON_SECONDS),
    ({"holderIdentity": "", "leaseDurationSeconds": LASTS_FOR_EVER}, SOON_SECONDS),
)
"""What a person writes into the Lease of a leader that has died, and within which time the next one leads."""


class Candidate(Process):
    """A virt-controller that takes part in the election, and does nothing when it leads."""

    role = "candidate"

    def __init__(self, name: str, store: Store, clock: WrongClock) -> None:
        super().__init__(name, store, clock)
        self.leadership = Leadership(CallingApi(store), KEY, name, clock, watch_over=Unwatched)
        self.is_hung = False
        self.leads = self.is_over = False
        self._life = self.loop.create_task(self._live())
        self.loop.settle()

    @property
    def is_acting(self) -> bool:
        """Whether a write would be let through."""
        return self.leadership.is_leader and self.leads

    def stop(self) -> None:
        """Be told to end: gives the Lease back before it does."""
        is_leader = self.leadership.is_leader
        self._life.cancel()
        self.loop.settle()
        gives_back = any(one.call.verb == "patch" for one in self.passes)
        if is_leader and not gives_back:
            raise Breach(f"election: {self.name} ends, and does not give the Lease back")

    def broken_promise(self, asked: Asked) -> str | None:
        if asked.call.verb == READ:
            return None
        if asked.call.verb == "create":
            answer = asked.ever.of(LEASE.kind, KEY)
            return None if answer is not None and answer.found is None else "there was no word that there is no Lease"
        if not asked.call.asked.get("resource_version"):
            return "it names no version"
        spec, before = asked.call.asked["patch"]["spec"], {"holderIdentity": None, **asked.decided_on["spec"]}
        if "holderIdentity" not in spec:
            return None if before["holderIdentity"] == self.name else f"it renews what {before['holderIdentity']} holds"
        if not spec["holderIdentity"]:
            return None if before["holderIdentity"] == self.name else "it gives back what another holds"
        return self._may_take(asked, spec, before)

    def _may_take(self, asked: Asked, spec: dict[str, object], before: dict[str, object]) -> str | None:
        holder, transitions = before["holderIdentity"], int(str(before.get("leaseTransitions", 0)))
        change = asked.store.history[int(asked.call.asked["resource_version"]) - 1]
        stood, lasts = asked.store.now - change.at, min(float(str(before["leaseDurationSeconds"])), LONGEST_SECONDS)
        if holder not in ("", None, self.name) and stood < lasts - TOLERANCE:
            return f"it takes what {holder} holds, renewed {stood:.2f} s ago"
        is_new = holder != self.name
        if spec["leaseTransitions"] != transitions + is_new:
            return f"it counts {spec['leaseTransitions']} transitions after {transitions}"
        said = spec["leaseDurationSeconds"]
        return None if said == TERMS.duration_seconds else f"it takes the Lease for {said} s"

    async def _live(self) -> None:
        try:
            await self.leadership.run(self._lead)
        except LeadershipLostError:
            pass
        finally:
            self.is_over, self.leads = True, False

    async def _lead(self) -> None:
        self.leads = True
        await asyncio.Event().wait()


class Election:
    """One seed."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self._true = SimulatedClock()
        self._store = Store(self._true)
        self._count = 0
        self._all = [self._candidate(), self._candidate()]

    def run(self, steps: int) -> None:
        """Take random steps, and come to a calm end. Raises Breach."""
        try:
            for _unused in range(steps):
                self._step()
                self._check()
            self._calm()
        finally:
            for one in self._all:
                one.die(None, is_request_out=False)

    def _candidate(self) -> Candidate:
        self._count += 1
        clock = WrongClock(self._true, self._rng.choice((0.0, -3600.0, 90.0)), self._true.seconds - 1e3 * self._count)
        return Candidate(f"candidate-{self._count}", self._store, clock)

    def _step(self) -> None:
        moves = (self._answer, self._time, self._hang, self._kill, self._stop, self._edit)
        self._rng.choices(moves, (12, 10, 0.6, 0.2, 0.2, 0.3))[0]()
        for index, one in enumerate(self._all):
            if one.is_over and not one.passes:
                one.die(None, is_request_out=False)
                self._all[index] = self._candidate()

    def _awake(self) -> list[Candidate]:
        return [one for one in self._all if not one.is_hung]

    def _answer(self) -> None:
        asking = [one for one in self._awake() if one.passes]
        if asking:
            one = self._rng.choice(asking)
            index, is_late = self._rng.randrange(len(one.passes)), self._rng.random() < LATENESS
            fate: Fate = "done" if one.passes[index].came is not None else self._rng.choice(FATES)
            one.carry_out(index, fate, is_late=is_late)

    def _time(self) -> None:
        self._true.advance(self._rng.choice((0.01, 0.5, 1.0, 2.0, 4.0)))
        for one in self._awake():
            one.wake()

    def _hang(self) -> None:
        """Stop or let go on a process; time goes on for it."""
        one = self._rng.choice(self._all)
        one.is_hung = not one.is_hung
        if not one.is_hung:
            one.wake()

    def _kill(self) -> None:
        index = self._rng.randrange(len(self._all))
        one = self._all[index]
        one.die(0 if one.passes else None, is_request_out=bool(one.passes) and self._rng.random() < 0.5)
        self._all[index] = self._candidate()

    def _stop(self) -> None:
        one = self._rng.choice(self._awake() or self._all)
        if not one.is_over:
            one.wake()
            one.stop()

    def _edit(self) -> None:
        """Let a person touch the Lease."""
        if self._store.find(LEASE, KEY) is not None:
            self._store.actor = "user"
            note = {"metadata": {"annotations": {"note": str(self._store.version)}}}
            longer = {"spec": {"leaseDurationSeconds": LASTS_FOR_EVER}}
            self._store.patch(LEASE, KEY, self._rng.choice((note, longer)))

    def _check(self) -> None:
        acting = [one.name for one in self._all if one.is_acting]
        if len(acting) > 1:
            raise Breach(f"election: {' and '.join(acting)} lead at the same time")
        for one in self._all:
            if one.broken_promises:
                raise Breach(f"promise: {one.name}: {one.broken_promises[0]}")
            if one.bugs:
                raise Breach(f"bug: {one.name}: {one.bugs[0]}")

    def _calm(self) -> None:
        """Let all go well: after a Lease's time one leads, and goes on to."""
        for one in self._all:
            one.is_hung = False
        self._pass(40.0 + LONGEST_SECONDS)
        acting, writes = [one for one in self._all if one.is_acting], self._store.version
        if len(acting) != 1:
            raise Breach("election: all goes well, and nobody leads")
        self._pass(CALM_SECONDS)
        if not acting[0].is_acting:
            raise Breach("election: all goes well, and the leader does not go on to lead")
        made = self._store.version - writes
        if made > CALM_SECONDS / TERMS.renew_seconds + 1:
            raise Breach(f"write rate: the leader renewed {made} times in {CALM_SECONDS:g} s")
        for edit, within in EDITS:
            self._follow_a_dead_one(edit, within)

    def _follow_a_dead_one(self, edit: dict[str, object], within: float) -> None:
        """Let the leader die, and a person help or hinder; the next one leads in time."""
        index = next(index for index, one in enumerate(self._all) if one.is_acting)
        self._all[index].die(None, is_request_out=False)
        self._all[index] = self._candidate()
        if edit:
            self._store.actor = "user"
            self._store.patch(LEASE, KEY, {"spec": edit})
        self._pass(within)
        if not any(one.is_acting for one in self._all):
            raise Breach(f"election: the leader died {within:g} s ago, a person wrote {edit}, and nobody leads")

    def _pass(self, seconds: float) -> None:
        until = self._true.seconds + seconds
        while self._true.seconds < until:
            self._true.advance(0.5)
            for index, one in enumerate(self._all):
                one.wake()
                while one.passes:
                    one.carry_out(0, "done")
                if one.is_over:
                    one.die(None, is_request_out=False)
                    self._all[index] = self._candidate()
            self._check()

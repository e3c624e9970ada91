# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Properties of leader election: two candidates on one Lease hang, die, stop, and lose requests and responses.

At most one candidate may act at any time. A candidate takes a Lease only when it has expired or was given back. Without
faults one candidate leads, and writes nothing but its renewals.
"""

from __future__ import annotations

import asyncio
import random

import pytest

from controlplane.api.objects.resources import LEASE, Key
from controlplane.kube.leader import ElectionTiming, Leadership, LeadershipLostError
from tests.controlplane.simulation.answers import Request
from tests.controlplane.simulation.loop import Unwatched
from tests.controlplane.simulation.process import Process
from tests.support.calls import READ, CallingApi, Fate
from tests.support.clock import SimulatedClock, WrongClock
from tests.support.store import Store

KEY = Key("kubevirt", "virt-controller")
TIMING = ElectionTiming()
FATES: tuple[Fate, ...] = ("done",) * 6 + ("request lost", "answer lost", "throttled")
LATE_RESPONSES = 0.3
"""Share of the requests whose response is delivered in a later step."""
CALM_SECONDS = 100.0
TOLERANCE = 0.01
LONGEST_SECONDS = 120.0
"""The longest time that a Lease keeps others out, whatever duration a user writes into it."""
SOON_SECONDS = 2 * TIMING.retry_seconds
"""Within which a candidate takes a Lease without a holder."""
NEVER_EXPIRES_SECONDS = 10**6
EDITS: tuple[tuple[dict[str, object], float], ...] = (
    ({}, TIMING.duration_seconds + SOON_SECONDS),
    ({"leaseDurationSeconds": NEVER_EXPIRES_SECONDS}, LONGEST_SECONDS + SOON_SECONDS),
    ({"holderIdentity": ""}, SOON_SECONDS),
    ({"holderIdentity": None}, SOON_SECONDS),
    ({"holderIdentity": "", "leaseDurationSeconds": NEVER_EXPIRES_SECONDS}, SOON_SECONDS),
)
"""What a user writes into the Lease of a dead leader -> seconds within which the next candidate leads."""
STEPS = 5000


@pytest.mark.parametrize("seed", range(1, 11))
def test_at_most_one_candidate_acts(seed: int) -> None:
    run = Run(random.Random(seed))
    try:
        for _step in range(STEPS):
            run.step()
            run.check()
        run.check_without_faults()
    finally:
        run.close()


class Candidate(Process):
    """A process that takes part in the election and does nothing as the leader."""

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
        """Whether its writes are let through."""
        return self.leadership.is_leader and self.leads

    def stop(self) -> None:
        """Stop the process: a leader must give the Lease back first."""
        is_leader = self.leadership.is_leader
        self._life.cancel()
        self.loop.settle()
        is_given_back = any(request.call.verb == "patch" for request in self.passes)
        assert is_given_back or not is_leader, f"{self.name} stops and keeps the Lease"

    def unmet_precondition(self, asked: Request) -> str | None:
        if asked.call.verb == READ:
            return None
        if asked.call.verb == "create":
            answer = asked.ever.of(LEASE.kind, KEY)
            return None if answer is not None and answer.value is None else "no read has shown that there is no Lease"
        if not asked.call.asked.get("resource_version"):
            return "it names no resourceVersion"
        spec, before = asked.call.asked["patch"]["spec"], {"holderIdentity": None, **asked.decided_on["spec"]}
        if "holderIdentity" not in spec:
            return None if before["holderIdentity"] == self.name else f"it renews what {before['holderIdentity']} holds"
        if not spec["holderIdentity"]:
            return None if before["holderIdentity"] == self.name else "it gives back what another holds"
        return self._may_take(asked, spec, before)

    def _may_take(self, asked: Request, spec: dict[str, object], before: dict[str, object]) -> str | None:
        holder, transitions = before["holderIdentity"], int(str(before.get("leaseTransitions", 0)))
        change = asked.store.history[int(asked.call.asked["resource_version"]) - 1]
        stood, lasts = asked.store.now - change.at, min(float(str(before["leaseDurationSeconds"])), LONGEST_SECONDS)
        if holder not in ("", None, self.name) and stood < lasts - TOLERANCE:
            return f"it takes what {holder} holds, renewed {stood:.2f} s ago"
        is_new = holder != self.name
        if spec["leaseTransitions"] != transitions + is_new:
            return f"it counts {spec['leaseTransitions']} transitions after {transitions}"
        duration = spec["leaseDurationSeconds"]
        return None if duration == TIMING.duration_seconds else f"it takes the Lease for {duration} s"

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


class Run:
    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._true = SimulatedClock()
        self._store = Store(self._true)
        self._count = 0
        self._candidates = [self._candidate(), self._candidate()]

    def close(self) -> None:
        for candidate in self._candidates:
            candidate.die(None, is_request_out=False)

    def _candidate(self) -> Candidate:
        self._count += 1
        clock = WrongClock(self._true, self._rng.choice((0.0, -3600.0, 90.0)), self._true.seconds - 1e3 * self._count)
        return Candidate(f"candidate-{self._count}", self._store, clock)

    def step(self) -> None:
        steps = (self._respond, self._advance, self._toggle_hang, self._kill, self._stop, self._edit_lease)
        self._rng.choices(steps, (12, 10, 0.6, 0.2, 0.2, 0.3))[0]()
        for index, candidate in enumerate(self._candidates):
            if candidate.is_over and not candidate.passes:
                self._replace(index)

    def _replace(self, index: int) -> None:
        self._candidates[index].die(None, is_request_out=False)
        self._candidates[index] = self._candidate()

    def _awake(self) -> list[Candidate]:
        return [candidate for candidate in self._candidates if not candidate.is_hung]

    def _respond(self) -> None:
        """Carry out or answer a request of a candidate that does not hang."""
        waiting = [candidate for candidate in self._awake() if candidate.passes]
        if waiting:
            candidate = self._rng.choice(waiting)
            index, is_late = self._rng.randrange(len(candidate.passes)), self._rng.random() < LATE_RESPONSES
            fate: Fate = "done" if candidate.passes[index].came is not None else self._rng.choice(FATES)
            candidate.carry_out(index, fate, is_late=is_late)

    def _advance(self) -> None:
        self._true.advance(self._rng.choice((0.01, 0.5, 1.0, 2.0, 4.0)))
        for candidate in self._awake():
            candidate.wake()

    def _toggle_hang(self) -> None:
        candidate = self._rng.choice(self._candidates)
        candidate.is_hung = not candidate.is_hung
        if not candidate.is_hung:
            candidate.wake()

    def _kill(self) -> None:
        index = self._rng.randrange(len(self._candidates))
        candidate = self._candidates[index]
        is_waiting = bool(candidate.passes)
        candidate.die(0 if is_waiting else None, is_request_out=is_waiting and self._rng.random() < 0.5)
        self._candidates[index] = self._candidate()

    def _stop(self) -> None:
        candidate = self._rng.choice(self._awake() or self._candidates)
        if not candidate.is_over:
            candidate.wake()
            candidate.stop()

    def _edit_lease(self) -> None:
        """Let a user change the Lease."""
        if self._store.find(LEASE, KEY) is not None:
            self._store.actor = "user"
            note = {"metadata": {"annotations": {"note": str(self._store.version)}}}
            longer = {"spec": {"leaseDurationSeconds": NEVER_EXPIRES_SECONDS}}
            self._store.patch(LEASE, KEY, self._rng.choice((note, longer)))

    def check(self) -> None:
        assert len(self._acting()) <= 1
        for candidate in self._candidates:
            assert not candidate.unmet_preconditions
            assert not candidate.bugs

    def _acting(self) -> list[Candidate]:
        return [candidate for candidate in self._candidates if candidate.is_acting]

    def check_without_faults(self) -> None:
        """One candidate leads and only renews its Lease; after its death the next one leads in time."""
        for candidate in self._candidates:
            candidate.is_hung = False
        self._pass_time(40.0 + LONGEST_SECONDS)
        (leader,), version = self._acting(), self._store.version
        self._pass_time(CALM_SECONDS)
        assert leader.is_acting
        assert self._store.version - version <= CALM_SECONDS / TIMING.renew_seconds + 1
        for edit, seconds in EDITS:
            self._check_next_leader(edit, seconds)

    def _check_next_leader(self, edit: dict[str, object], seconds: float) -> None:
        self._replace(next(index for index, candidate in enumerate(self._candidates) if candidate.is_acting))
        if edit:
            self._store.actor = "user"
            self._store.patch(LEASE, KEY, {"spec": edit})
        self._pass_time(seconds)
        assert self._acting(), f"the leader died {seconds:g} s ago, a user wrote {edit}, and nobody leads"

    def _pass_time(self, seconds: float) -> None:
        until = self._true.seconds + seconds
        while self._true.seconds < until:
            self._true.advance(0.5)
            for index, candidate in enumerate(self._candidates):
                candidate.wake()
                while candidate.passes:
                    candidate.carry_out(0, "done")
                if candidate.is_over:
                    self._replace(index)
            self.check()

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""virt-handler's sessions without sockets and libvirt: what the real ones publish, when the schedule lets them.

A verb is a Call, or several; what libvirt tells is a look that is begun in one step and published later. Losing
contact changes nothing but `is_connected`.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import wraps
from typing import Any, Concatenate, Literal, ParamSpec

from controlplane.api.objects.pod import Pod
from controlplane.api.objects.resources import Key
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.domain.state import State
from controlplane.virt_handler.vmi.person import hold_after
from controlplane.virt_handler.vmi.ports import Granted, NoContact, StartRefused
from controlplane.virt_handler.vmi.verdict import is_startable
from controlplane.virt_handler.vmi.world import Expected, Failure, Launcher, Sighting
from tests.controlplane.simulation import launcher as host
from tests.controlplane.simulation.calls import Call
from tests.controlplane.simulation.node import Node

START_ATTEMPTS = 3
START_PATIENCE_SECONDS = 2.0
FIRST_SECONDS, LAST_SECONDS = 0.05, 30.0
"""Of the pause after a verb of which nothing came."""
P = ParamSpec("P")


def _counted(
    verb: Callable[Concatenate[FakeSession, P], Coroutine[Any, Any, None]],
) -> Callable[Concatenate[FakeSession, P], Coroutine[Any, Any, None]]:
    """Let a session know what came of its verb."""

    @wraps(verb)
    async def counted(session: FakeSession, *given: P.args, **named: P.kwargs) -> None:
        try:
            await verb(session, *given, **named)
        except (NoContact, StartRefused):
            session.note_end(in_vain=True)
            raise
        session.note_end(in_vain=False)

    return counted


class FakeSession:
    """Contact with one launcher Pod. `pod` and `is_gone` are kept up to date by the sessions."""

    def __init__(self, pod: Pod, node: Node, changed: Callable[[], None], complain: Callable[[str], None]) -> None:
        self.pod = pod
        self.is_gone = False
        self._node = node
        self._changed = changed
        self._complain = complain
        self._sighting = Sighting()
        self._daemon = 0
        """The libvirtd that it is connected to; 0: none."""
        self._seen = -1
        self._look: tuple[State | None] | None = None
        """A look that is begun and not published yet."""
        self._is_starting = False
        self._is_start_in_doubt = False
        self._failed_starts: list[float] = []
        self._expected: Expected | None = None
        self.in_vain = 0
        """How many verbs in a row came to nothing."""
        self.in_vain_at = 0.0

    @property
    def is_over(self) -> bool:
        return self.is_gone or self.pod.is_over

    @property
    def is_connected(self) -> bool:
        return self._daemon > 0

    def launcher(self) -> Launcher:
        return Launcher(self.pod, is_gone=self.is_gone, sighting=self._sighting, expected=self._expected)

    def expect(self, expected: Expected) -> None:
        self._expected = expected
        self._changed()

    def admit(self) -> None:
        self._publish(is_admitted=True)

    def steps(self) -> list[Callable[[], None]]:
        """List what its own task can do now."""
        there = self._there()
        if self._daemon and (there is None or not there.is_listening or there.daemon != self._daemon):
            return [self._hang_up]
        if not self._daemon:
            if there is None or not there.is_listening or self.is_over:
                return []
            if not self._sighting.is_here:
                return [lambda: self._publish(is_here=True)]
            return [self._connect] if self._sighting.is_admitted else []
        if self._look is not None:
            return [self._publish_look]
        return [self._begin_look] if there is not None and self._seen != there.changes and not self._is_starting else []

    @_counted
    async def prepare_network(self, _unused: VirtualMachineInstance) -> None:
        """It is virt-node that does it: without a connection of ours."""
        self._note_attempt("prepare the network")
        if not self._sighting.is_network_ready:
            await Call("prepare network of", "domain", self.pod.vmi_key or Key("", ""), self._find, NoContact)
            self._publish(is_network_ready=True)

    @_counted
    async def start(self, granted: Granted) -> None:
        """Define, start, and look: nothing seen in between is published."""
        self._note_attempt("start")
        if self._is_start_in_doubt:
            await self.refresh()
            self._is_start_in_doubt = False
            if not is_startable(self._sighting):
                return
        self._is_starting, self._look = True, None
        try:
            waits = (await granted()).spec.is_start_paused
            await self._call("define", lambda one: one.define())
            await self._call("launch", lambda one: one.launch(waits=waits))
            await self._call("finish start of", lambda one: one.finish_start() if one.is_starting else None)
        except host.DomainError as error:
            if not error.is_wrong_state:
                self._note_failed_start(str(error))
                raise StartRefused(str(error)) from error
        except NoContact:
            self._is_start_in_doubt = True
            raise
        finally:
            self._is_starting = False
        try:
            await self.refresh()
        except NoContact:
            self._publish(has_run=True)
            raise

    @_counted
    async def shut_down(self) -> None:
        self._publish(shutdown_asked_at=self._node.clock.monotonic())
        await self._end("shut down", lambda one: one.press_power())

    @_counted
    async def destroy(self) -> None:
        self._publish(destroys=self._sighting.destroys + 1, destroy_asked_at=self._node.clock.monotonic())
        await self._end("destroy", lambda one: one.destroy())
        await self.refresh()

    @_counted
    async def resume(self) -> None:
        self._publish(resume_asked_at=self._node.clock.monotonic())
        await self._call("resume", lambda one: one.resume())

    def press(self, verb: Literal["pause", "unpause"]) -> bool:
        """Do at once what a person asks for by virt-api; False when there is no contact. What was seen is published."""
        there = self._there()
        if not self._daemon or there is None or not there.is_listening or there.daemon != self._daemon:
            return False
        if self._is_starting or not there.is_running_guest or there.is_starting:
            return False
        there.pause() if verb == "pause" else there.unpause()
        self._seen, self._look = there.changes, None
        held = verb == "pause" and there.state == host.BY_ERROR
        self._publish(is_held=held)
        self._publish_state(there.state)
        return True

    async def refresh(self) -> None:
        daemon = self._daemon
        state = await self._call("look at", lambda one: one.state)
        if self._daemon == daemon:
            self._publish_state(state)

    async def _end(self, verb: str, say: Callable[[host.Launcher], None]) -> None:
        def end(there: host.Launcher) -> None:
            self._node.endings.append((there.vmi_uid, there.pod_uid))
            say(there)

        try:
            await self._call(verb, end)
        except host.DomainError:
            await self.refresh()  # it has ended in the meantime

    async def _call(self, verb: str, do: Callable[[host.Launcher], object]) -> State | None:
        daemon = self._daemon

        def run() -> object:
            there = self._there()
            if not daemon or there is None or not there.is_listening or there.daemon != daemon:
                raise NoContact("the launcher is not connected")
            return do(there)

        owner = self.pod.owner
        asked = {"pod_uid": self.pod.uid, "vmi_uid": "" if owner is None else owner.uid}
        return await Call(verb, "domain", self.pod.vmi_key or Key("", ""), run, NoContact, asked)  # type: ignore[no-any-return]

    def _find(self) -> None:
        there = self._there()
        if there is None or not there.is_listening:
            raise NoContact("the launcher has no socket")

    def _there(self) -> host.Launcher | None:
        return self._node.launchers.get(self.pod.uid)

    def _connect(self) -> None:
        there = self._there()
        if there is not None:
            self._daemon, self._seen = there.daemon, there.changes
            self._sighting = replace(self._sighting, observed=None)
            self._look = (there.state,)

    def _hang_up(self) -> None:
        self._daemon, self._look = 0, None
        self._publish(is_connected=False)

    def _begin_look(self) -> None:
        there = self._there()
        if there is not None:
            self._seen, self._look = there.changes, (there.state,)

    def _publish_look(self) -> None:
        if self._look is not None:
            (state,), self._look = self._look, None
            self._publish_state(state)

    def _publish_state(self, state: State | None) -> None:
        there = self._there()
        observed = there.observed() if state is not None and there is not None else None
        is_up = state is not None and state.life.is_up and not state.is_starting
        has_run = self._sighting.has_run or is_up
        held = hold_after(self._sighting.is_held, state)
        self._publish(has_run=has_run, is_connected=True, state=state, observed=observed, is_held=held, trouble="")

    def pause_left(self) -> float:
        """Tell how long nothing is tried again yet."""
        if not self.in_vain:
            return 0.0
        whole = min(LAST_SECONDS, FIRST_SECONDS * 2.0 ** min(self.in_vain - 1, 30))
        return whole - (self._node.clock.monotonic() - self.in_vain_at)

    def note_end(self, *, in_vain: bool) -> None:
        """Count a verb that has ended."""
        self.in_vain = self.in_vain + 1 if in_vain else 0
        self.in_vain_at = self._node.clock.monotonic()

    def _note_attempt(self, verb: str) -> None:
        if (left := self.pause_left()) > 0:
            self._complain(
                f"{self.pod.vmi_key}: asked to {verb} {left:.2f} s too early, {self.in_vain} came to nothing"
            )

    def _note_failed_start(self, text: str) -> None:
        now = self._node.clock.monotonic()
        self._failed_starts.append(now)
        is_long = now - self._failed_starts[0] >= START_PATIENCE_SECONDS
        if "kernel" in text:
            self._publish(failure=Failure("InvalidDomain", text))
        elif len(self._failed_starts) >= START_ATTEMPTS and is_long:
            self._publish(failure=Failure("StartFailed", text))

    def _publish(self, **changes: object) -> None:
        after = replace(self._sighting, **changes)  # type: ignore[arg-type]
        if after != self._sighting:
            self._sighting = after
            self._changed()

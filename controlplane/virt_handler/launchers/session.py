# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Contact with one launcher, for as long as its Pod is there: socket, connection, what the domain does, the verbs.

One task owns it (`run`); the reconciler of its VMI calls the verbs. What it knows is published as a Sighting, and
`changed` is called whenever that may be another one. Losing contact changes nothing but `is_connected`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from controlplane.api.objects.pod import MESSAGE_LIMIT, Pod, bounded
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.domain.observed import Observed, UnreadableError, read_domain
from controlplane.domain.state import Life, State
from controlplane.engine.ports import Clock
from controlplane.hypervisor.errors import Disconnected, HypervisorError, InvalidDomain, TimedOut, WrongState
from controlplane.hypervisor.events import ConnectionClosed
from controlplane.virt_handler.launchers.description import describe_domain, has_kvm, masquerade_of
from controlplane.virt_handler.launchers.ports import (
    Connect,
    Connection,
    Guest,
    Node,
    NodeAway,
    NodeError,
    NotThere,
    Refused,
)
from controlplane.virt_handler.vmi.ports import NoContact, StartRefused
from controlplane.virt_handler.vmi.world import Expected, Failure, Launcher, Sighting

log = logging.getLogger(__name__)

_PAUSES_SECONDS = (0.02, 0.05, 0.1, 0.3, 1.0, 3.0)
"""Between attempts to connect: libvirtd listens a moment after its socket is there."""
_BUSY_SECONDS = 0.1
_QUICK_EVENTS = 20
"""Events in quick succession that are answered at once; a launcher that floods us is answered ten times a second."""
_START_ATTEMPTS = 3
_START_PATIENCE_SECONDS = 2.0
"""A start that fails is tried at least so often and so long: a lack of memory may pass. A user waits for the reason."""
_UNREADABLE = State(Life.UNKNOWN, "unknown")


@dataclass(frozen=True, slots=True)
class Tools:
    """What all sessions share."""

    node: Node
    clock: Clock
    connect: Connect


class Session:
    """Implements vmi.ports.Session. `pod` and `is_gone` are kept up to date by the registry."""

    def __init__(self, pod: Pod, vmi_uid: str, tools: Tools, changed: Callable[[], None]) -> None:
        self.pod = pod
        self.is_gone = False
        self._vmi_uid = vmi_uid
        self._tools = tools
        self._changed = changed
        self._sighting = Sighting()
        self._expected: Expected | None = None
        self._connection: Connection | None = None
        self._looking = asyncio.Lock()
        """Held from a domain's definition to the answer of its start: nothing seen in between is published."""
        self._failed_starts: list[float] = []

    @property
    def is_over(self) -> bool:
        """Nothing will listen in this Pod any more."""
        return self.is_gone or self.pod.is_over

    def launcher(self) -> Launcher:
        """Say what is known now."""
        return Launcher(self.pod, is_gone=self.is_gone, sighting=self._sighting, expected=self._expected)

    def expect(self, expected: Expected) -> None:
        """Keep what was read of its VMI before the hand-over."""
        self._expected = expected
        self._changed()

    async def run(self) -> None:
        """Keep contact until the Pod is over."""
        await self._give_capabilities()
        failures = 0
        while not self.is_over:
            try:
                await self._follow_once()
                failures = 0
            except (HypervisorError, OSError, NodeError) as error:
                level = logging.DEBUG if failures < len(_PAUSES_SECONDS) else logging.WARNING
                log.log(level, "no contact with a launcher", extra={**self._who, "error": str(error)})
                self._publish(trouble=bounded(str(error)))
                await asyncio.sleep(_PAUSES_SECONDS[min(failures, len(_PAUSES_SECONDS) - 1)])
                failures += 1

    async def prepare_network(self, vmi: VirtualMachineInstance) -> None:
        """Set the Pod's network up for its guest; once per session. StartRefused, NoContact."""
        if self._sighting.is_network_ready:
            return
        self._require()
        try:
            wanted = masquerade_of(vmi)
            interface = None if wanted is None else await self._tools.node.set_up_network(self.pod.uid, wanted)
        except ValueError as error:
            self._publish(failure=Failure("InvalidSpec", str(error)))
            raise StartRefused(str(error)) from error
        except (NodeAway, NotThere) as error:
            raise NoContact(str(error)) from error
        except NodeError as error:
            raise StartRefused(f"cannot set up the Pod's network: {error}") from error
        self._publish(is_network_ready=True, interface=interface)

    async def start(self, vmi: VirtualMachineInstance) -> None:
        """Define the domain and start it. StartRefused, NoContact."""
        connection = self._require()
        text = await self._describe(vmi)
        async with self._looking:
            try:
                guest = await connection.define(text)
                await guest.start()
                log.info("domain started", extra=self._who)
            except WrongState:
                log.info("the domain runs already", extra=self._who)
            except (Disconnected, TimedOut) as error:
                raise NoContact(str(error)) from error
            except HypervisorError as error:
                self._note_failed_start(error)
                raise StartRefused(str(error)) from error
        await self.refresh()

    async def shut_down(self) -> None:
        """Press the guest's power button. NoContact."""
        self._publish(shutdown_asked_at=self._tools.clock.monotonic())
        await self._tell(lambda guest: guest.shutdown())

    async def destroy(self) -> None:
        """End QEMU; by SIGKILL from the third time on. NoContact."""
        again = self._sighting.destroys
        self._publish(destroys=again + 1, destroy_asked_at=self._tools.clock.monotonic())
        await self._tell(lambda guest: guest.kill() if again >= 2 else guest.destroy())
        await self.refresh()

    async def resume(self) -> None:
        """Let a paused guest go on. NoContact."""
        self._publish(resume_asked_at=self._tools.clock.monotonic())
        await self._tell(lambda guest: guest.resume())

    async def refresh(self) -> None:
        """Ask libvirt what the domain does, and publish it. NoContact."""
        async with self._looking:
            connection = self._require()
            try:
                guest = await connection.guest(self._vmi_uid)
                state = None if guest is None else await guest.state()
                observed = None if guest is None else self._sighting.observed or await self._observe(guest)
            except HypervisorError as error:
                raise NoContact(str(error)) from error
            if self._connection is connection:
                if state is not None and observed is None:
                    state = _UNREADABLE
                self._publish(is_connected=True, state=state, observed=observed, trouble="")

    async def _give_capabilities(self) -> None:
        try:
            await self._tools.node.give_capabilities(self.pod.uid, with_kvm=has_kvm(self.pod))
        except NodeError as error:
            log.warning("start without capability cache", extra={**self._who, "error": str(error)})

    async def _follow_once(self) -> None:
        """Connect, and publish what happens until the connection ends."""
        found = await self._tools.node.open_socket(self.pod.uid)
        try:
            connection = await self._tools.connect(found.path)
            self._connection = connection
            self._sighting = replace(self._sighting, observed=None)  # read anew, once per connection
            log.info("launcher connected", extra=self._who)
            try:
                with suppress(NoContact):
                    await self._follow(connection)
            finally:
                self._connection = None
                self._publish(is_connected=False)
                with suppress(HypervisorError):
                    await connection.close()
        finally:
            found.close()

    async def _follow(self, connection: Connection) -> None:
        await self.refresh()
        quick, last = 0, self._tools.clock.monotonic()
        while True:
            event = await connection.events.get()
            if isinstance(event, ConnectionClosed):
                log.info("launcher disconnected", extra={**self._who, "because": event.reason})
                return
            now = self._tools.clock.monotonic()
            quick = quick + 1 if now - last < _BUSY_SECONDS else 0
            last = now
            if quick > _QUICK_EVENTS:
                await asyncio.sleep(_BUSY_SECONDS)
            await self.refresh()

    async def _describe(self, vmi: VirtualMachineInstance) -> str:
        try:
            report = await self._tools.node.read_report(self.pod.uid)
            return describe_domain(vmi, self.pod, report, self._sighting.interface)
        except NotThere as error:
            raise NoContact("the launcher has not reported yet") from error
        except NodeAway as error:
            raise NoContact(str(error)) from error
        except (ValueError, Refused) as error:
            self._publish(failure=Failure("InvalidDomain", _gist(str(error))))
            raise StartRefused(str(error)) from error
        except NodeError as error:
            raise StartRefused(f"cannot read the launcher's report: {error}") from error

    async def _observe(self, guest: Guest) -> Observed | None:
        try:
            return read_domain(await guest.xml())
        except UnreadableError as error:
            log.warning("a launcher describes its domain badly", extra={**self._who, "error": str(error)})
            return None

    async def _tell(self, say: Callable[[Guest], object]) -> None:
        connection = self._require()
        try:
            guest = await connection.guest(self._vmi_uid)
            if guest is not None:
                await say(guest)  # type: ignore[misc]
        except WrongState:
            await self.refresh()  # it has ended in the meantime
        except HypervisorError as error:
            raise NoContact(str(error)) from error

    def _note_failed_start(self, error: HypervisorError) -> None:
        is_final = isinstance(error, InvalidDomain)
        if is_final or self._is_patience_over():
            self._publish(failure=Failure("InvalidDomain" if is_final else "StartFailed", _gist(str(error))))

    def _is_patience_over(self) -> bool:
        self._failed_starts.append(self._tools.clock.monotonic())
        waited = self._failed_starts[-1] - self._failed_starts[0]
        return len(self._failed_starts) >= _START_ATTEMPTS and waited >= _START_PATIENCE_SECONDS

    def _require(self) -> Connection:
        if self._connection is None:
            raise NoContact("the launcher is not connected")
        return self._connection

    @property
    def _who(self) -> dict[str, str]:
        return {"key": str(self.pod.vmi_key), "uid": self._vmi_uid, "pod": self.pod.metadata.name}

    def _publish(self, **changes: object) -> None:
        after = replace(self._sighting, **changes)  # type: ignore[arg-type]
        if after != self._sighting:
            self._sighting = after
            self._changed()


def _gist(text: str) -> str:
    """Keep beginning and end of a long text: QEMU warns first, and says last what it died of."""
    if len(text) <= MESSAGE_LIMIT:
        return bounded(text)
    head = MESSAGE_LIMIT // 4
    return bounded(f"{text[:head]} ... {text[head + 5 - MESSAGE_LIMIT :]}")

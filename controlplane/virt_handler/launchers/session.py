# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Contact with one launcher, for as long as its Pod is there: socket, connection, what the domain does, the verbs.

One task owns it (`run`); the operations run in tasks of their own (verbs.py). `changed` is called whenever the
LauncherStatus is another one. Losing contact changes nothing but `is_connected`.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from controlplane.api.objects.migration_state import MigrationState
from controlplane.api.objects.pod import Pod, abbreviate, sanitize
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.domain.agent import AgentState
from controlplane.domain.state import Life, State, explain_crash
from controlplane.engine.errors import ApiError
from controlplane.engine.ports import Clock
from controlplane.hypervisor.errors import Disconnected, HypervisorError, InvalidDomain, TimedOut, WrongState
from controlplane.hypervisor.events import ConnectionClosed, Event, cause_of_end
from controlplane.links.handler import Verb
from controlplane.virt_handler.launchers.agent import QUESTIONS, Agent, NoAgent
from controlplane.virt_handler.launchers.description import describe_domain, has_kvm, masquerade_of
from controlplane.virt_handler.launchers.domain_reader import DomainReader
from controlplane.virt_handler.launchers.freeze import Freeze
from controlplane.virt_handler.launchers.memory_progress import MemoryProgress
from controlplane.virt_handler.launchers.network import Network
from controlplane.virt_handler.launchers.pace import RESYNC_SECONDS, DomainLooks, Pauses, resync_pause
from controlplane.virt_handler.launchers.ports import (
    Connect,
    Connection,
    Failed,
    Guest,
    Node,
    NodeAway,
    NodeError,
    NotThere,
    Refused,
    Send,
    TransferRequest,
)
from controlplane.virt_handler.launchers.soft_reboot import soft_reboot
from controlplane.virt_handler.vmi.hotplug import is_to_be_still
from controlplane.virt_handler.vmi.io_error_resume import count_next
from controlplane.virt_handler.vmi.liveness import is_own, is_startable
from controlplane.virt_handler.vmi.migration_source import is_migrating_or_stopped, is_sending, is_user_pause_reported
from controlplane.virt_handler.vmi.ports import Granted, NoContact, StartRefused, VerbRefused, Writes
from controlplane.virt_handler.vmi.user_requests import is_paused_by_user, refuse, user_pause_after
from controlplane.virt_handler.vmi.world import Expected, Failure, Launcher, LauncherStatus, Transfer

log = logging.getLogger(__name__)

_START_ATTEMPTS = 3
_START_PATIENCE_SECONDS = 2.0
"""A start that fails is tried at least so often and so long: a lack of memory may pass. A user waits for the reason."""
_UNREADABLE = State(Life.UNKNOWN, "unknown")


async def _send_nobody(order: TransferRequest) -> None:
    raise Failed(f"guest of Pod {order.pod_uid} cannot be sent from here")


@dataclass(frozen=True, slots=True)
class Tools:
    """What all sessions share."""

    node: Node
    clock: Clock
    connect: Connect
    random: Callable[[], float] = random.random
    """For jitter: numbers in [0, 1)."""
    resync_seconds: float = RESYNC_SECONDS
    started: Callable[[float], None] = lambda _unused: None
    """Told the seconds of each start (metrics)."""
    send: Send = _send_nobody
    questions: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(QUESTIONS))
    """To agents: so many are under way at once."""


class Session:
    """Implements verbs.Contact. `pod` and `is_gone` are kept up to date by the registry."""

    def __init__(self, pod: Pod, vmi_uid: str, tools: Tools, changed: Callable[[], None]) -> None:
        self.pod = pod
        self.is_gone = False
        self._vmi_uid = vmi_uid
        self._tools = tools
        self._changed = changed
        self._sighting = LauncherStatus()
        self._expected: Expected | None = None
        self._admitted = asyncio.Event()
        self._connection: Connection | None = None
        self._looks = DomainLooks()
        self._looking = asyncio.Lock()
        """Held from a domain's definition to the answer of its start: nothing seen in between is published."""
        self._failed_starts: list[float] = []
        self._pauses = Pauses(tools.random)
        self._connected_at: float | None = None
        self._unwanted = asyncio.Event()
        """Set when the migration that is under way is."""
        self._is_start_in_doubt = False
        """A start was not answered, and nobody has looked since."""
        self._cause = ""
        """Why QEMU ends, as events have told (State.explain_crash)."""
        self._observation = DomainReader()
        self._taking = MemoryProgress(self._look_anew, lambda: self._sighting.observed)
        self._agent = Agent(tools.clock, tools.random, tools.questions, self._hear)
        self._freeze = Freeze(self._agent, tools.clock)
        self._network = Network(
            tools.node,
            pod.uid,
            tools.clock,
            pause=self._resync_pause,
            trouble=lambda said: self._publish(network_trouble=said),
            has_guest=lambda: self._sighting.is_connected and _is_up(self._sighting.state),
        )

    @property
    def is_over(self) -> bool:
        """Nothing will listen in this Pod any more."""
        return self.is_gone or self.pod.is_over

    def launcher(self) -> Launcher:
        """Say what is known now."""
        return Launcher(self.pod, is_gone=self.is_gone, status=self._sighting, expected=self._expected)

    def expect(self, expected: Expected) -> None:
        """Keep what was read of its VMI before the hand-over."""
        self._expected = expected
        self._changed()

    def admit(self) -> None:
        """Dial it from now on: a VMI grants this Pod the run."""
        self._admitted.set()
        self._publish(is_admitted=True)

    async def run(self) -> None:
        """Keep contact until the Pod is over."""
        giving = asyncio.create_task(self._give_capabilities())  # it may take long, and nothing waits for it
        try:
            await self._keep_contact()
        finally:
            giving.cancel()

    async def _keep_contact(self) -> None:
        while not self.is_over:
            said, self._connected_at = "", None
            try:
                await self._follow_once()
            except (HypervisorError, OSError, NodeError, NoContact) as error:
                said = sanitize(str(error))
            since, now = self._connected_at, self._tools.clock.monotonic()
            pause = self._pauses.next(0.0 if since is None else now - since)
            level = logging.WARNING if self._pauses.is_worth_a_warning else logging.DEBUG
            log.log(level, "no contact with a launcher", extra={**self._who, "error": said, "pause_seconds": pause})
            if said:
                self._publish(trouble=said)
            if not self.is_over:
                await asyncio.sleep(pause)

    async def prepare_network(self, vmi: VirtualMachineInstance) -> None:
        """Set the Pod's network up for its guest; once per session, which sees to it from then on.

        StartRefused, NoContact.
        """
        if self._sighting.is_network_ready:
            return
        try:
            wanted = masquerade_of(vmi, self.pod)
            interface = None if wanted is None else await self._tools.node.set_up_network(self.pod.uid, wanted)
        except ValueError as error:
            if not self._sighting.has_run:
                self._publish(failure=Failure("InvalidSpec", str(error)))
            raise StartRefused(str(error)) from error
        except (NodeAway, NotThere) as error:
            raise NoContact(str(error)) from error
        except NodeError as error:
            raise StartRefused(f"cannot set up the Pod's network: {error}") from error
        self._network.keep(wanted)
        self._publish(is_network_ready=True, interface=interface)

    async def start(self, granted: Granted) -> None:
        """Define the domain and start it. StartRefused, NoContact.

        What may take long comes first, the grant last: nothing that is revoked meanwhile is started.
        """
        connection = self._require()
        if self._is_start_in_doubt:
            await self.refresh()
            self._is_start_in_doubt = False
            if not is_startable(self._sighting):
                return  # it took effect, and may be over already: another one would be another run
        report = await self._read_report()
        async with self._looking:
            vmi = await granted()
            text = self._describe(vmi, report)
            try:
                guest = await connection.define(text)
                self._observation.begin()
                await guest.start(is_paused=vmi.spec.is_start_paused)
                log.info("domain started", extra=self._who)
            except WrongState:
                log.info("the domain runs already", extra=self._who)
            except (Disconnected, TimedOut) as error:
                self._is_start_in_doubt = True
                raise NoContact(str(error)) from error
            except HypervisorError as error:
                self._note_failed_start(error)
                raise StartRefused(str(error)) from error
        try:
            await self.refresh()
        except NoContact:
            self._publish(has_run=True)  # libvirt said so; the next one may not even know the domain
            raise
        if is_startable(self._sighting):  # or it would be started again at once, for ever
            undone = HypervisorError("libvirt answered that it has started the domain, but the domain is off")
            self._note_failed_start(undone)
            raise StartRefused(str(undone))

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
        now = self._tools.clock.monotonic()
        self._publish(resume_asked_at=now, resumes=count_next(self._sighting, now))
        await self._tell(lambda guest: guest.resume())

    async def plug_cpus(self, count: int) -> None:
        """Have the guest see so many virtual CPUs. NoContact."""
        await self._tell(lambda guest: guest.set_vcpus(count))
        self._observation.note(())  # its description is another one
        await self.refresh()
        if (seen := self._sighting.observed) is not None and seen.vcpus not in (0, count):
            raise NoContact(f"libvirt answered that the guest has {count} virtual CPUs, but it has {seen.vcpus}")

    async def plug_memory(self, requested_bytes: int) -> None:
        """Ask the guest to have so much memory beside what it began with. NoContact."""
        self._observation.note(())  # its description is another one, even if no answer comes
        await self._tell(lambda guest: guest.set_memory(requested_bytes))
        await self._look_anew()
        self._taking.begin()
        seen = self._sighting.observed
        if seen is not None and seen.requested_bytes != requested_bytes:
            raise NoContact("libvirt answered that the guest is asked to have other memory, but it is not")

    async def obey(self, verb: Verb, vmi: VirtualMachineInstance | None, *, thaw_after: int = 0) -> None:
        """Carry out what a person asks of the guest as it is now. VerbRefused, NoContact.

        vmi: as it was told last. thaw_after: seconds after which what was frozen is thawed by itself; 0: never.
        """
        await self.refresh()
        seen = self._sighting
        if is_migrating_or_stopped(vmi, seen):
            raise VerbRefused("VMI is migrating; try again when that is over")
        state, observed = seen.state, seen.observed
        if state is None or observed is None or not _is_up(state) or not is_own(self.launcher(), self._vmi_uid):
            raise VerbRefused("VMI is not running")
        held, has_agent = is_paused_by_user(vmi, seen), observed.is_agent_connected
        if verb == "pause" and held and vmi is not None and not is_user_pause_reported(vmi):
            return  # it was done for somebody who was told nothing of it yet, and is answered when it is told
        if refusal := refuse(verb, state, held=held, has_acpi=observed.has_acpi, has_agent=has_agent):
            raise VerbRefused(refusal)
        match verb:
            case "pause":
                await self._press(lambda guest: guest.pause())
                await self.refresh()  # or an I/O error that has come in between would have it resumed
                self._publish(is_paused_by_user=user_pause_after(True, self._sighting.state))
            case "unpause":
                if state.reason != "ioerror":  # that one goes on as every guest does that an I/O error has paused
                    await self._press(lambda guest: guest.resume())
                self._publish(is_paused_by_user=False)
            case "reset":
                await self._press(lambda guest: guest.reset())
            case "softreboot":
                press = partial(self._press, lambda guest: guest.reboot())
                await soft_reboot(self._agent, press if observed.has_acpi else None)
            case "freeze":
                await self._freeze.freeze(thaw_after)
            case "unfreeze":
                await self._freeze.thaw()
        await self.refresh()

    async def inquire(self, commands: Sequence[str]) -> Mapping[str, str]:
        """Ask the guest's agent; the answers by command. VerbRefused, NoContact."""
        self._require()
        if not is_own(self.launcher(), self._vmi_uid):
            raise VerbRefused("VMI is not running")
        try:
            return await self._agent.inquire(commands)
        except NoAgent as error:
            raise VerbRefused(str(error)) from error
        except HypervisorError as error:
            raise NoContact(str(error)) from error

    def expect_transfer(self, moving: MigrationState) -> None:
        """Take note that the guest is being sent from now on."""
        self._unwanted = asyncio.Event()
        self._publish(transfer=Transfer(moving.migration_uid), has_gone_on=False)

    async def transfer(self, vmi: VirtualMachineInstance, moving: MigrationState, writes: Writes) -> None:
        """Send the guest to its migration's target; what came of it is in the status. Nothing is raised."""
        why, has_moved, uid = "virt-handler is being stopped", False, moving.migration_uid

        def left() -> None:
            nonlocal has_moved
            has_moved = True
            self._publish(transfer=Transfer(uid, is_over=True, has_moved=True))

        try:
            guest = await self._require().guest(self._vmi_uid)
            if guest is None or not is_own(self.launcher(), self._vmi_uid):
                raise Failed("VMI is not running")
            held = is_paused_by_user(vmi, self._sighting)
            still = is_to_be_still(self._sighting)
            unwanted = self._unwanted
            order = TransferRequest(
                vmi, moving, self.pod.uid, guest, held, writes, is_still=still, left=left, unwanted=unwanted
            )
            await self._tools.send(order)
            has_moved = True
        except (Failed, NoContact, NodeError, HypervisorError, ApiError, OSError) as error:
            why = str(error)
        except Exception as error:
            log.exception("bug in a migration", extra=self._who)
            why = f"virt-handler failed by an error of its own: {type(error).__name__}"
        finally:
            log.info("migration over", extra={**self._who, "moved": has_moved, "because": "" if has_moved else why})
            try:
                await self.refresh()
            except NoContact as error:
                if not has_moved:  # what was seen before it was sent says nothing of where the guest is now
                    self._publish(is_connected=False, trouble=sanitize(str(error)))
            failure = "" if has_moved else sanitize(why)
            self._publish(transfer=Transfer(uid, is_over=True, has_moved=has_moved, reason=failure))

    async def abort_transfer(self) -> None:
        """Have libvirt give up the migration that is under way; what comes of it is in the status."""
        transfer = self._sighting.transfer
        if transfer is None or transfer.is_over:
            return
        self._publish(transfer=replace(transfer, abort_asked_at=self._tools.clock.monotonic()))
        self._unwanted.set()
        try:
            await self._press(lambda guest: guest.abort_job())
        except (VerbRefused, NoContact) as error:  # it has not begun, or is over: it is told again
            log.info("a migration is not given up", extra={**self._who, "error": sanitize(str(error))})

    async def refresh(self) -> None:
        """Ask libvirt what the domain does, and publish it. NoContact."""
        async with self._looking:
            connection = self._require()
            try:
                guest = await connection.guest(self._vmi_uid)
                state = None if guest is None else explain_crash(await guest.state(), self._cause)
                known = self._sighting.observed
                observed = None if guest is None else await self._observation.read(guest, known, self._who)
            except HypervisorError as error:
                raise NoContact(str(error)) from error
            if self._connection is connection:
                if state is not None and observed is None:
                    state = _UNREADABLE
                has_run = self._sighting.has_run or _is_up(state)
                held = user_pause_after(self._sighting.is_paused_by_user, state)
                self._publish(
                    has_run=has_run,
                    is_connected=True,
                    state=state,
                    observed=observed,
                    is_paused_by_user=held,
                    trouble="",
                )
                if (runs := state is not None and state.life.is_going_on) and not is_sending(self._sighting):
                    self._publish(has_gone_on=True)
                is_there = _is_up(state) and observed is not None and observed.is_agent_connected
                self._agent.look(guest if runs else None, is_connected=is_there)

    async def _look_anew(self) -> None:
        """Look, and read the description again, whatever has happened. NoContact."""
        self._observation.note(())
        await self.refresh()

    async def _give_capabilities(self) -> None:
        try:
            await self._tools.node.give_capabilities(self.pod.uid, with_kvm=has_kvm(self.pod))
        except NodeError as error:
            log.warning("start without capability cache", extra={**self._who, "error": str(error)})

    async def _follow_once(self) -> None:
        """Find the launcher; once it is granted the run connect, and publish what happens until the connection ends."""
        found = await self._tools.node.open_socket(self.pod.uid)
        try:
            self._publish(is_here=True)
            await self._admitted.wait()
            connection = await self._tools.connect(found.path)
            self._connection = connection
            self._sighting = replace(self._sighting, observed=None)  # read anew, once per connection
            self._observation.begin()
            self._connected_at = self._tools.clock.monotonic()
            log.log(self._level, "launcher connected", extra=self._who)
            beside = (self._agent.follow, self._freeze.follow, self._network.follow, self._taking.follow)
            aside = [asyncio.create_task(follow()) for follow in beside]
            try:
                await self._follow(connection)
            finally:
                for task in aside:
                    task.cancel()
                self._connection = None
                self._publish(is_connected=False)
                with suppress(HypervisorError):
                    await connection.close()
        finally:
            self._publish(is_here=False)
            found.close()

    async def _follow(self, connection: Connection) -> None:
        """Look at the domain whenever something happened, at last after a while without."""
        while True:
            if (pause := self._looks.next(self._tools.clock.monotonic())) > 0:
                await asyncio.sleep(pause)
            if happened := connection.events.drain():
                self._note(happened)
            if not any(isinstance(one, ConnectionClosed) for one in happened):
                await self.refresh()
                happened = await self._wait(connection)
                self._note(happened)
            for event in happened:
                if isinstance(event, ConnectionClosed):
                    log.log(self._level, "launcher disconnected", extra={**self._who, "because": event.reason})
                    return

    def _note(self, happened: Sequence[Event]) -> None:
        self._cause = cause_of_end(happened) or self._cause
        self._observation.note(happened)

    async def _wait(self, connection: Connection) -> list[Event]:
        """Wait for an event; none when it is time to look without."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._resync_pause()):
                return [await connection.events.get()]
        return []

    def _resync_pause(self) -> float:
        return resync_pause(self._tools.resync_seconds, self._tools.random())

    async def _read_report(self) -> bytes:
        try:
            return await self._tools.node.read_report(self.pod.uid)
        except NotThere as error:
            raise NoContact("the launcher has not reported yet") from error
        except NodeAway as error:
            raise NoContact(str(error)) from error
        except Refused as error:
            raise self._never(str(error)) from error
        except NodeError as error:
            raise StartRefused(f"cannot read the launcher's report: {error}") from error

    def _describe(self, vmi: VirtualMachineInstance, report: bytes) -> str:
        try:
            return describe_domain(vmi, self.pod, report, self._sighting.interface)
        except ValueError as error:
            raise self._never(str(error)) from error

    def _never(self, text: str) -> StartRefused:
        """Say that this domain can never be started."""
        self._publish(failure=Failure("InvalidDomain", abbreviate(text)))
        return StartRefused(text)

    async def _tell(self, say: Callable[[Guest], Awaitable[None]]) -> None:
        try:
            await self._press(say)
        except VerbRefused:
            await self.refresh()  # it has ended in the meantime

    async def _press(self, say: Callable[[Guest], Awaitable[None]]) -> None:
        """Say something to the guest. VerbRefused when it is in no state for it, NoContact."""
        connection = self._require()
        try:
            guest = await connection.guest(self._vmi_uid)
            if guest is None:
                raise VerbRefused("VMI is not running")
            await say(guest)
        except WrongState as error:
            raise VerbRefused(str(error)) from error
        except HypervisorError as error:
            raise NoContact(str(error)) from error

    def _note_failed_start(self, error: HypervisorError) -> None:
        is_final = isinstance(error, InvalidDomain)
        if is_final or self._is_patience_over():
            self._publish(failure=Failure("InvalidDomain" if is_final else "StartFailed", abbreviate(str(error))))

    def _is_patience_over(self) -> bool:
        self._failed_starts.append(self._tools.clock.monotonic())
        waited = self._failed_starts[-1] - self._failed_starts[0]
        return len(self._failed_starts) >= _START_ATTEMPTS and waited >= _START_PATIENCE_SECONDS

    def _require(self) -> Connection:
        if self._connection is None:
            raise NoContact("the launcher is not connected")
        return self._connection

    @property
    def _level(self) -> int:
        """How loudly to tell of a contact that comes or goes: of one that flaps not at all."""
        return logging.INFO if self._pauses.is_ordinary else logging.DEBUG

    @property
    def _who(self) -> dict[str, str]:
        return {"key": str(self.pod.vmi_key), "uid": self._vmi_uid, "pod": self.pod.metadata.name}

    def _hear(self, told: AgentState) -> None:
        self._freeze.note(told)
        self._publish(told=told)

    def _publish(self, **changes: object) -> None:
        after = replace(self._sighting, **changes)  # type: ignore[arg-type]
        if after != self._sighting:
            self._sighting = after
            self._changed()


def _is_up(state: State | None) -> bool:
    """Tell whether a guest runs; of a QEMU that is being started nobody knows yet whether there ever will be one."""
    return state is not None and state.life.is_up and not state.is_starting

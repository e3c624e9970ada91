# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A session's verbs, each carried out in a task of its own, one at a time: nobody waits for a launcher.

A reconciler asks for a verb and goes on; `launcher()` says what is being done and what came of the last one, and the
VMI's key is woken by the end. So a launcher that hangs for a minute costs its own VMI that minute, and no worker. A
verb begins at once or is refused: what was true when it was asked for is as true as it would be for the reconciler.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from controlplane.api.objects.migration_state import MigrationState
from controlplane.api.objects.pod import sanitize
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.engine.ports import Clock
from controlplane.links.handler import Verb
from controlplane.virt_handler.vmi.ports import Busy, Granted, NoContact, StartRefused, VerbRefused, Writes
from controlplane.virt_handler.vmi.world import Expected, FailedOperation, Launcher

log = logging.getLogger(__name__)


class Contact(Protocol):
    """What carries a verb out: StartRefused says why not, NoContact that nobody knows."""

    def launcher(self) -> Launcher: ...

    def expect(self, expected: Expected) -> None: ...

    def admit(self) -> None: ...

    async def prepare_network(self, vmi: VirtualMachineInstance) -> None: ...

    async def start(self, granted: Granted) -> None: ...

    async def shut_down(self) -> None: ...

    async def destroy(self) -> None: ...

    async def resume(self) -> None: ...

    async def plug_cpus(self, count: int) -> None: ...

    async def plug_memory(self, requested_bytes: int) -> None: ...

    async def obey(self, verb: Verb, vmi: VirtualMachineInstance | None, *, thaw_after: int) -> None: ...

    async def inquire(self, commands: Sequence[str]) -> Mapping[str, str]: ...

    def expect_transfer(self, moving: MigrationState) -> None: ...

    async def transfer(self, vmi: VirtualMachineInstance, moving: MigrationState, writes: Writes) -> None: ...

    async def abort_transfer(self) -> None: ...


class Verbs:
    """Implements vmi.ports.Session."""

    def __init__(
        self,
        contact: Contact,
        clock: Clock,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        changed: Callable[[], None],
        *,
        started: Callable[[float], None] = lambda _unused: None,
    ) -> None:
        """spawn runs a coroutine beside the caller's; started is told the seconds of each start (metrics)."""
        self._contact = contact
        self._clock = clock
        self._spawn = spawn
        self._changed = changed
        self._started = started
        self._doing = ""
        self._setback: FailedOperation | None = None

    @property
    def is_busy(self) -> bool:
        return self._doing != ""

    def launcher(self) -> Launcher:
        """Say what is known now."""
        return replace(self._contact.launcher(), operation=self._doing, failed_operation=self._setback)

    def expect(self, expected: Expected) -> None:
        """Keep what was read of its VMI before the hand-over."""
        self._contact.expect(expected)

    def admit(self) -> None:
        """Dial the launcher from now on."""
        self._contact.admit()

    def prepare_network(self, vmi: VirtualMachineInstance) -> None:
        """Begin to set the Pod's network up. NoContact when a verb is under way."""
        self._begin("prepare the network", lambda: self._contact.prepare_network(vmi))

    def start(self, granted: Granted) -> None:
        """Begin to define and start the domain, if it is granted then. NoContact when a verb is under way."""
        self._begin("start", lambda: self._timed_start(granted))

    def shut_down(self) -> None:
        """Begin to press the power button. NoContact when a verb is under way."""
        self._begin("shut down", self._contact.shut_down)

    def destroy(self) -> None:
        """Begin to end QEMU. NoContact when a verb is under way."""
        self._begin("destroy", self._contact.destroy)

    def resume(self) -> None:
        """Begin to let a paused guest go on. NoContact when a verb is under way."""
        self._begin("resume", self._contact.resume)

    def plug_cpus(self, count: int) -> None:
        """Begin to have the guest see so many virtual CPUs. NoContact when a verb is under way."""
        self._begin("plug CPUs", lambda: self._contact.plug_cpus(count))

    def plug_memory(self, requested_bytes: int) -> None:
        """Begin to ask the guest to have so much memory more. NoContact when a verb is under way."""
        self._begin("plug memory", lambda: self._contact.plug_memory(requested_bytes))

    def transfer(self, vmi: VirtualMachineInstance, moving: MigrationState, writes: Writes) -> None:
        """Begin to send the guest to its migration's target. It may last for hours: it is no verb that others wait for.

        NoContact while a verb is under way.
        """
        if self._doing:
            raise NoContact(f"cannot begin a migration: the launcher is busy with another verb ({self._doing})")
        self._contact.expect_transfer(moving)
        self._spawn(self._contact.transfer(vmi, moving, writes))

    def abort_transfer(self) -> None:
        """Have the migration given up that is under way."""
        self._spawn(self._contact.abort_transfer())

    async def obey(self, verb: Verb, vmi: VirtualMachineInstance | None, *, thaw_after: int = 0) -> None:
        """Carry out what a person asked for, and wait for the end of it. Busy, VerbRefused, NoContact.

        thaw_after: seconds after which what was frozen is thawed by itself; 0: never.

        Whoever waits may give up: the verb goes on. It is no step of the reconciler's, so its failure is not counted.
        """
        if self._doing:
            raise Busy(f"the launcher is busy with another verb ({self._doing}); try again in a moment")
        self._doing = verb
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._spawn(self._obey(verb, lambda: self._contact.obey(verb, vmi, thaw_after=thaw_after), ended))
        await asyncio.shield(ended)

    async def inquire(self, commands: Sequence[str]) -> Mapping[str, str]:
        """Ask the guest's agent, whatever verb is under way: nothing is changed by it. VerbRefused, NoContact."""
        return await self._contact.inquire(commands)

    async def _obey(self, verb: Verb, do: Callable[[], Coroutine[Any, Any, None]], ended: asyncio.Future[None]) -> None:
        raised: BaseException = NoContact("virt-handler is being stopped")
        try:
            await do()
            ended.set_result(None)
        except (VerbRefused, NoContact) as error:
            raised = error
        except Exception as error:
            log.exception("bug in a verb", extra={"verb": verb, "pod": self._contact.launcher().pod.metadata.name})
            raised = NoContact(f"virt-handler failed by an error of its own: {type(error).__name__}")
        finally:
            if not ended.done():
                ended.set_exception(raised)
                ended.exception()  # whoever asked may have gone
            self._doing = ""
            self._changed()

    def _begin(self, verb: str, do: Callable[[], Coroutine[Any, Any, None]]) -> None:
        if self._doing:
            raise NoContact(f"cannot {verb}: the launcher is busy with another verb ({self._doing})")
        self._doing = verb
        self._spawn(self._carry_out(verb, do))

    async def _carry_out(self, verb: str, do: Callable[[], Coroutine[Any, Any, None]]) -> None:
        came: FailedOperation | None = None
        try:
            await do()
        except StartRefused as error:
            came = self._setback_of(verb, str(error), is_refusal=True)
        except NoContact as error:
            came = self._setback_of(verb, str(error), is_refusal=False)
        except Exception as error:
            log.exception("bug in a verb", extra={"verb": verb, "pod": self._contact.launcher().pod.metadata.name})
            came = self._setback_of(verb, str(error), is_refusal=False)
        finally:
            self._doing, self._setback = "", came
            self._changed()

    def _setback_of(self, verb: str, message: str, *, is_refusal: bool) -> FailedOperation:
        extra = {"verb": verb, "pod": self._contact.launcher().pod.metadata.name, "error": sanitize(message)}
        log.warning("nothing came of a verb", extra=extra)
        count = 1 if self._setback is None else self._setback.count + 1
        return FailedOperation(sanitize(message), is_refusal=is_refusal, at=self._clock.monotonic(), count=count)

    async def _timed_start(self, granted: Granted) -> None:
        began = self._clock.monotonic()
        await self._contact.start(granted)
        self._started(self._clock.monotonic() - began)

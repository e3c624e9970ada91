# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What touches a node: a launcher's directory is a tenant's, and a hung launcher is nobody else's problem."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_REGISTRY = "controlplane/virt_handler/launchers/registry.py"
_CALLS = "controlplane/hypervisor/calls.py"
_CONNECTION = "controlplane/hypervisor/connection.py"
_EVENTS = "controlplane/hypervisor/events.py"
_WIRE = "controlplane/hypervisor/wire.py"
_RUNNING = "controlplane/hypervisor/running.py"
_OBSERVED = "controlplane/domain/observed.py"
_PACE = "controlplane/virt_handler/launchers/pace.py"
_SESSION = "controlplane/virt_handler/launchers/session.py"
_VERBS = "controlplane/virt_handler/launchers/verbs.py"
_GUEST = "controlplane/hypervisor/guest.py"
_BY_REGISTRY = ("tests/controlplane/virt_handler/launchers/test_registry.py",)
_BY_HYPERVISOR = ("tests/controlplane/hypervisor",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file=_EVENTS,
        line="(libvirt.VIR_DOMAIN_EVENT_CRASHED, libvirt.VIR_DOMAIN_EVENT_CRASHED_PANICKED)",
        without="(libvirt.VIR_DOMAIN_EVENT_CRASHED, detail)",
        because="A kernel that has another one loaded for its crash goes on: whatever ends it later is another cause.",
        tests=("tests/controlplane/hypervisor/test_events.py",),
    ),
    Guard(
        file=_EVENTS,
        line="is_end = action == libvirt.VIR_DOMAIN_EVENT_WATCHDOG_POWEROFF",
        without="is_end = True",
        because="A guest that its watchdog reset goes on: a crash of its QEMU hours later has another cause.",
        tests=("tests/controlplane/hypervisor/test_events.py",),
    ),
    Guard(
        file=_SESSION,
        line="explain_crash(await guest.state(), self._cause)",
        without="await guest.state()",
        because="A panic would be a QEMU that crashed or was killed.",
        tests=("tests/controlplane/virt_handler/launchers/test_session_look.py",),
    ),
    Guard(
        file=_REGISTRY,
        line="self._begin(group, session, after=task)",
        without="self._begin(group, session)",
        because="Two tasks would keep contact with one launcher, and the end of the first would drop the second's.",
        tests=_BY_REGISTRY,
    ),
    Guard(
        file=_SESSION,
        line="        if self._is_start_in_doubt:\n            await self.refresh()\n",
        without="        if False:\n            await self.refresh()\n",
        because="A start whose answer was lost may have taken effect, and be over: another one would be another run.",
        tests=("tests/controlplane/virt_handler/launchers/test_session_start.py",),
    ),
    Guard(
        file=_SESSION,
        line="            self._publish(has_run=True)  # libvirt said so; the next one may not even know the domain\n",
        without="",
        because="A guest that ended with its libvirtd before it was seen would be started again in the same run.",
        tests=("tests/controlplane/virt_handler/launchers/test_session_start.py",),
    ),
    Guard(
        file=_REGISTRY,
        line="        return self._is_following and self._pods.synced",
        without="        return self._is_following",
        because="While not all Pods are listed, none may be taken for lost.",
        tests=_BY_REGISTRY,
    ),
    Guard(
        file=_REGISTRY,
        line="        return self._is_following and self._pods.synced",
        without="        return self._pods.synced",
        because="Before the sessions are begun, none may be taken for lost.",
        tests=_BY_REGISTRY,
    ),
    Guard(
        file=_REGISTRY,
        line="        except NodeError as error:\n            raise CannotLook(",
        without=(
            "        except NodeError as error:\n"
            "            return Traces(has_directory=False, processes=0)\n"
            "            raise CannotLook("
        ),
        because="A node that cannot be looked at has not been seen to be clean.",
        tests=_BY_REGISTRY,
    ),
    Guard(
        file=_REGISTRY,
        line=" and not self._verbs[pod_uid].is_busy:",
        without=":",
        because="A Pod that comes back while a verb is carried out in it has that verb begun beside itself.",
        tests=_BY_REGISTRY,
    ),
    Guard(
        file=_REGISTRY,
        line="            self._drop_if_over(pod.uid)\n            self._changed(key)\n",
        without="            self._changed(key)\n",
        because="Of each Pod that went during a verb something is kept for good.",
        tests=_BY_REGISTRY,
    ),
    Guard(
        file=_REGISTRY,
        line="            if self._tasks.get(uid) is task:\n",
        without="            if uid in self._tasks:\n",
        because="A launcher that came back is forgotten with the contact that it had before.",
        tests=_BY_REGISTRY,
    ),
    Guard(
        file=_CALLS,
        line="        async with asyncio.timeout(deadline_seconds):",
        without="        if True:",
        because="A hung libvirtd must not hold its caller for ever.",
        tests=_BY_HYPERVISOR,
        may_hang=True,
    ),
    Guard(
        file=_CALLS,
        line="        self._is_given_up = True\n        self._wire.cut(because)\n",
        without="        self._is_given_up = True\n",
        because="A thread that waits for a launcher which never answers would be there for ever.",
        tests=_BY_HYPERVISOR,
        may_hang=True,
    ),
    Guard(
        file=_CALLS,
        line="            interrupt(self._thread.native_id or 0)\n",
        without="",
        because="A launcher with a full queue of callers would keep a thread for each attempt.",
        tests=_BY_HYPERVISOR,
    ),
    Guard(
        file=_CALLS,
        line='            work.give_up("nobody waits for it any more")\n',
        without="            pass\n",
        because="A connection whose opening was cancelled would wait for its launcher as long as that likes.",
        tests=_BY_HYPERVISOR,
    ),
    Guard(
        file=_CONNECTION,
        line="        self._wire.retire(CLOSE_SECONDS / 2)\n",
        without="",
        because="The client library deadlocks or crashes when a connection is freed under a call of another thread.",
        tests=_BY_HYPERVISOR,
    ),
    Guard(
        file=_CONNECTION,
        line="            guest.let_go()\n",
        without="            pass\n",
        because="A domain that somebody keeps would keep its connection, and say goodbye on the event loop.",
        tests=_BY_HYPERVISOR,
    ),
    Guard(
        file=_EVENTS,
        line="        with suppress(*FAILURES):\n            connection.domainEventDeregisterAny(one)",
        without=(
            "        try:\n"
            "            connection.domainEventDeregisterAny(one)\n"
            "        except libvirt.libvirtError:\n"
            "            return"
        ),
        because="Each subscription that is not taken back keeps its dead connection for good.",
        tests=_BY_HYPERVISOR,
    ),
    Guard(
        file=_RUNNING,
        line="            self._wire.cut(share.TOO_MUCH)",
        without="            pass",
        because="A launcher that floods us with events would have the event loop for itself.",
        tests=_BY_HYPERVISOR,
    ),
    Guard(
        file=_WIRE,
        line="            if self.because:  # it was given up while it dialled\n                self._shut_down()\n",
        without="",
        because="A connection that is made after it was given up would stay.",
        tests=("tests/controlplane/hypervisor/test_wire.py",),
    ),
    Guard(
        file=_OBSERVED,
        line="        if self._elements > _ELEMENTS_LIMIT or len(self._path) >= _DEPTH_LIMIT:\n",
        without="        if False:\n",
        because="What a tenant writes must not cost us as much as it likes.",
        tests=("tests/controlplane/domain/test_observed.py",),
    ),
    Guard(
        file=_PACE,
        line="1 if good_for >= STEADY_SECONDS else self.failures + 1",
        without="1 if good_for > 0 else self.failures + 1",
        because="A launcher that answers once and breaks off would be called hundreds of times a second.",
        tests=("tests/controlplane/virt_handler/launchers/test_pace.py",),
    ),
    Guard(
        file="controlplane/virt_handler/launchers/observation.py",
        line="        if self._is_unreadable or (known is not None and not self._is_stale):",
        without="        if known is not None and not self._is_stale:",
        because="A description that cannot be read must not be read at every event.",
        tests=("tests/controlplane/virt_handler/launchers/test_session_look.py",),
    ),
    Guard(
        file=_SESSION,
        line="            if self._connection is connection:\n",
        without="            if True:\n",
        because="A launcher whose connection was lost during a look must not count as connected.",
        tests=("tests/controlplane/virt_handler/launchers/test_session_look.py",),
    ),
    Guard(
        file=_SESSION,
        line="            self._sighting = replace(self._sighting, observed=None)  # read anew, once per connection\n",
        without="",
        because="A domain of another identity must not be taken for ours because the one before it was.",
        tests=("tests/controlplane/virt_handler/launchers/test_session_look.py",),
    ),
    Guard(
        file=_SESSION,
        line="            self._publish(is_here=False)\n            found",
        without="            found",
        because="A launcher whose socket is gone must not have its network set up again and again.",
        tests=("tests/controlplane/virt_handler/launchers/test_session_look.py",),
    ),
    Guard(
        file=_SESSION,
        line="        if is_startable(self._sighting):",
        without="        if False:",
        because="A launcher that answers a start and does nothing would be started without a pause, for ever.",
        tests=("tests/controlplane/virt_handler/launchers/test_session_start.py",),
    ),
    Guard(
        file=_VERBS,
        line='        if self._doing:\n            raise NoContact(f"cannot {verb}',
        without='        if False:\n            raise NoContact(f"cannot {verb}',
        because="Two verbs at once: a start and the end of the same guest.",
        tests=("tests/controlplane/virt_handler/launchers/test_verbs.py",),
    ),
    Guard(
        file=_EVENTS,
        line="        if self._queue.full():\n            self._queue.get_nowait()\n",
        without="",
        because="A flood of events must not fill the memory, nor break its reader.",
        tests=_BY_HYPERVISOR,
    ),
    Guard(
        file=_CONNECTION,
        line='    if not path.startswith("/") or set(path) & set("?#&%; ") or not path.isprintable():',
        without='    if not path.startswith("/"):',
        because="A path must not become another URI.",
        tests=_BY_HYPERVISOR,
    ),
    Guard(
        file=_GUEST,
        line='    return State(life, "unknown")',
        without='    return State(life, "shutdown")',
        because="A reason that nobody knows must not be taken for an orderly end.",
        tests=_BY_HYPERVISOR,
    ),
    Guard(
        file=_SESSION,
        line="has_run = self._sighting.has_run or _is_up(state)",
        without="has_run = _is_up(state)",
        because="A guest that ran is started again in its Pod when libvirt has forgotten that it ran.",
        tests=("tests/controlplane/virt_handler/launchers/test_session_look.py",),
    ),
    Guard(
        file=_SESSION,
        line="guest.kill() if again >= 2 else guest.destroy()",
        without="guest.destroy()",
        because="A QEMU that does not hear would be there for ever.",
        tests=("tests/controlplane/virt_handler/launchers/test_session_verbs.py",),
    ),
    Guard(
        file=_REGISTRY,
        line="session.is_over and not session.launcher().sighting.is_connected:",
        without="session.is_over:",
        because="Who hangs up when a Pod is gone cannot end the guest in it.",
        tests=_BY_REGISTRY,
    ),
)

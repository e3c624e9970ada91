# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the reconciler observes, remembers and applies, on a fake node."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from controlplane.api.objects.decode import encode
from controlplane.api.objects.meta import Condition
from controlplane.api.objects.resources import Key
from controlplane.engine.errors import Conflict, Forbidden, Unavailable
from controlplane.engine.ports import Json
from controlplane.virt_handler.launchers.session import operation_name
from controlplane.virt_handler.vmi.events import VmiEvent
from controlplane.virt_handler.vmi.ports import NO_INPUTS, CannotLook, Granted, NoContact, OperationInputs
from controlplane.virt_handler.vmi.reconciler import VmiReconciler
from controlplane.virt_handler.vmi.world import (
    Destroy,
    DestroyOrphan,
    DestroyRemoved,
    Expected,
    Launcher,
    LookForLauncher,
    NodeTrouble,
    Operation,
    ReadVmi,
    ShutDown,
    StartDomain,
    Traces,
    World,
)
from tests.controlplane.virt_handler.builders import NODE, OTHER, POD_UID, VMI_UID, a_launcher, seen, vmi_object
from tests.controlplane.virt_handler.fakes import FakeApi, FakeCache, FakeClock

KEY = Key("default", "web")
CRASHED = VmiEvent("Stopped", "The VirtualMachineInstance crashed.", is_warning=True)
LOOK = LookForLauncher(POD_UID, "test")


@dataclass
class FakeSession:
    """A session that records its operations."""

    known: Launcher
    asked: list[str] = field(default_factory=list)
    granted: Granted | None = None

    def launcher(self) -> Launcher:
        return self.known

    def expect(self, expected: Expected) -> None:
        self.asked.append("expect nothing" if expected.vmi is None else "expect it")

    def perform(self, action: Operation, inputs: OperationInputs = NO_INPUTS) -> None:
        self.asked.append(operation_name(action))
        self.granted = inputs.authorize_start


@dataclass
class FakeSessions:
    """Launchers with these states."""

    launchers: tuple[Launcher, ...] = ()
    synced: bool = True
    node_trouble: NodeTrouble | None = None
    traces: Traces | None = field(default_factory=lambda: Traces(has_directory=True, processes=0))

    contact: FakeSession | None = None

    def session(self, pod_uid: str) -> Any:
        return self.contact

    def launchers_of(self, vmi_uid: str) -> tuple[Launcher, ...]:
        return self.launchers

    def launchers_named(self, key: Key) -> tuple[Launcher, ...]:
        return self.launchers

    async def find_traces(self, pod_uid: str) -> Traces:
        if self.traces is None:
            raise CannotLook("no way in")
        return self.traces


class Node:
    def __init__(self) -> None:
        self.vmis, self.sessions, self.clock = FakeCache(), FakeSessions(), FakeClock()
        self.events: list[VmiEvent] = []
        self.api = FakeApi(self.vmis)
        self.start_blocked_reason = ""
        self.reconciler = VmiReconciler(
            NODE,
            self.vmis,
            self.sessions,
            self.api,
            self.clock,
            record_event=self._record_event,
            start_blocked_reason=lambda: self.start_blocked_reason,
        )

    def world(self) -> World:
        world = self.reconciler.observe(KEY)
        assert world is not None
        return world

    async def _record_event(self, about: Json, event: VmiEvent) -> None:
        self.events.append(event)


@pytest.fixture
def node() -> Node:
    return Node()


@pytest.mark.parametrize(
    "body", [vmi_object("Scheduling"), vmi_object("Running", node=OTHER)], ids=["not handed over", "another node's"]
)
def test_a_vmi_of_another_node_is_ignored(node: Node, body: dict[str, Any]) -> None:
    """The cache also contains results of own reads and writes, whatever the watch selects."""
    node.vmis.put(body)
    node.sessions.launchers = (a_launcher(),)
    assert node.world().vmi is None


def test_observe_fails_while_the_vmi_cache_is_incomplete(node: Node) -> None:
    node.vmis.put(vmi_object("Running"))
    node.vmis.synced = False
    with pytest.raises(
        Unavailable, match="cannot judge VirtualMachineInstance default/web: the cache is not synced yet"
    ):
        node.reconciler.observe(KEY)


def test_a_world_shows_what_is_known_of_pods_and_virt_node(node: Node) -> None:
    node.vmis.put(vmi_object("Running"))
    assert (node.world().are_launchers_known, node.world().node_trouble) == (True, None)
    node.sessions.synced, node.sessions.node_trouble = False, NodeTrouble("not there", since=990.0)
    assert (node.world().are_launchers_known, node.world().node_trouble) == (False, node.sessions.node_trouble)


def test_a_grace_period_begins_when_the_deletion_is_first_observed(node: Node) -> None:
    """Otherwise each pass would start it again, and a deaf guest would never be ended."""
    node.vmis.put(vmi_object("Running", deleting=True))
    first = node.world().deleting_since
    node.clock.seconds += 10
    assert node.world().deleting_since == first == node.clock.seconds - 10


def test_a_grace_period_continues_while_its_vmi_is_not_listed(node: Node) -> None:
    """A list may miss the VMI for a moment."""
    node.vmis.put(vmi_object("Running", deleting=True))
    node.sessions.launchers = (a_launcher(),)
    first = node.world().deleting_since
    node.vmis.remove(KEY)
    assert node.world().orphaned_since is not None
    node.clock.seconds += 10
    node.vmis.put(vmi_object("Running", deleting=True))
    assert node.world().deleting_since == first


def test_a_new_vmi_of_the_same_name_starts_with_fresh_state(node: Node) -> None:
    """A VMI may be replaced between two lists, without a deletion event. The state of each one was kept."""
    for number in range(5):
        body = vmi_object("WaitingForSync", deleting=True)
        body["metadata"]["uid"] = f"number {number}"
        node.clock.seconds += 10
        node.vmis.put(body)
        assert node.world().deleting_since == node.clock.seconds
        assert len(node.reconciler.controller_state) == 1


def test_the_state_of_a_removed_vmi_is_forgotten(node: Node) -> None:
    node.vmis.put(vmi_object("Running", deleting=True))
    assert node.world().deleting_since is not None
    node.sessions.launchers = (a_launcher(),)
    node.vmis.remove(KEY)
    assert node.world().orphaned_since is not None
    assert len(node.reconciler.controller_state) == 1
    node.sessions.launchers = ()
    assert node.reconciler.observe(KEY) is None
    assert len(node.reconciler.controller_state) == 0


def test_the_time_of_an_orphan_counts_from_the_first_pass(node: Node) -> None:
    node.sessions.launchers = (a_launcher(),)
    first = node.world().orphaned_since
    node.clock.seconds += 40
    assert node.world().orphaned_since == first == node.clock.seconds - 40


def test_an_orphans_minute_starts_again_after_its_vmi_was_listed(node: Node) -> None:
    """The delays of a lagging watch must not add up to the minute after which the guest is ended."""
    node.sessions.launchers = (a_launcher(),)
    for _unused in range(3):
        assert node.world().orphaned_since == node.clock.seconds
        node.clock.seconds += 40
        node.vmis.put(vmi_object("Running"))
        assert node.world().vmi is not None
        node.vmis.remove(KEY)


async def test_searches_for_traces_are_counted(node: Node) -> None:
    node.vmis.put(vmi_object("Running"))
    for count in (1, 2):
        await node.reconciler.apply(node.world(), LOOK)
        look = node.world().look
        assert look is not None
        assert (look.count, look.traces.has_directory) == (count, True)


async def test_the_result_of_a_search_is_forgotten_when_the_pod_is_listed_again(node: Node) -> None:
    node.vmis.put(vmi_object("Running"))
    node.sessions.traces = Traces(has_directory=False, processes=0)
    await node.reconciler.apply(node.world(), LOOK)
    node.sessions.launchers = (a_launcher(),)
    assert node.world().look is None
    node.sessions.launchers = ()
    assert node.world().look is None


async def test_a_failed_search_has_no_result(node: Node) -> None:
    node.vmis.put(vmi_object("Running"))
    node.sessions.traces = None
    with pytest.raises(Unavailable, match="no way in"):
        await node.reconciler.apply(node.world(), LOOK)
    assert node.world().look is None


def test_an_unknown_phase_is_logged_once(node: Node, caplog: pytest.LogCaptureFixture) -> None:
    node.vmis.put(vmi_object("WaitingForSync"))
    with caplog.at_level(logging.WARNING):
        node.world()
        node.world()
    assert [record.message for record in caplog.records] == ["VMI skipped: this version does not know its phase"]


@pytest.mark.parametrize(
    ("uid", "ended"), [(None, ["destroy"]), ("another", ["destroy"]), (POD_UID, [])], ids=["gone", "another", "there"]
)
async def test_a_guest_is_ended_with_its_pod_only_if_the_api_server_confirms_the_removal(
    node: Node, uid: str | None, ended: list[str]
) -> None:
    """A Pod that lost its label is not listed any more, but still exists."""
    launcher = a_launcher(gone=True)
    node.sessions.contact = FakeSession(launcher)
    if uid is not None:
        meta = launcher.pod.metadata
        node.api.objects[Key(meta.namespace, meta.name)] = {"metadata": {"name": meta.name, "uid": uid}}
    node.api.store(vmi_object("Running"))
    await node.reconciler.apply(node.world(), DestroyRemoved(POD_UID, "test"))
    assert node.sessions.contact.asked == ended


NEWER: dict[str, tuple[dict[str, Any], str]] = {
    "still granted": ({}, ""),
    "deleted": ({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, "the VMI is being deleted"),
    "granted to another Pod": ({"status": {"activePods": {"another": NODE}}}, "granted to another Pod"),
    "over": ({"status": {"phase": "Failed"}}, "its phase is Failed"),
    "another VMI by now": ({"metadata": {"uid": "another"}}, "the VMI was replaced by another one"),
}


async def begin_start(node: Node) -> Granted:
    """Begin a start; return its authorization."""
    session = node.sessions.contact = FakeSession(a_launcher())
    node.api.store(vmi_object())
    assert node.world().start_blocked_reason == ""
    await node.reconciler.apply(node.world(), StartDomain(POD_UID, "test"))
    assert session.asked == ["start domain"]
    assert session.granted is not None
    return session.granted


@pytest.mark.parametrize(("change", "refusal"), NEWER.values(), ids=NEWER.keys())
async def test_a_start_is_authorized_by_the_current_vmi(node: Node, change: dict[str, Any], refusal: str) -> None:
    """The cache lags, and the start may wait. The grant may be withdrawn meanwhile."""
    authorize = await begin_start(node)
    node.api.is_lagging = True
    newer = vmi_object()
    for part, values in change.items():
        newer[part] |= values
    node.api.store(newer)
    if refusal:
        with pytest.raises(NoContact, match=refusal):
            await authorize()
    else:
        assert (await authorize()).metadata.uid == VMI_UID


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("no API server", "cannot read whether the start is granted: the API server is away"),
        ("undecodable", "cannot read whether the start is granted"),
        ("recovery", "the start has to wait: guests are being ended"),
    ],
)
async def test_a_start_waits_if_it_cannot_be_authorized_now(node: Node, fault: str, message: str) -> None:
    authorize = await begin_start(node)
    match fault:
        case "no API server":
            node.api.error = Unavailable("the API server is away")
        case "undecodable":
            node.api.objects[KEY] |= {"spec": "nonsense"}
        case "recovery":
            node.start_blocked_reason = "guests are being ended"
            assert node.world().start_blocked_reason == "guests are being ended"
    with pytest.raises(NoContact, match=message):
        await authorize()


@pytest.mark.parametrize(
    ("uid", "asked"), [(None, ["destroy"]), ("another", ["destroy"]), (VMI_UID, [])], ids=["gone", "another", "there"]
)
async def test_an_orphan_is_ended_only_if_the_api_server_confirms_it(
    node: Node, uid: str | None, asked: list[str]
) -> None:
    node.sessions.launchers = (a_launcher(),)
    node.sessions.contact = FakeSession(a_launcher())
    world = node.world()
    if uid is not None:
        body = vmi_object("Running", node=OTHER)
        body["metadata"]["uid"] = uid
        node.api.store(body)
    await node.reconciler.apply(world, DestroyOrphan(POD_UID, VMI_UID, "test"))
    assert node.sessions.contact.asked == asked


@pytest.mark.parametrize(("uid", "asked"), [(VMI_UID, "expect it"), ("another", "expect nothing")])
async def test_a_pod_expects_the_vmi_with_its_owners_uid(node: Node, uid: str, asked: str) -> None:
    node.sessions.launchers = (a_launcher(),)
    node.sessions.contact = FakeSession(a_launcher())
    world = node.world()
    body = vmi_object("Scheduling")
    body["metadata"]["uid"] = uid
    node.api.store(body)
    await node.reconciler.apply(world, ReadVmi(POD_UID, "test"))
    assert node.sessions.contact.asked == [asked]


async def test_a_status_is_written_only_on_the_observed_version(node: Node) -> None:
    node.api.store(vmi_object())
    world = node.world()
    assert world.vmi is not None
    status = msgspec.structs.replace(world.vmi.status, phase="Running")
    await node.reconciler.write_status(world, status)
    assert len(node.api.patches) == 1
    with pytest.raises(Conflict):
        await node.reconciler.write_status(world, status)


ENDS: dict[str, tuple[str, str, tuple[VmiEvent, ...]]] = {
    "runs": ("Running", "", (VmiEvent("Started", "VirtualMachineInstance started."),)),
    "shut down": ("Succeeded", "", (VmiEvent("Stopped", "The VirtualMachineInstance was shut down."),)),
    "crashed": ("Failed", "GuestCrashed", (CRASHED,)),
    "lost": ("Unknown", "", ()),
    "unchanged": ("Scheduled", "another", ()),
}


@pytest.mark.parametrize(("phase", "reason", "events"), ENDS.values(), ids=ENDS)
async def test_only_a_new_phase_has_an_event(node: Node, phase: str, reason: str, events: tuple[VmiEvent, ...]) -> None:
    node.api.store(vmi_object())
    world = node.world()
    assert world.vmi is not None
    await node.reconciler.write_status(world, msgspec.structs.replace(world.vmi.status, phase=phase, reason=reason))
    assert (len(node.api.patches), tuple(node.events)) == (1, events)


async def test_a_panic_has_its_own_event_before_the_end(node: Node) -> None:
    node.api.store(vmi_object("Running"))
    world = node.world()
    assert world.vmi is not None
    status = msgspec.structs.replace(world.vmi.status, phase="Failed", reason="GuestPanicked")
    await node.reconciler.write_status(world, status)
    assert [(event.reason, event.is_warning) for event in node.events] == [("GuestPanicked", True), ("Stopped", True)]


async def test_a_guest_that_an_io_error_pauses_has_a_warning_for_each_pause(node: Node) -> None:
    """Upstream's word for it: alerts and tests look for IOerror."""
    running, lasting = vmi_object("Running"), a_paused("PausedIOError", "2026-01-01T00:00:00Z")
    recorded = []
    for before, after in (
        ((), (lasting,)),
        ((lasting,), (lasting,)),
        ((lasting,), ()),
        ((), (a_paused("PausedIOError", "2026-01-01T00:10:00Z"),)),
        ((), (a_paused("PausedByUser", "2026-01-01T00:20:00Z"),)),
    ):
        node.api.store(
            {**running, "status": {**running["status"], "conditions": [encode(condition) for condition in before]}}
        )
        world = node.world()
        assert world.vmi is not None
        await node.reconciler.write_status(world, msgspec.structs.replace(world.vmi.status, conditions=after))
        recorded.append([(event.reason, event.is_warning, event.once) for event in node.events])
        node.events.clear()
    first, second = (("IOerror", True, f"2026-01-01T00:{minute}:00Z") for minute in ("00", "10"))
    assert recorded == [[first], [], [], [second], []]


def a_paused(reason: str, since: str) -> Condition:
    return Condition(type="Paused", status="True", reason=reason, message="it is", last_transition_time=since)


async def test_each_way_to_end_a_guest_has_one_event(node: Node) -> None:
    node.vmis.put(vmi_object("Running", deleting=True))
    node.sessions.launchers = (a_launcher(seen()),)
    node.sessions.contact = FakeSession(a_launcher(seen()))
    for _unused in range(2):
        await node.reconciler.apply(node.world(), ShutDown(POD_UID, because="its VMI is deleted"))
        await node.reconciler.apply(node.world(), Destroy(POD_UID, because="its grace period is over"))

    assert node.sessions.contact.asked == ["shut down", "destroy"] * 2
    assert [(event.reason, event.message) for event in node.events] == [
        ("ShuttingDown", "Signaled Graceful Shutdown: its VMI is deleted"),
        ("Deleted", "Signaled Deletion: its grace period is over"),
    ]


async def test_a_failed_event_does_not_prevent_the_end(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    async def tell(*_unused: object) -> None:
        raise Forbidden("no Events")

    node.vmis.put(vmi_object("Running", deleting=True))
    node.sessions.launchers = (a_launcher(seen()),)
    node.sessions.contact = FakeSession(a_launcher(seen()))
    monkeypatch.setattr(node.reconciler, "_record_event", tell)
    await node.reconciler.apply(node.world(), ShutDown(POD_UID, because="its VMI is deleted"))
    assert node.sessions.contact.asked == ["shut down"]

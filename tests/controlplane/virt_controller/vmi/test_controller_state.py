# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller state of a VMI, and how long it is kept."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from controlplane.api.objects.pod import MESSAGE_LIMIT, Pod
from controlplane.api.objects.resources import Key
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.virt_controller.vmi.controller_state import (
    EVENT_HOLD_SECONDS,
    EVENT_REASONS,
    ControllerState,
    VmiState,
    pod_lookup,
)
from tests.controlplane.virt_controller.builders import POD_UID, a_pod, a_running_pod, a_vmi

VMI = Key("default", "web")
FIRST = a_vmi("Scheduling", attempt=1)
SECOND = a_vmi("Scheduling", attempt=2)
GRANTED = a_vmi("Running", attempt=1, activePods={POD_UID: "node-1"})
FOREIGN = Key("default", "somebody-elses")
NODE: dict[str, Any] = {"metadata": {"name": "node-1", "resourceVersion": "7"}}
OFF = {**NODE, "spec": {"taints": [{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}]}}


def key(pod: Pod) -> Key:
    return Key(pod.metadata.namespace, pod.metadata.name)


def raw(value: Any) -> bytes:
    return msgspec.json.encode(value)


def an_event(
    reason: str = "FailedMount", *, of: Pod | None = None, message: str = "no such Secret", uid: str = POD_UID
) -> bytes:
    about = {"kind": "Pod", "namespace": "default", "name": (of or a_pod()).metadata.name, "uid": uid}
    return raw({"metadata": {"namespace": "default"}, "involvedObject": about, "reason": reason, "message": message})


def with_uid(vmi: VirtualMachineInstance, uid: str) -> VirtualMachineInstance:
    return msgspec.structs.replace(vmi, metadata=msgspec.structs.replace(vmi.metadata, uid=uid))


@pytest.fixture
def states() -> ControllerState:
    return ControllerState()


# Pods


@pytest.mark.parametrize(
    ("observed", "begun"),
    [([], 0), ([1], 1), ([2], 2), ([1, 2], 2), ([2, 1], 2)],
    ids=["none", "the former", "the current", "both", "both, the later one first"],
)
def test_the_latest_attempt_that_had_a_pod_is_remembered(
    states: ControllerState, observed: list[int], begun: int
) -> None:
    for attempt in observed:
        states.note_pods(SECOND, [a_pod(attempt=attempt)])
    state = states.note_pods(SECOND, [])
    assert [state.was_begun(attempt) for attempt in (0, 1, 2, 3)] == [begun >= 1, begun >= 1, begun >= 2, False]


def test_a_pods_key_enqueues_its_vmi_before_and_after_the_pod_exists(states: ControllerState) -> None:
    states.note_pods(FIRST, [])
    assert states.vmi_of(key(a_pod())) == VMI
    assert states.vmi_of(FOREIGN) is None


def test_a_pod_with_any_name_enqueues_the_vmi_while_it_belongs_to_it(states: ControllerState) -> None:
    odd = a_pod(attempt=9)
    states.note_pods(FIRST, [odd])
    assert states.vmi_of(key(odd)) == VMI
    states.note_pods(FIRST, [])
    assert states.vmi_of(key(odd)) is None


@pytest.mark.parametrize("is_new", [False, True], ids=["it is gone", "a new VMI has its name"])
def test_the_state_of_a_former_vmi_is_forgotten(states: ControllerState, is_new: bool) -> None:
    states.note_pods(FIRST, [a_pod()])
    if not is_new:
        states.forget(VMI)
    assert not states.of(with_uid(FIRST, "dddddddd-0000") if is_new else FIRST).was_begun(1)
    assert states.vmi_of(key(a_pod())) is None


@pytest.mark.parametrize(
    ("vmi", "begun"),
    [
        (a_vmi("Scheduling", attempt=1, deleting=True), 0),
        (a_vmi("Scheduling", attempt=1, activePods={"u": "node-1"}), 0),
        (SECOND, 0),
        (FIRST, 1),
    ],
    ids=["deleted", "another grant", "another attempt", "its Pod was created since"],
)
def test_a_confirmed_absence_counts_for_no_other_lookup(vmi: VirtualMachineInstance, begun: int) -> None:
    assert pod_lookup(vmi, VmiState("u", begun=begun)) != pod_lookup(FIRST, VmiState("u"))
    assert pod_lookup(FIRST, VmiState("u")) == pod_lookup(FIRST, VmiState("u"))


# Events about a Pod that does not start


@pytest.mark.parametrize("reason", ["FailedMount", "FailedMapVolume", "FailedAttachVolume", "FailedCreatePodSandBox"])
def test_events_about_a_pod_are_kept(states: ControllerState, reason: str) -> None:
    state = states.note_pods(FIRST, [a_pod()])
    assert states.note_event(an_event(reason), 0.0) == VMI
    assert state.event_troubles[POD_UID].reason == reason
    assert reason in EVENT_REASONS


@pytest.mark.parametrize(
    "event",
    [
        an_event("Scheduled"),
        an_event(uid="another"),
        an_event(of=a_pod(attempt=9)),
        b"{",
        b'{"involvedObject": 7}',
        b"[" * 100_000,
    ],
    ids=["a reason that the status has", "a former Pod of the name", "another Pod", "no JSON", "malformed", "nested"],
)
def test_other_events_are_ignored(states: ControllerState, event: bytes) -> None:
    state = states.note_pods(FIRST, [a_pod()])
    assert states.note_event(event, 0.0) is None
    assert state.event_troubles == {}


def test_long_event_messages_are_cut(states: ControllerState) -> None:
    state = states.note_pods(FIRST, [a_pod()])
    states.note_event(an_event(message="no\x1b " * 100_000), 0.0)
    message = state.event_troubles[POD_UID].message
    assert len(message) <= MESSAGE_LIMIT
    assert message.isprintable()


def test_the_first_event_may_come_before_the_pod(states: ControllerState) -> None:
    states.note_pods(FIRST, [])
    assert states.note_event(an_event(), 0.0) == VMI


def test_an_event_is_kept_for_its_time_before_another_replaces_it(states: ControllerState) -> None:
    """The time counts from its last repetition. A repetition enqueues nothing."""
    state = states.note_pods(FIRST, [a_pod()])
    states.note_event(an_event(), -100.0)
    assert states.note_event(an_event(), 0.0) is None
    assert states.note_event(an_event(message="another"), EVENT_HOLD_SECONDS - 1) is None
    assert state.event_troubles[POD_UID].message == "no such Secret"
    assert states.note_event(an_event(message="another"), EVENT_HOLD_SECONDS) == VMI
    assert state.event_troubles[POD_UID].message == "another"


def test_an_event_of_the_next_pod_replaces_those_of_the_former(states: ControllerState) -> None:
    states.note_pods(FIRST, [a_pod()])
    states.note_event(an_event(), 0.0)
    state = states.note_pods(SECOND, [a_pod(attempt=2, uid="second")])
    assert states.note_event(an_event(of=a_pod(attempt=2), uid="second"), 1.0) == VMI
    assert set(state.event_troubles) == {"second"}


# the last state of a granted Pod


def ended(**options: Any) -> bytes:
    return raw(a_pod("Failed", node="node-1", **options))


BESIDE_SIDECAR = raw(a_pod("Running", compute={"terminated": {"exitCode": 0}}))


@pytest.mark.parametrize(
    ("name", "before", "after", "is_kept"),
    [
        (key(a_pod()), ended(), None, True),
        (key(a_pod()), BESIDE_SIDECAR, None, True),
        (key(a_pod()), raw(a_running_pod()), None, False),
        (key(a_pod()), ended(), ended(), False),
        (key(a_pod()), None, None, False),
        (key(a_pod()), None, ended(), False),
        (key(a_pod()), ended(uid="another"), None, False),
        (FOREIGN, ended(), None, False),
    ],
    ids=[
        "it had ended",
        "it had ended beside a sidecar",
        "it ran",
        "it exists",
        "it was never seen",
        "it was added",
        "it was not granted",
        "it is foreign",
    ],
)
def test_the_last_state_of_a_granted_pod_is_kept_when_it_is_removed(
    states: ControllerState, name: Key, before: bytes | None, after: bytes | None, is_kept: bool
) -> None:
    state = states.note_pods(GRANTED, [a_running_pod()])
    states.note_removal(name, before, after)
    assert set(state.last_states) == ({POD_UID} if is_kept else set())


def test_the_last_state_of_a_migrations_target_is_kept(states: ControllerState) -> None:
    """It may get the run, and then its end is the run's."""
    target = a_pod("Failed", attempt=9, uid="target", node="node-2")
    migration = {"targetPodUID": "target", "targetPod": target.metadata.name}
    vmi = a_vmi("Running", attempt=1, activePods={POD_UID: "node-1"}, migrationState=migration)
    state = states.note_pods(vmi, [a_running_pod()])
    states.note_removal(key(target), raw(target), None)
    assert set(state.last_states) == {"target"}


# the node


def test_a_node_missing_in_the_cache_is_unseen_until_the_api_server_confirms_that_it_is_gone() -> None:
    state = VmiState("u")
    assert state.judge_node("", raw(NODE)) is None
    unseen = state.judge_node("node-1", None)
    state.gone_nodes.add("node-1")
    gone = state.judge_node("node-1", None)
    assert [(node.is_unseen, node.is_gone) for node in (unseen, gone) if node is not None] == [
        (True, False),
        (True, True),
    ]
    state.judge_node("node-1", raw(NODE))
    assert state.judge_node("node-1", None) == unseen, "it existed again in between"


@pytest.mark.parametrize(
    ("node", "read", "expected"),
    [
        (OFF, {}, (True, False)),
        (OFF, {"node-1": "6"}, (True, False)),
        (OFF, {"node-1": "7"}, (True, True)),
        (NODE, {"node-1": "7"}, (False, False)),
    ],
    ids=["not read", "an older version was read", "this version was read", "no taint"],
)
def test_the_taint_counts_only_in_a_version_that_the_api_server_returned(
    node: dict[str, Any], read: dict[str, str], expected: tuple[bool, bool]
) -> None:
    judgement = VmiState("u", nodes_read=read).judge_node("node-1", raw(node))
    assert judgement is not None
    assert (judgement.looks_out_of_service, judgement.is_out_of_service) == expected


@pytest.mark.parametrize(("label", "takes_none"), [("false", True), ("true", False), (None, False)])
def test_an_unschedulable_node_is_recognized(label: str | None, takes_none: bool) -> None:
    """A node without the label may become schedulable at any moment."""
    labels = {} if label is None else {"kubevirt.io/schedulable": label}
    state = VmiState("u").judge_node("node-1", raw({"metadata": {**NODE["metadata"], "labels": labels}}))
    assert state is not None
    assert state.takes_none is takes_none


def test_the_time_since_the_guest_died_counts_from_the_first_proof() -> None:
    state = VmiState("u")
    observed = [state.dead_for(is_dead, at) for is_dead, at in ((True, 5.0), (True, 8.0), (False, 9.0), (True, 10.0))]
    assert observed == [0.0, 3.0, 0.0, 0.0]

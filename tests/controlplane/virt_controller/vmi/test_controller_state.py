# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller state of a VMI, and how long it is kept."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from controlplane.api.objects.pod import Pod
from controlplane.api.objects.resources import Key
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.virt_controller.vmi.controller_state import EVENT_HOLD_SECONDS, EVENT_REASONS, ControllerState
from tests.controlplane.virt_controller.builders import POD_UID, a_pod, a_running_pod, a_vmi

VMI = Key("default", "web")
FIRST = a_vmi("Scheduling", attempt=1)
SECOND = a_vmi("Scheduling", attempt=2)
GRANTED = a_vmi("Running", attempt=1, activePods={POD_UID: "node-1"})
NOBODY = Key("default", "somebody-elses")
NODE: dict[str, Any] = {"metadata": {"name": "node-1", "resourceVersion": "7"}}
OFF = {**NODE, "spec": {"taints": [{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}]}}


def key(pod: Pod) -> Key:
    return Key(pod.metadata.namespace, pod.metadata.name)


def raw(what: Any) -> bytes:
    return msgspec.json.encode(what)


def said(
    reason: str = "FailedMount", *, of: Pod | None = None, message: str = "no such Secret", uid: str = POD_UID
) -> bytes:
    pod = of or a_pod()
    about = {"kind": "Pod", "namespace": "default", "name": pod.metadata.name, "uid": uid}
    return raw({"metadata": {"namespace": "default"}, "involvedObject": about, "reason": reason, "message": message})


def with_uid(vmi: VirtualMachineInstance, uid: str) -> VirtualMachineInstance:
    return msgspec.structs.replace(vmi, metadata=msgspec.structs.replace(vmi.metadata, uid=uid))


@pytest.fixture
def memories() -> ControllerState:
    return ControllerState()


# Pods


def test_it_is_remembered_that_an_attempt_had_a_pod(memories: ControllerState) -> None:
    memories.note_pods(SECOND, [a_pod(attempt=1), a_pod(attempt=2)])
    state = memories.note_pods(SECOND, [])
    assert state.was_begun(2)
    assert not state.was_begun(3)


def test_an_earlier_pod_that_is_observed_last_does_not_hide_a_later_one(memories: ControllerState) -> None:
    memories.note_pods(SECOND, [a_pod(attempt=2)])
    assert memories.note_pods(SECOND, [a_pod(attempt=1)]).was_begun(2)


def test_an_earlier_attempts_pod_does_not_begin_the_next(memories: ControllerState) -> None:
    assert not memories.note_pods(SECOND, [a_pod(attempt=1)]).was_begun(2)


def test_before_the_first_attempt_none_was_begun(memories: ControllerState) -> None:
    assert not memories.of(a_vmi()).was_begun(0)


def test_a_pods_key_enqueues_its_vmi_before_and_after_the_pod_exists(memories: ControllerState) -> None:
    memories.note_pods(FIRST, [])
    assert memories.vmi_of(key(a_pod())) == VMI
    assert memories.vmi_of(NOBODY) is None


def test_a_pod_with_any_name_enqueues_the_vmi_while_it_belongs_to_it(memories: ControllerState) -> None:
    odd = a_pod(attempt=9)
    memories.note_pods(FIRST, [odd])
    assert memories.vmi_of(key(odd)) == VMI
    memories.note_pods(FIRST, [])
    assert memories.vmi_of(key(odd)) is None


def test_forgetting_a_vmi_forgets_its_pods(memories: ControllerState) -> None:
    memories.note_pods(FIRST, [a_pod()])
    memories.forget(VMI)
    assert memories.vmi_of(key(a_pod())) is None
    assert not memories.of(FIRST).was_begun(1)


def test_a_new_vmi_with_the_name_starts_without_state(memories: ControllerState) -> None:
    memories.note_pods(FIRST, [a_pod()])
    later = with_uid(FIRST, "dddddddd-0000")
    assert not memories.of(later).was_begun(1)
    assert memories.vmi_of(key(a_pod())) is None


# reports about a Pod that does not start


@pytest.mark.parametrize(
    "reason", sorted(["FailedMount", "FailedMapVolume", "FailedAttachVolume", "FailedCreatePodSandBox"])
)
def test_events_about_a_pod_are_kept(memories: ControllerState, reason: str) -> None:
    state = memories.note_pods(FIRST, [a_pod()])
    assert memories.note_event(said(reason), 0.0) == VMI
    assert state.event_troubles[POD_UID].reason == reason
    assert reason in EVENT_REASONS


@pytest.mark.parametrize(
    "event",
    [said("Scheduled"), said(uid="another"), said(of=a_pod(attempt=9)), b"{", b"[" * 100_000],
    ids=["a reason that the status has", "another Pod of the name", "a name nobody looks at", "no JSON", "nested"],
)
def test_foreign_events_are_ignored(memories: ControllerState, event: bytes) -> None:
    state = memories.note_pods(FIRST, [a_pod()])
    assert memories.note_event(event, 0.0) is None
    assert state.event_troubles == {}


def test_the_first_event_may_come_before_the_pod(memories: ControllerState) -> None:
    memories.note_pods(FIRST, [])
    assert memories.note_event(said(), 0.0) == VMI


def test_a_repeated_event_enqueues_nothing_and_is_kept(memories: ControllerState) -> None:
    memories.note_pods(FIRST, [a_pod()])
    memories.note_event(said(), 0.0)
    assert memories.note_event(said(), EVENT_HOLD_SECONDS - 1) is None
    assert memories.note_event(said(message="another"), EVENT_HOLD_SECONDS + 1) is None, (
        "counted from when it was said last"
    )


def test_an_event_is_kept_for_its_time_before_another_replaces_it(memories: ControllerState) -> None:
    state = memories.note_pods(FIRST, [a_pod()])
    memories.note_event(said(), 0.0)
    assert memories.note_event(said(message="another"), EVENT_HOLD_SECONDS - 1) is None
    assert state.event_troubles[POD_UID].message == "no such Secret"
    assert memories.note_event(said(message="another"), EVENT_HOLD_SECONDS) == VMI
    assert state.event_troubles[POD_UID].message == "another"


def test_an_event_of_the_next_pod_replaces_those_of_the_former(memories: ControllerState) -> None:
    memories.note_pods(FIRST, [a_pod()])
    memories.note_event(said(), 0.0)
    state = memories.note_pods(SECOND, [a_pod(attempt=2, uid="second")])
    assert memories.note_event(said(of=a_pod(attempt=2), uid="second"), 1.0) == VMI
    assert set(state.event_troubles) == {"second"}


# the last state of a granted Pod


def ended(**options: Any) -> bytes:
    return raw(a_pod("Failed", node="node-1", **options))


def test_the_last_state_of_a_granted_pod_is_kept_when_it_is_removed(memories: ControllerState) -> None:
    state = memories.note_pods(GRANTED, [a_running_pod()])
    memories.note_removal(key(a_pod()), ended(), None)
    assert set(state.last_words) == {POD_UID}


def test_a_launcher_that_ended_beside_a_running_sidecar_has_ended(memories: ControllerState) -> None:
    state = memories.note_pods(GRANTED, [a_running_pod()])
    memories.note_removal(key(a_pod()), raw(a_pod("Running", compute={"terminated": {"exitCode": 0}})), None)
    assert set(state.last_words) == {POD_UID}


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        (key(a_pod()), raw(a_running_pod()), None),
        (key(a_pod()), ended(), ended()),
        (key(a_pod()), None, None),
        (key(a_pod()), None, ended()),
        (key(a_pod()), ended(uid="another"), None),
        (NOBODY, ended(), None),
    ],
    ids=["it ran", "it is there", "it was never seen", "it came", "it was not granted", "it is nobody's"],
)
def test_other_removals_keep_no_last_state(
    memories: ControllerState, name: Key, before: bytes | None, after: bytes | None
) -> None:
    state = memories.note_pods(GRANTED, [a_running_pod()])
    memories.note_removal(name, before, after)
    assert state.last_words == {}


# the node


def test_a_run_without_a_node_has_no_node_to_judge(memories: ControllerState) -> None:
    assert memories.of(FIRST).judge_node("", raw(NODE)) is None


def test_a_node_missing_in_the_cache_is_unseen_until_the_api_server_confirms_that_it_is_gone(
    memories: ControllerState,
) -> None:
    state = memories.of(FIRST)
    unseen = state.judge_node("node-1", None)
    state.gone_nodes.add("node-1")
    gone = state.judge_node("node-1", None)
    assert unseen is not None
    assert (unseen.is_unseen, unseen.is_gone) == (True, False)
    assert gone is not None
    assert gone.is_gone


def test_a_node_that_exists_again_was_another_one(memories: ControllerState) -> None:
    state = memories.of(FIRST)
    state.gone_nodes.add("node-1")
    state.judge_node("node-1", raw(NODE))
    later = state.judge_node("node-1", None)
    assert later is not None
    assert not later.is_gone


@pytest.mark.parametrize(("read", "is_off"), [({}, False), ({"node-1": "6"}, False), ({"node-1": "7"}, True)])
def test_the_taint_counts_only_in_a_state_that_the_api_server_returned(
    memories: ControllerState, read: dict[str, str], is_off: bool
) -> None:
    state = memories.of(FIRST)
    state.nodes_read = read
    judgement = state.judge_node("node-1", raw(OFF))
    assert judgement is not None
    assert (judgement.looks_out_of_service, judgement.is_out_of_service) == (True, is_off)


def test_a_node_without_the_taint_is_in_service(memories: ControllerState) -> None:
    state = memories.of(FIRST)
    state.nodes_read = {"node-1": "7"}
    judgement = state.judge_node("node-1", raw(NODE))
    assert judgement is not None
    assert (judgement.looks_out_of_service, judgement.is_out_of_service) == (False, False)


@pytest.mark.parametrize(("label", "takes_none"), [("false", True), ("true", False), (None, False)])
def test_an_unschedulable_node_is_recognized(memories: ControllerState, label: str | None, *, takes_none: bool) -> None:
    """A node without the label may become schedulable at any moment."""
    labels = {} if label is None else {"kubevirt.io/schedulable": label}
    node = {**NODE, "metadata": {**NODE["metadata"], "labels": labels}}
    state = memories.of(GRANTED).judge_node("node-1", raw(node))

    assert state is not None
    assert state.takes_none is takes_none

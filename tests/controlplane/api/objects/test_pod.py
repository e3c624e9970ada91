# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Launcher Pods: owner, failures, and the text that a condition may quote."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.api.objects.decode import decode
from controlplane.api.objects.pod import (
    MESSAGE_LIMIT,
    Failure,
    Pod,
    find_end_failure,
    find_start_failure,
    reason_word,
    sanitize,
)

OURS = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "name": "web", "uid": "u", "controller": True}


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        (OURS, "u"),
        ({**OURS, "apiVersion": "kubevirt.io/v1alpha3"}, "u"),
        ({**OURS, "controller": False}, None),
        ({**OURS, "kind": "VirtualMachine"}, None),
        ({**OURS, "apiVersion": "kubevirt.io.evil.com/v1"}, None),
        ({**OURS, "apiVersion": "v1"}, None),
    ],
    ids=["controller", "older version", "owner only", "another kind", "another group", "core group"],
)
def test_only_a_controlling_vmi_owns_a_launcher(reference: dict[str, Any], expected: str | None) -> None:
    """Labels prove nothing: every user who can create Pods can write them."""
    body = {"metadata": {"labels": {"kubevirt.io/created-by": "u"}, "ownerReferences": [reference]}}
    owner = decode(body, Pod).owner
    assert (owner.uid if owner else None) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("no disk\nfound\r\n", "no disk found"),
        ("\x1b[2Jgone", "[2Jgone"),
        ("evil\u202etxt", "evil txt"),
        ("x" * 5000, "x" * MESSAGE_LIMIT),
        ("Grüße", "Grüße"),
    ],
    ids=["lines", "escape", "direction override", "long", "letters"],
)
def test_a_tenants_text_becomes_one_short_printable_line(text: str, expected: str) -> None:
    assert sanitize(text) == expected


def test_a_reason_is_one_word() -> None:
    assert (reason_word("Unexpected Admission-Error!"), reason_word("///")) == ("UnexpectedAdmissionError", "PodFailed")


@pytest.mark.parametrize(
    ("containers", "is_given"),
    [
        ([("compute", {"devices.virtops.kubevirt/kvm": "1"})], True),
        ([("compute", {"cpu": "1"})], False),
        ([("istio-proxy", {"devices.virtops.kubevirt/kvm": "1"}), ("compute", {})], False),
        ([("istio-proxy", {}), ("compute", {"devices.virtops.kubevirt/kvm": "1"})], True),
        ([], False),
    ],
    ids=["given", "not asked for", "a sidecar's", "beside a sidecar", "no container"],
)
def test_a_device_belongs_to_the_launcher_when_its_compute_container_has_it(containers: Any, is_given: bool) -> None:
    spec = {"containers": [{"name": name, "resources": {"limits": limits}} for name, limits in containers]}
    assert decode({"spec": spec}, Pod).was_given("devices.virtops.kubevirt/kvm") is is_given


RUNS = {"running": {"startedAt": "now"}}
WAITS, CREATING = (
    {"waiting": {"reason": "ErrImagePull", "message": "no such image"}},
    {"waiting": {"reason": "ContainerCreating"}},
)


@pytest.mark.parametrize(
    ("phase", "compute", "metadata", "is_up"),
    [
        ("Running", RUNS, {}, True),
        ("Running", RUNS, {"deletionTimestamp": "now"}, False),
        ("Running", CREATING, {}, False),
        ("Pending", RUNS, {}, False),
        ("Running", {"terminated": {"exitCode": 0}}, {}, False),
    ],
    ids=["up", "going", "not yet", "pending", "over"],
)
def test_a_launcher_is_up_while_its_compute_container_runs_and_the_pod_stays(
    phase: str, compute: Any, metadata: Any, is_up: bool
) -> None:
    statuses = [{"name": "sidecar", "state": CREATING}, {"name": "compute", "state": compute}]
    assert decode({"metadata": metadata, "status": {"phase": phase, "containerStatuses": statuses}}, Pod).is_up is is_up


@pytest.mark.parametrize(
    ("phase", "exit_code", "expected"),
    [
        ("Succeeded", 1, True),
        ("Failed", 0, False),
        ("Running", 0, True),
        ("Running", 1, False),
        ("Running", None, False),
    ],
)
def test_the_pod_phase_decides_before_the_container_how_a_launcher_ended(
    phase: str, exit_code: int | None, expected: bool
) -> None:
    state = RUNS if exit_code is None else {"terminated": {"exitCode": exit_code}}
    statuses = [{"name": "compute", "state": state}]
    assert decode({"status": {"phase": phase, "containerStatuses": statuses}}, Pod).has_succeeded is expected


EVENT = Failure("FailedMount", "no such volume")


@pytest.mark.parametrize(
    ("compute", "event", "expected"),
    [
        (WAITS, None, Failure("ErrImagePull", "no such image")),
        (WAITS, EVENT, Failure("ErrImagePull", "no such image")),
        (CREATING, EVENT, EVENT),
        (CREATING, None, None),
        (RUNS, EVENT, None),
    ],
    ids=["from the container", "the container first", "from an Event", "nothing", "it runs"],
)
def test_why_a_launcher_cannot_start(compute: Any, event: Failure | None, expected: Failure | None) -> None:
    pod = decode({"status": {"phase": "Pending", "containerStatuses": [{"name": "compute", "state": compute}]}}, Pod)
    assert find_start_failure(pod, event) == expected


def failed(*, compute: dict[str, Any] | None = None, **status: Any) -> Pod:
    statuses = [] if compute is None else [{"name": "compute", "state": compute}]
    return decode({"status": {"phase": "Failed", "containerStatuses": statuses, **status}}, Pod)


def ended(**facts: Any) -> dict[str, Any]:
    return {"terminated": {"exitCode": 1, **facts}}


ENDS: dict[str, tuple[Pod, str, str]] = {
    "the launcher's last words": (failed(compute=ended(message="no disk")), "LauncherFailed", "no disk"),
    "its guest's kernel panicked": (
        failed(compute=ended(message="the guest's kernel panicked")),
        "GuestPanicked",
        "the guest's kernel panicked",
    ),
    "its guest's watchdog expired": (
        failed(compute=ended(message="the guest's watchdog expired, which was to end its run")),
        "GuestCrashed",
        "the guest's watchdog expired, which was to end its run",
    ),
    "its guest was out of time": (
        failed(compute=ended(message="the guest did not shut down within its grace period and was ended")),
        "ShutdownTimedOut",
        "the guest did not shut down within its grace period and was ended",
    ),
    "the kubelet's": (failed(reason="Evicted", message="disk pressure"), "Evicted", "disk pressure"),
    "only a word": (failed(reason="NodeLost"), "NodeLost", "NodeLost"),
    "killed": (
        failed(compute={"terminated": {"exitCode": 137, "reason": "OOMKilled"}}),
        "OOMKilled",
        "the launcher ended with exit code 137: OOMKilled",
    ),
    "an exit code": (
        failed(compute=ended(reason="Error")),
        "LauncherFailed",
        "the launcher ended with exit code 1 and left no reason",
    ),
    "nothing": (failed(), "PodFailed", "the launcher Pod failed and nothing says why"),
}


@pytest.mark.parametrize(("pod", "reason", "message"), ENDS.values(), ids=ENDS.keys())
def test_why_a_pod_failed(pod: Pod, reason: str, message: str) -> None:
    assert find_end_failure(pod) == (reason, message)


def test_a_tenants_termination_message_is_bounded_and_printable() -> None:
    trouble = find_end_failure(failed(compute=ended(message="\x1b[31mred\u202e\n" + "x" * 5000)))
    assert len(trouble.message) == MESSAGE_LIMIT
    assert trouble.message.isprintable()


def test_a_pod_may_write_to_a_claim_that_one_of_its_volumes_does_not_mount_for_reading() -> None:
    sources = [{"claimName": "a"}, {"claimName": "b", "readOnly": True}, {"claimName": "b"}]
    reading = {"persistentVolumeClaim": {"claimName": "c", "readOnly": True}}
    volumes = [reading, {"emptyDir": {}}, *({"persistentVolumeClaim": source} for source in sources)]
    assert decode({"spec": {"volumes": volumes}}, Pod).written_claims == {"a", "b"}

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose a launcher Pod is, what went wrong with it, and what may be said of it in a condition."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.api.objects.decode import decode
from controlplane.api.objects.pod import MESSAGE_LIMIT, Pod, bounded, find_end_trouble, word

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
    """Labels prove nothing: whoever may create Pods can write them."""
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
    assert bounded(text) == expected


def test_a_reason_is_one_word() -> None:
    assert (word("Unexpected Admission-Error!"), word("///")) == ("UnexpectedAdmissionError", "PodFailed")


def failed(*, compute: dict[str, Any] | None = None, **status: Any) -> Pod:
    statuses = [] if compute is None else [{"name": "compute", "state": compute}]
    return decode({"status": {"phase": "Failed", "containerStatuses": statuses, **status}}, Pod)


def ended(**facts: Any) -> dict[str, Any]:
    return {"terminated": {"exitCode": 1, **facts}}


ENDS: dict[str, tuple[Pod, str, str]] = {
    "the launcher's last words": (failed(compute=ended(message="no disk")), "LauncherFailed", "no disk"),
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
    assert find_end_trouble(pod) == (reason, message)


def test_a_tenants_last_words_are_bounded_and_printable() -> None:
    trouble = find_end_trouble(failed(compute=ended(message="\x1b[31mred\u202e\n" + "x" * 5000)))
    assert len(trouble.message) == MESSAGE_LIMIT
    assert trouble.message.isprintable()

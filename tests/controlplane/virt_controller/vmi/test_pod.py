# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading a Pod: what went wrong, in words that fit a condition."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from controlplane.virt_controller.vmi.pod import MESSAGE_LIMIT, Pod, find_end_trouble
from controlplane.virt_controller.vmi.world import pod_name
from tests.controlplane.virt_controller.builders import a_pod, a_vmi


def ended(**facts: Any) -> dict[str, Any]:
    return {"terminated": {"exitCode": 1, **facts}}


ENDS: dict[str, tuple[Pod, str, str]] = {
    "the launcher's last words": (a_pod("Failed", compute=ended(message="no disk")), "LauncherFailed", "no disk"),
    "the kubelet's": (a_pod("Failed", reason="Evicted", message="disk pressure"), "Evicted", "disk pressure"),
    "only a word": (a_pod("Failed", reason="NodeLost"), "NodeLost", "NodeLost"),
    "killed": (
        a_pod("Failed", compute={"terminated": {"exitCode": 137, "reason": "OOMKilled"}}),
        "OOMKilled",
        "the launcher ended with exit code 137: OOMKilled",
    ),
    "an exit code": (
        a_pod("Failed", compute=ended(reason="Error")),
        "LauncherFailed",
        "the launcher ended with exit code 1 and left no reason",
    ),
    "nothing": (a_pod("Failed"), "PodFailed", "the launcher Pod failed and nothing says why"),
}


@pytest.mark.parametrize(("pod", "reason", "message"), ENDS.values(), ids=ENDS.keys())
def test_why_a_pod_failed(pod: Pod, reason: str, message: str) -> None:
    assert find_end_trouble(pod) == (reason, message)


def test_a_tenant_s_last_words_are_bounded_and_printable() -> None:
    trouble = find_end_trouble(a_pod("Failed", compute=ended(message="\x1b[31mred\u202e\n" + "x" * 5000)))
    assert len(trouble.message) == MESSAGE_LIMIT
    assert trouble.message.isprintable()


NAMES = {
    "short": ("web", "virt-launcher-web-bbbbbbbb-1"),
    "with dots": ("web.example", "virt-launcher-web-example-bbbbbbbb-1"),
    "long": ("n" * 253, "virt-launcher-" + "n" * 38 + "-bbbbbbbb-1"),
    "cut at a dash": ("n" * 37 + "-" + "m" * 10, "virt-launcher-" + "n" * 37 + "-bbbbbbbb-1"),
}


@pytest.mark.parametrize(("name", "expected"), NAMES.values(), ids=NAMES.keys())
def test_the_pod_s_name_is_valid_and_always_the_same(name: str, expected: str) -> None:
    vmi = a_vmi()
    vmi = msgspec.structs.replace(vmi, metadata=msgspec.structs.replace(vmi.metadata, name=name))
    assert pod_name(vmi, 1) == expected
    assert len(expected) <= 63

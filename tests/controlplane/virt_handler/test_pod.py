# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose a launcher Pod is, and what may be said of it in a condition."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.api.decode import decode
from controlplane.virt_handler.pod import MESSAGE_LIMIT, Pod, bounded, word

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

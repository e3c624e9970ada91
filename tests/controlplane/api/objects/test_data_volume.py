# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from typing import Any

import pytest

from controlplane.api.objects.data_volume import DataVolume, is_served
from controlplane.api.objects.decode import decode

ESTABLISHED = ({"type": "Established", "status": "True"},)


def a_definition(served: bool = True, version: str = "v1beta1", conditions: Any = ESTABLISHED, **meta: Any) -> bytes:
    spec = {"versions": [{"name": "v1alpha1", "served": True}, {"name": version, "served": served}]}
    return json.dumps({"metadata": meta, "spec": spec, "status": {"conditions": list(conditions)}}).encode()


@pytest.mark.parametrize(
    ("definition", "served"),
    [
        (None, False),
        (a_definition(), True),
        (a_definition(served=False), False),
        (a_definition(version="v2"), False),
        (a_definition(conditions=[]), False),
        (a_definition(deletionTimestamp="2026-01-01T00:00:00Z"), False),
        (b'{"spec": 7}', False),
    ],
    ids=["none", "served", "not served", "another version", "not established", "going", "unreadable"],
)
def test_the_crd_says_whether_data_volumes_are_served(definition: bytes | None, served: bool) -> None:
    assert is_served(definition) is served


@pytest.mark.parametrize(
    ("status", "trouble"),
    [
        ({"phase": "ImportInProgress"}, None),
        ({"phase": "Failed"}, "CDI gave it up"),
        (
            {"conditions": [{"type": "Running", "status": "False", "reason": "Error", "message": "no such host"}]},
            "no such host",
        ),
        ({"conditions": [{"type": "Running", "status": "False", "reason": "ImagePullFailed"}]}, "ImagePullFailed"),
        ({"conditions": [{"type": "Running", "status": "False", "reason": "Completed"}]}, None),
        ({"conditions": [{"type": "Running", "status": "True", "reason": "Error"}]}, None),
    ],
)
def test_why_cdi_cannot_fill_a_data_volume(status: Any, trouble: str | None) -> None:
    assert decode({"status": status}, DataVolume).trouble == trouble

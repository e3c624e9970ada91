# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is seen of an object that cannot be read. What a cache makes of it: test_watch."""

from __future__ import annotations

import json

import pytest

from controlplane.api.objects.resources import Key
from controlplane.kube.unreadable import Identity, identify

NAMED = {"name": "web", "namespace": "ns", "resourceVersion": "7"}


@pytest.mark.parametrize(
    ("metadata", "identity"),
    [
        (NAMED, Identity(Key("ns", "web"), "7")),
        ({"name": "node-1", "resourceVersion": "7"}, Identity(Key("", "node-1"), "7")),
        ({**NAMED, "name": ""}, None),
        ({**NAMED, "resourceVersion": ""}, None),
        ({**NAMED, "name": 7}, None),
        ([], None),
    ],
    ids=["named", "of the cluster", "no name", "no version", "a name that is none", "no metadata"],
)
async def test_an_object_is_known_by_its_name_and_in_a_version(metadata: object, identity: Identity | None) -> None:
    """Else it may be any of those that a list lacks."""
    assert await identify(json.dumps({"metadata": metadata}).encode()) == identity

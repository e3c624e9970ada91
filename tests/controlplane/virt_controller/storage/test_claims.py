# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Claims as controllers read them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from controlplane.api.objects.claim import PersistentVolumeClaim, claim_names
from controlplane.api.objects.decode import decode
from controlplane.api.objects.resources import (
    PERSISTENT_VOLUME_CLAIM,
)
from controlplane.api.objects.vmi.volumes import Volume
from controlplane.kube.cache import Store, read_partial
from controlplane.virt_controller.storage.claims import claim_reader, claims_of_pod, no_claims

VOLUMES = [
    {"name": "root", "containerDisk": {"image": "x"}},
    {"name": "a", "persistentVolumeClaim": {"claimName": "data"}},
]
TYPED = tuple(decode(volume, Volume) for volume in VOLUMES)


def a_claim(version: int = 1, *, phase: str = "Pending", **meta: Any) -> bytes:
    whole = {"name": "data", "namespace": "shop", "uid": "c", "resourceVersion": str(version), **meta}
    return json.dumps({"metadata": whole, "spec": {"volumeMode": "Block"}, "status": {"phase": phase}}).encode()


@pytest.mark.parametrize(
    ("spec", "status", "expected"),
    [
        ({}, {}, (False, False, False, 0)),
        ({"volumeMode": "Block"}, {"phase": "Bound"}, (True, True, False, 0)),
        ({"volumeMode": "Filesystem", "accessModes": ["ReadWriteMany"]}, {"phase": "Lost"}, (False, False, True, 0)),
        ({"resources": {"requests": {"storage": "1Gi"}}}, {}, (False, False, False, 1 << 30)),
        ({"resources": {"requests": {"storage": "much"}}}, {}, (False, False, False, 0)),
    ],
)
def test_properties_of_a_claim(
    spec: dict[str, Any], status: dict[str, Any], expected: tuple[bool, bool, bool, int]
) -> None:
    claim = decode({"spec": spec, "status": status}, PersistentVolumeClaim)

    assert (claim.is_block, claim.is_bound, claim.is_shared, claim.size_bytes) == expected


def test_claims_that_volumes_name_are_read() -> None:
    cache = Store(PERSISTENT_VOLUME_CLAIM)
    read = claim_reader(cache)
    assert read("shop", TYPED) == {}
    cache.put(a_claim())

    assert claim_names(TYPED) == ("data",)
    assert [(name, claim.is_block) for name, claim in read("shop", TYPED).items()] == [("data", True)]
    assert read("elsewhere", TYPED) == {}
    assert read("shop", TYPED[:1]) == {}
    assert no_claims("shop", TYPED) == {}


def test_a_deleting_or_malformed_claim_is_missing() -> None:
    cache = Store(PERSISTENT_VOLUME_CLAIM)
    cache.put(a_claim(deletionTimestamp="2026-01-01T00:00:00Z"))
    assert claim_reader(cache)("shop", TYPED) == {}
    cache.put(b'{"metadata":{"name":"data","namespace":"shop","uid":"d","resourceVersion":"9"},"spec":7}')
    assert claim_reader(cache)("shop", TYPED) == {}


def test_a_pod_is_indexed_by_its_claims() -> None:
    def values(**spec: Any) -> list[str]:
        meta = {"name": "p", "namespace": "shop", "uid": "p", "resourceVersion": "1"}
        return list(claims_of_pod(read_partial(json.dumps({"metadata": meta, "spec": spec}).encode())))

    assert values(volumes=[VOLUMES[1], {"name": "b", "emptyDir": {}}]) == ["shop/data"]
    assert values(volumes=[]) == []
    assert values() == []

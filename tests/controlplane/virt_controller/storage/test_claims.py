# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from typing import Any

import pytest

from controlplane.api.objects.claim import PersistentVolumeClaim, claim_names
from controlplane.api.objects.decode import decode
from controlplane.api.objects.resources import (
    PERSISTENT_VOLUME_CLAIM,
    VIRTUAL_MACHINE,
    VIRTUAL_MACHINE_INSTANCE,
    Key,
)
from controlplane.api.objects.vmi.volumes import Volume
from controlplane.kube.cache import Store
from controlplane.virt_controller.storage.claims import BY_CLAIM, claim_reader, claims_of_vm, claims_of_vmi, no_claims
from controlplane.virt_controller.wake import connect_claims

VOLUMES = [
    {"name": "root", "containerDisk": {"image": "x"}},
    {"name": "a", "persistentVolumeClaim": {"claimName": "data"}},
]
TYPED = tuple(decode(one, Volume) for one in VOLUMES)


def a_claim(version: int = 1, *, phase: str = "Pending", **meta: Any) -> bytes:
    whole = {"name": "data", "namespace": "shop", "uid": "c", "resourceVersion": str(version), **meta}
    return json.dumps({"metadata": whole, "spec": {"volumeMode": "Block"}, "status": {"phase": phase}}).encode()


def a_machine(name: str, spec: dict[str, Any], namespace: str = "shop") -> bytes:
    meta = {"name": name, "namespace": namespace, "uid": name, "resourceVersion": "2"}
    return json.dumps({"metadata": meta, "spec": spec}).encode()


@pytest.mark.parametrize(
    ("spec", "status", "said"),
    [
        ({}, {}, (False, False, False, 0)),
        ({"volumeMode": "Block"}, {"phase": "Bound"}, (True, True, False, 0)),
        ({"volumeMode": "Filesystem", "accessModes": ["ReadWriteMany"]}, {"phase": "Lost"}, (False, False, True, 0)),
        ({"resources": {"requests": {"storage": "1Gi"}}}, {}, (False, False, False, 1 << 30)),
        ({"resources": {"requests": {"storage": "much"}}}, {}, (False, False, False, 0)),
    ],
)
def test_a_claim_says(spec: dict[str, Any], status: dict[str, Any], said: tuple[bool, bool, bool, int]) -> None:
    claim = decode({"spec": spec, "status": status}, PersistentVolumeClaim)

    assert (claim.is_block, claim.is_bound, claim.is_shared, claim.size_bytes) == said


def test_only_claims_that_are_named_are_read_and_only_those_that_are_there() -> None:
    cache = Store(PERSISTENT_VOLUME_CLAIM)
    read = claim_reader(cache)
    assert read("shop", TYPED) == {}
    cache.put(a_claim())

    assert claim_names(TYPED) == ("data",)
    assert [(name, one.is_block) for name, one in read("shop", TYPED).items()] == [("data", True)]
    assert read("elsewhere", TYPED) == {}
    assert read("shop", TYPED[:1]) == {}
    assert no_claims("shop", TYPED) == {}


def test_a_claim_that_goes_or_cannot_be_read_is_not_there() -> None:
    cache = Store(PERSISTENT_VOLUME_CLAIM)
    cache.put(a_claim(deletionTimestamp="2026-01-01T00:00:00Z"))
    assert claim_reader(cache)("shop", TYPED) == {}
    cache.put(b'{"metadata":{"name":"data","namespace":"shop","uid":"d","resourceVersion":"9"},"spec":7}')
    assert claim_reader(cache)("shop", TYPED) == {}


class Stage:
    """Claims and what names them, connected; what they wake."""

    def __init__(self) -> None:
        self.woken: list[str] = []
        self.claims = Store(PERSISTENT_VOLUME_CLAIM)
        self.vms = Store(VIRTUAL_MACHINE, {BY_CLAIM: claims_of_vm})
        self.vmis = Store(VIRTUAL_MACHINE_INSTANCE, {BY_CLAIM: claims_of_vmi})
        self.vms.put(a_machine("web", {"template": {"spec": {"volumes": VOLUMES}}}))
        self.vms.put(a_machine("other", {"template": {"spec": {"volumes": VOLUMES[:1]}}}))
        self.vmis.put(a_machine("web", {"volumes": VOLUMES}))
        self.vmis.put(a_machine("web", {"volumes": VOLUMES}, namespace="elsewhere"))
        connect_claims(
            claims=self.claims,
            vms=self.vms,
            vmis=self.vmis,
            wake_vm=lambda key: self.woken.append(f"vm {key}"),
            wake_vmi=lambda key: self.woken.append(f"vmi {key}"),
        )

    def take(self) -> list[str]:
        woken, self.woken = self.woken, []
        return woken


def test_a_claim_wakes_those_that_name_it_when_something_changes_for_them() -> None:
    stage, both = Stage(), ["vmi shop/web", "vm shop/web"]
    stage.claims.put(a_claim(1))
    assert stage.take() == both
    stage.claims.put(a_claim(2, annotations={"somebody": "else's"}))
    assert stage.take() == []
    stage.claims.put(a_claim(3, phase="Bound"))
    assert stage.take() == both
    filler = {
        "apiVersion": "cdi.kubevirt.io/v1beta1",
        "kind": "DataVolume",
        "name": "d",
        "uid": "d",
        "controller": True,
    }
    stage.claims.put(a_claim(4, phase="Bound", ownerReferences=[filler]))
    assert stage.take() == both, "whether it is filled is its owner's word from now on"
    stage.claims.put(a_claim(5, phase="Bound", deletionTimestamp="2026-01-01T00:00:00Z"))
    assert stage.take() == both
    stage.claims.remove(Key("shop", "data"))
    assert stage.take() == both

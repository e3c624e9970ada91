# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which change wakes which key."""

from __future__ import annotations

from controlplane.api.objects.resources import POD, VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE, Key
from controlplane.virt_controller.wake import connect
from tests.controlplane.simulation.cache import LaggingCache
from tests.controlplane.simulation.clock import SimulatedClock
from tests.controlplane.simulation.store import Store

WEB = Key("default", "web")


def test_changes_wake_their_keys() -> None:
    store = Store(SimulatedClock())
    caches = {one: LaggingCache(store, one) for one in (VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE, POD)}
    woken: list[str] = []
    connect(
        vms=caches[VIRTUAL_MACHINE],
        vmis=caches[VIRTUAL_MACHINE_INSTANCE],
        pods=caches[POD],
        wake_vm=lambda key: woken.append(f"vm {key}"),
        wake_vmi=lambda key: woken.append(f"vmi {key}"),
    )
    owner = {"kind": "VirtualMachineInstance", "name": "web", "uid": "u", "controller": True}
    other = {"kind": "ReplicaSet", "name": "x", "uid": "v", "controller": True}
    expected = []
    for resource, meta, keys in (
        (VIRTUAL_MACHINE, {}, ["vm default/web"]),
        (VIRTUAL_MACHINE_INSTANCE, {}, ["vmi default/web", "vm default/web"]),
        (POD, {"ownerReferences": [owner]}, ["vmi default/web"]),
        (POD, {"name": "foreign", "ownerReferences": [other]}, []),
    ):
        store.create(resource, "default", {"metadata": {"name": "web", **meta}, "spec": {}})
        caches[resource].advance()
        expected += keys
        assert woken == expected


def test_a_pod_that_goes_wakes_its_vmi() -> None:
    store = Store(SimulatedClock())
    caches = {one: LaggingCache(store, one) for one in (VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE, POD)}
    owner = {"kind": "VirtualMachineInstance", "name": "web", "uid": "u", "controller": True}
    store.create(POD, "default", {"metadata": {"name": "web", "ownerReferences": [owner]}, "spec": {}})
    woken: list[Key] = []
    connect(
        vms=caches[VIRTUAL_MACHINE],
        vmis=caches[VIRTUAL_MACHINE_INSTANCE],
        pods=caches[POD],
        wake_vm=lambda _unused: None,
        wake_vmi=woken.append,
    )
    caches[POD].start()
    store.delete(POD, WEB)
    caches[POD].advance()
    assert woken == [WEB, WEB]

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines with disks, and the owners of these: users, CDI, and unrelated objects of the same name.

web has a DataVolume template; mail names a claim that a user creates. The name does not show the owner.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from controlplane.api.objects.data_volume import DEFINITION, FILLED, STARTABLE
from controlplane.api.objects.resources import (
    CUSTOM_RESOURCE_DEFINITION,
    DATA_VOLUME,
    NODE,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    VIRTUAL_MACHINE,
    VIRTUAL_MACHINE_INSTANCE,
    Key,
)
from tests.controlplane.simulation.api_server import Target
from tests.controlplane.simulation.ledger import controlling_uid
from tests.support.store import OVER, Change, Json, Store

PLACE = "default"
WEB, MAIL = Key(PLACE, "web"), Key(PLACE, "mail")
DISKS = {WEB: Key(PLACE, "root"), MAIL: Key(PLACE, "data")}
STEPS = ("", "Pending", "ImportScheduled", "ImportInProgress", "Succeeded")
WAYS = ("WaitForFirstConsumer", "PendingPopulation", "Failed")
"""Other phases of a DataVolume."""


class Disks:
    def __init__(self, store: Store, rng: random.Random) -> None:
        self._store, self._rng = store, rng
        self.is_calm = False
        """The deciding process has received all events."""
        there = store.list(NODE)[0][1]["metadata"][
            "uid"
        ]  # otherwise the garbage collector would remove the foreign object
        self._stranger = {
            "apiVersion": "example.com/v1",
            "kind": "Database",
            "name": "db",
            "uid": there,
            "controller": True,
        }
        self.define()

    def define(self, *, is_served: bool = True) -> None:
        """Start or stop to serve DataVolumes, for a while or for good; in the latter case all are deleted."""
        self._store.actor, key = "user", Key("", DEFINITION)
        there = self._store.find(CUSTOM_RESOURCE_DEFINITION, key)
        if not is_served and there is not None and self._rng.random() < 0.5:
            self._store.delete(CUSTOM_RESOURCE_DEFINITION, key)
            for item, _unused in self._store.list(DATA_VOLUME):
                self._store.delete(DATA_VOLUME, item)
            return
        is_half = self._rng.random() < 0.5
        spec = {"versions": [{"name": DATA_VOLUME.version, "served": is_served or is_half}]}
        status = {"conditions": [{"type": "Established", "status": "True" if is_served or not is_half else "False"}]}
        if there is not None:
            self._store.patch(CUSTOM_RESOURCE_DEFINITION, key, {"spec": spec, "status": status})
        elif is_served:
            self._store.create(
                CUSTOM_RESOURCE_DEFINITION, "", {"metadata": {"name": DEFINITION}, "spec": spec, "status": status}
            )

    def act(self) -> str:
        """Act once; return what was done."""
        doings = (
            self._machine,
            self._switch,
            self._fill,
            self._fill,
            self._claim,
            self._another,
            self._take,
            self._leave,
        )
        return self._do(self._rng.choice(doings), self._rng.choice((WEB, WEB, MAIL)))

    def acts(self, count: int) -> Iterator[str]:
        """Act several times."""
        return (self.act() for _unused in range(count))

    def scene(self) -> Iterator[str]:
        """Create a machine and its objects, and others with the name of its disk, in any order."""
        key = self._rng.choice((WEB, WEB, MAIL))
        self._store.actor = "user"
        for kind, name in ((VIRTUAL_MACHINE, key), (DATA_VOLUME, DISKS[key]), (PERSISTENT_VOLUME_CLAIM, DISKS[key])):
            if self._store.find(kind, name) is not None:
                self._store.delete(kind, name)
        yield f"{key} is deleted, and its disk"
        doings = [self._machine, self._another, self._claim, self._fill]
        for doing in self._rng.sample(doings, self._rng.choice((3, 4))):
            yield self._do(doing, key)
        for _unused in STEPS:
            self._fill(key)
        yield "its disk is filled"

    def _do(self, doing: Callable[[Key], None], key: Key) -> str:
        self._store.actor = "user"
        doing(key)
        return f"{doing.__name__.strip('_')} {key}"

    def replace(self, target: Target) -> None:
        """Replace an object about to be written by another of that name."""
        result = None if target.key is None else self._store.find(target.resource, target.key)
        if result is None or target.key is None or target.resource not in (VIRTUAL_MACHINE, DATA_VOLUME):
            return
        self._store.actor = "user"
        meta = {"name": target.key.name, "ownerReferences": result["metadata"].get("ownerReferences") or []}
        self._store.delete(target.resource, target.key)
        if self._store.find(target.resource, target.key) is not None:
            self._store.patch(target.resource, target.key, {"metadata": {"finalizers": None}})
        self._store.create(target.resource, PLACE, {"metadata": meta, "spec": result["spec"]})

    def _machine(self, key: Key) -> None:
        disk = DISKS[key].name
        if self._store.find(VIRTUAL_MACHINE, key) is not None:
            if self._rng.random() < 0.2:
                self._store.delete(VIRTUAL_MACHINE, key)
            return
        source = {"dataVolume": {"name": disk}} if key == WEB else {"persistentVolumeClaim": {"claimName": disk}}
        devices = {"disks": [{"name": "disk", "disk": {"bus": "virtio"}}]}
        instance = {
            "domain": {"memory": {"guest": "64Mi"}, "devices": devices},
            "volumes": [{"name": "disk", **source}],
        }
        spec: Json = {"runStrategy": "Always", "template": {"spec": instance}}
        if key == WEB:
            wanted = {"storage": {"resources": {"requests": {"storage": "1Gi"}}}, "source": {"blank": {}}}
            spec["dataVolumeTemplates"] = [{"metadata": {"name": disk}, "spec": wanted}]
        self._store.create(VIRTUAL_MACHINE, PLACE, {"metadata": {"name": key.name}, "spec": spec})

    def _switch(self, key: Key) -> None:
        if self._store.find(VIRTUAL_MACHINE, key) is not None:
            how = self._rng.choice(("Always", "Always", "Halted"))
            self._store.patch(VIRTUAL_MACHINE, key, {"spec": {"runStrategy": how}})

    def _another(self, key: Key) -> None:
        """Create a DataVolume of that name with another owner, without an owner, or with a mere reference to the VM."""
        vm = self._store.find(VIRTUAL_MACHINE, key)
        if self._store.find(DATA_VOLUME, DISKS[key]) is None:
            mentioned = [] if vm is None else [{**self._stranger, "uid": vm["metadata"]["uid"], "controller": False}]
            owners = self._rng.choice(([self._stranger], [self._stranger], [], mentioned))
            meta = {"name": DISKS[key].name, "ownerReferences": owners}
            self._store.create(DATA_VOLUME, PLACE, {"metadata": meta, "spec": {}})

    def _claim(self, key: Key) -> None:
        """Create a claim that is never filled, or a foreign one without CDI."""
        if self._store.find(PERSISTENT_VOLUME_CLAIM, DISKS[key]) is None:
            self._make_claim(DISKS[key], self._rng.choice(([], [self._stranger])))

    def _take(self, key: Key) -> None:
        """Delete a DataVolume or a claim."""
        kind = self._rng.choice((DATA_VOLUME, PERSISTENT_VOLUME_CLAIM))
        if self._rng.random() < 0.5 and self._store.find(kind, DISKS[key]) is not None:
            self._store.delete(kind, DISKS[key])

    def _leave(self, key: Key) -> None:
        """Remove the owners of a DataVolume."""
        data_volume = self._store.find(DATA_VOLUME, DISKS[key])
        if self._rng.random() < 0.2 and data_volume is not None:
            self._store.patch(DATA_VOLUME, DISKS[key], {"metadata": {"ownerReferences": None}})

    def _fill(self, key: Key) -> None:
        """Let CDI progress with a DataVolume."""
        data_volume, self._store.actor = self._store.find(DATA_VOLUME, DISKS[key]), "CDI"
        if data_volume is None:
            return
        phase = (data_volume.get("status") or {}).get("phase", "")
        following = STEPS[(STEPS.index(phase) + 1) % len(STEPS)] if phase in STEPS else "ImportInProgress"
        new = self._rng.choice((following, following, following, *WAYS))
        self._store.patch(DATA_VOLUME, DISKS[key], {"status": {"phase": new}})
        if self._store.find(PERSISTENT_VOLUME_CLAIM, DISKS[key]) is None:
            owner = {"apiVersion": DATA_VOLUME.api_version, "kind": DATA_VOLUME.kind, "name": DISKS[key].name}
            self._make_claim(DISKS[key], [{**owner, "uid": data_volume["metadata"]["uid"], "controller": True}])

    def _make_claim(self, key: Key, owners: list[Json]) -> None:
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        status = {"phase": "Bound", "capacity": {"storage": "1Gi"}}
        meta = {"name": key.name, "ownerReferences": owners}
        self._store.create(PERSISTENT_VOLUME_CLAIM, PLACE, {"metadata": meta, "spec": spec, "status": status})

    def finish(self) -> None:
        """Let CDI finish all DataVolumes."""
        self._store.actor = "CDI"
        for key in DISKS.values():
            if self._store.find(DATA_VOLUME, key) is not None:
                self._store.patch(DATA_VOLUME, key, {"status": {"phase": "Succeeded"}})
                if self._store.find(PERSISTENT_VOLUME_CLAIM, key) is None:
                    self._make_claim(key, [])

    def wrong(self, change: Change) -> str | None:
        """Return what is wrong with a write of virt-controller: it uses a foreign or an unfinished disk."""
        before, after = change.before, change.after
        if after is None or change.actor != "controller":
            return None
        if change.resource == DATA_VOLUME:
            return self._wrongly_owned(change.key, before, after)
        if change.resource == VIRTUAL_MACHINE_INSTANCE and before is None and change.key == WEB:
            owner = controlling_uid(after)
            is_ready = any(controlling_uid(item) == owner and _phase(item) in STARTABLE for item in self._known(WEB))
            return None if is_ready else "an instance is made, and its VM has no DataVolume that is far enough"
        if change.resource == POD and before is None:
            return self._too_early(after)
        return None

    def _wrongly_owned(self, key: Key, before: Json | None, after: Json) -> str | None:
        vms = {item.after["metadata"]["uid"] for item in self._store.histories["VirtualMachine"] if item.after}
        if controlling_uid(after) not in vms or key != DISKS[WEB]:
            return f"DataVolume {key} is given to {controlling_uid(after)}"
        if before is not None and controlling_uid(before) not in (None, controlling_uid(after)):
            return f"DataVolume {key} is taken from {controlling_uid(before)}"
        return None

    def _too_early(self, pod: Json) -> str | None:
        owner = controlling_uid(pod)
        vmis = self._store.list(VIRTUAL_MACHINE_INSTANCE)
        key = next((item for item, body in vmis if body["metadata"]["uid"] == owner and item in DISKS), None)
        if key is None:
            return None
        claims = [
            item.after
            for item in self._store.histories["PersistentVolumeClaim"]
            if item.key == DISKS[key] and item.after
        ]
        if not claims:
            return f"a Pod is made for {key}, and there never was a claim"
        if self.is_calm and self._is_half_full(key):
            return f"a Pod is made for {key}, and its claim is a DataVolume's that never was full"
        is_full = any(_phase(item) in FILLED for item in self._known(key))
        fillers = [
            any(o["kind"] == DATA_VOLUME.kind for o in item["metadata"].get("ownerReferences") or ()) for item in claims
        ]
        is_filled_by_nobody = not all(fillers)
        return None if is_full or is_filled_by_nobody else f"a Pod is made for {key}, and its disk is not full"

    def _is_half_full(self, key: Key) -> bool:
        """Whether the claim belongs to a DataVolume that was never reported as finished."""
        claim = self._store.find(PERSISTENT_VOLUME_CLAIM, DISKS[key]) or {"metadata": {}}
        owners = claim["metadata"].get("ownerReferences") or ()
        fillers = [item["uid"] for item in owners if item["kind"] == DATA_VOLUME.kind]
        full = {item["metadata"]["uid"] for item in self._known(key) if _phase(item) in FILLED}
        return bool(fillers) and fillers[0] not in full

    def _known(self, key: Key) -> Iterator[Json]:
        """Return all versions of a machine's DataVolume."""
        return (
            history.after
            for history in self._store.histories[DATA_VOLUME.kind]
            if history.key == DISKS[key] and history.after
        )

    def not_as_wanted(self, *, is_served: bool) -> str | None:
        """Return what a machine lacks or reports wrongly at rest."""
        for key in DISKS:
            vm, vmi = self._store.find(VIRTUAL_MACHINE, key), self._store.find(VIRTUAL_MACHINE_INSTANCE, key)
            if vm is None or "deletionTimestamp" in vm["metadata"]:
                continue
            if vm["spec"]["runStrategy"] == "Halted":
                if vmi is not None:
                    return f"VM {key} is to be halted, and has an instance"
            elif "startFailure" in vm.get("status", {}):
                continue  # it waits a while
            elif vmi is None:
                if lacking := self._why_none(key, vm, is_served=is_served):
                    return lacking
            elif lacking := self._why_no_pod(key, vmi, is_served=is_served):
                return lacking
        return None

    def _why_none(self, key: Key, vm: Json, *, is_served: bool) -> str | None:
        """Return why it is wrong that a VM which should run has no VMI, or does not report it."""
        reported, data_volume, uid = (
            str(vm.get("status")),
            self._store.find(DATA_VOLUME, DISKS[key]),
            vm["metadata"]["uid"],
        )
        if key != WEB:
            return f"VM {key} has no instance"
        if not is_served:
            return (
                None
                if "does not serve DataVolumes" in reported
                else f"DataVolumes are not served, and VM web says {reported}"
            )
        if data_volume is None or controlling_uid(data_volume) is None:
            return "VM web has no DataVolume of its own, and makes none"
        if controlling_uid(data_volume) != uid:
            return (
                None
                if "belongs to another" in reported
                else f"VM web's DataVolume is another's, and it says {reported}"
            )
        return "VM web has all it needs, and no instance" if _phase(data_volume) in STARTABLE else None

    def _why_no_pod(self, key: Key, vmi: Json, *, is_served: bool) -> str | None:
        uid, is_over = vmi["metadata"]["uid"], vmi.get("status", {}).get("phase") in OVER
        has_pod = any(controlling_uid(pod) == uid for _unused, pod in self._store.list(POD))
        if has_pod or is_over or "deletionTimestamp" in vmi["metadata"]:
            return None
        return f"VMI {key} has all it needs, and no Pod" if self._is_full(key, is_served=is_served) else None

    def _is_full(self, key: Key, *, is_served: bool) -> bool:
        """Whether the claim of a machine exists and is complete."""
        claim, result = self._store.find(PERSISTENT_VOLUME_CLAIM, DISKS[key]), self._store.find(DATA_VOLUME, DISKS[key])
        if claim is None:
            return False
        is_filled_by = any(
            reference["kind"] == DATA_VOLUME.kind for reference in claim["metadata"].get("ownerReferences") or ()
        )
        if is_filled_by or (key == WEB and result is not None):
            return is_served and result is not None and _phase(result) in FILLED
        return True


def _phase(body: Json) -> str:
    return str((body.get("status") or {}).get("phase", ""))

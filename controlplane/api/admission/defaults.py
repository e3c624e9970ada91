# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an object says when its author said nothing. Works on plain values, so that fields we do not know survive.

Each function returns a changed copy, or the very same object when there is nothing to add: applying one twice adds
nothing. virt-controller applies default_instance itself to what it creates; it never relies on the webhook.
What the CRD's schema lets through makes nothing here raise, however wrong it is.
Differs from upstream in one place: a machine without networks gets masquerade, because bridge is not built.
"""

from __future__ import annotations

import copy
import uuid
from typing import Any

from kubevirt_api import names

from controlplane.api.objects import quantity
from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.meta import Quantity

Json = dict[str, Any]

ARCHITECTURE = "amd64"
MACHINE_TYPE = "q35"
CPU_MODEL = "host-model"
DISK_BUS = "sata"


def default_vm(vm: Json, configuration: KubeVirtConfiguration, seed: str | None) -> Json:
    """Fill in a VirtualMachine: architecture and board, so that a later change of the defaults does not touch it.

    seed: at creation, what the firmware's UUID and serial number are made from (unique per object); None afterwards.
    """
    filled = copy.deepcopy(vm)
    spec = filled["spec"]["template"]["spec"]
    _placement(spec, configuration)
    if seed is not None:
        _identity(spec["domain"], seed, serial=True)
        _finalizer(filled, names.VM_FINALIZER)
    return vm if filled == vm else filled


def default_instance(vmi: Json, configuration: KubeVirtConfiguration, seed: str) -> Json:
    """Fill in a VirtualMachineInstance before it is created. seed: see default_vm."""
    filled = copy.deepcopy(vmi)
    _spec(filled["spec"], configuration)
    _identity(filled["spec"]["domain"], seed, serial=False)
    _finalizer(filled, names.VMI_FINALIZER)
    return vmi if filled == vmi else filled


def _spec(spec: Json, configuration: KubeVirtConfiguration) -> None:
    _placement(spec, configuration)
    _resources(spec["domain"], configuration)
    _devices(spec)
    _switches(spec["domain"], configuration)
    _absent(spec, "evictionStrategy", configuration.eviction_strategy or "None")


def _absent(holder: Json, field: str, value: Any) -> None:
    """Set a field that is missing, null or empty."""
    if holder.get(field) in (None, "", []):
        holder[field] = value


def _inside(holder: Json, field: str) -> Json:
    """Return an object-valued field, made if it is missing."""
    if holder.get(field) is None:
        holder[field] = {}
    found: Json = holder[field]
    return found


def _finalizer(obj: Json, finalizer: str) -> None:
    listed = _inside(obj, "metadata").get("finalizers") or []
    if finalizer not in listed:
        obj["metadata"]["finalizers"] = [*listed, finalizer]


def _placement(spec: Json, configuration: KubeVirtConfiguration) -> None:
    _absent(spec, "architecture", ARCHITECTURE)
    _absent(_inside(spec["domain"], "machine"), "type", configuration.machine_type or MACHINE_TYPE)


def _identity(domain: Json, seed: str, *, serial: bool) -> None:
    firmware = _inside(domain, "firmware")
    _absent(firmware, "uuid", str(uuid.uuid5(uuid.NAMESPACE_OID, f"{seed}/uuid")))
    if serial:
        _absent(firmware, "serial", str(uuid.uuid5(uuid.NAMESPACE_OID, f"{seed}/serial")))


def _resources(domain: Json, configuration: KubeVirtConfiguration) -> None:
    requests = dict((domain.get("resources") or {}).get("requests") or {})
    limits = (domain.get("resources") or {}).get("limits") or {}
    least = limits.get("cpu", configuration.cpu_request)
    if least is not None and "cpu" not in requests:
        _inside(_inside(domain, "resources"), "requests")["cpu"] = least
    memory = requests.get("memory") or limits.get("memory")
    if memory is not None:
        _absent(_inside(domain, "memory"), "guest", memory)
    cpu = _inside(domain, "cpu")
    if not any(cpu.get(part) for part in ("cores", "sockets", "threads")):
        asked = limits.get("cpu") or requests.get("cpu")
        cpu.update(cores=1, sockets=_sockets(asked), threads=1)


def _sockets(asked: Quantity | None) -> int:
    try:
        return max(quantity.to_whole(asked), 1) if asked else 1
    except quantity.QuantityError:
        return 1  # whoever judges the object says so


def _devices(spec: Json) -> None:
    devices = _inside(spec["domain"], "devices")
    for volume in spec.get("volumes") or ():
        if volume.get("containerDisk"):
            image = volume["containerDisk"]
            _absent(image, "imagePullPolicy", pull_policy(image["image"]))
    disks = devices.get("disks") or []
    named = {disk["name"] for disk in disks}
    added = [{"name": volume["name"]} for volume in spec.get("volumes") or () if volume["name"] not in named]
    if added:
        devices["disks"] = [*disks, *added]
    for disk in devices.get("disks") or ():
        _disk(disk)
    wanted = devices.get("autoattachPodInterface") is not False
    if wanted and not spec.get("networks") and not devices.get("interfaces"):
        spec["networks"] = [{"name": "default", "pod": {}}]
        devices["interfaces"] = [{"name": "default", "masquerade": {}}]


def _disk(disk: Json) -> None:
    if disk.get("cdrom") is not None:
        _absent(disk["cdrom"], "readonly", True)
        _absent(disk["cdrom"], "tray", "closed")
        _absent(disk["cdrom"], "bus", DISK_BUS)
    else:
        _absent(_inside(disk, "disk"), "bus", DISK_BUS)


def _switches(domain: Json, configuration: KubeVirtConfiguration) -> None:
    _absent(domain["cpu"], "model", configuration.cpu_model or CPU_MODEL)
    _inside(_inside(domain, "features"), "acpi")
    for feature in domain["features"].values():
        _absent(feature, "enabled", True)
    for timer in ((domain.get("clock") or {}).get("timer") or {}).values():
        _absent(timer, "present", True)


def pull_policy(image: str) -> str:
    """Return the pull policy of an image that names none: Always for :latest or no tag, as Kubernetes does."""
    if "@" in image:
        return "IfNotPresent"
    tag = image.rpartition("/")[2].partition(":")[2]
    return "Always" if tag in ("", "latest") else "IfNotPresent"

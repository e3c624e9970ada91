# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Defaults of an object's fields. Works on plain values, so unknown fields survive.

Each function returns a changed copy, or the same object when nothing changes; applying it twice changes nothing more.
virt-controller applies default_instance itself to the instances that it creates, and does not rely on the webhook.
Nothing here raises for a stored object, even an invalid one (admission was off, or another version admitted it): a
value of an unexpected shape gets no default, and validation reports it.
One default differs from upstream: a machine without networks gets masquerade, because bridge is not implemented.
"""

from __future__ import annotations

import copy
import uuid
from typing import Any

from kubevirt_api import names

from controlplane.api.admission.fields import asks_for_nothing
from controlplane.api.admission.known_fields import INFERABLE
from controlplane.api.admission.paths import value_at, with_value
from controlplane.api.objects import quantity
from controlplane.api.objects.guest_memory import amount_in_bytes, refuse_room
from controlplane.api.objects.kubevirt import STAGE, KubeVirtConfiguration
from controlplane.api.objects.meta import Quantity
from controlplane.api.objects.vm import VirtualMachineSpec
from controlplane.api.objects.vmi.devices import DEFAULT_BUS
from controlplane.api.objects.vmi.domain import MAX_VCPUS
from controlplane.api.vmi_label import vmi_label_value

Json = dict[str, Any]

ARCHITECTURE = "amd64"
MACHINE_TYPE = "q35"
CPU_MODEL = "host-model"
WATCHDOG_ACTION = "reset"
PROBE_NUMBERS = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
"""Kubernetes' defaults for a Pod. A VMI has them explicitly, as upstream's does."""
MOST_ROOM = 512 << 30
"""Limit of a default maxGuest, in bytes. It fits into 40-bit addresses, the least that supported processors have."""


def default_vm(vm: Json, configuration: KubeVirtConfiguration, seed: str | None) -> Json:
    """Set a VirtualMachine's architecture and machine type, so that later changes of these defaults do not affect it.

    seed: unique per object; at creation, firmware UUID and serial number are derived from it. None after creation.
    """
    filled = copy.deepcopy(vm)
    _leave_out_uninferable(_inside(filled, "spec"))
    spec = _inside(_inside(_inside(filled, "spec"), "template"), "spec")
    _placement(spec, configuration)
    if seed is not None:
        _identity(_inside(spec, "domain"), seed, serial=True)
        _finalizer(filled, names.VM_FINALIZER)
    return vm if filled == vm else filled


def _leave_out_uninferable(spec: Json) -> None:
    """Remove references that are to be inferred from a volume or left out, as upstream where a volume names nothing."""
    for name in INFERABLE[VirtualMachineSpec.__name__]:
        if isinstance(spec.get(name), dict) and asks_for_nothing(VirtualMachineSpec, name, spec[name]):
            del spec[name]


def default_instance(vmi: Json, configuration: KubeVirtConfiguration, seed: str) -> Json:
    """Set all defaults of a VirtualMachineInstance before it is created. seed: see default_vm."""
    filled = copy.deepcopy(vmi)
    spec = _inside(filled, "spec")
    _spec(spec, configuration)
    _identity(_inside(spec, "domain"), seed, serial=False)
    _finalizer(filled, names.VMI_FINALIZER)
    return vmi if filled == vmi else filled


def default_migration(migration: Json, _unused: KubeVirtConfiguration, seed: str | None) -> Json:
    """Set a VirtualMachineInstanceMigration's label, by which controllers find it, and at creation its finalizer."""
    filled = copy.deepcopy(migration)
    name = _seen(filled, "spec").get("vmiName")
    if isinstance(name, str) and name:
        _inside(_inside(filled, "metadata"), "labels")[names.VMI_NAME] = vmi_label_value(name)
    if seed is not None:
        _finalizer(filled, names.MIGRATION_FINALIZER)
    return migration if filled == migration else filled


def attach_devices(spec: Any, machine: tuple[str, ...] = ()) -> Any:
    """Return a spec whose machine, at this path in it, has the disks and the interface that it gets by default.

    Rules about them are checked on that. Nothing of the given spec is changed.
    """
    domain, declared = value_at(spec, *machine, "domain"), value_at(spec, *machine, "domain", "devices")
    if not isinstance(domain, dict) or not isinstance(declared, dict | None):
        return spec
    devices = {**(declared or {})}
    filled = {**value_at(spec, *machine), "domain": {**domain, "devices": devices}}
    _attach(filled, devices)
    return with_value(spec, machine, filled) if machine else filled


def _spec(spec: Json, configuration: KubeVirtConfiguration) -> None:
    _placement(spec, configuration)
    _resources(_inside(spec, "domain"), configuration)
    _max_sockets(_inside(spec, "domain"), configuration)
    _max_guest(_inside(spec, "domain"), configuration)
    _devices(spec)
    _switches(_inside(spec, "domain"), configuration)
    _absent(spec, "evictionStrategy", configuration.eviction_strategy or "None")
    for probe in (_seen(spec, "livenessProbe"), _seen(spec, "readinessProbe")):
        _probe(probe)


def _probe(probe: Json) -> None:
    """Set the numbers of a declared probe. 0 counts as unset, as in Kubernetes."""
    for field, number in PROBE_NUMBERS.items() if probe else ():
        if probe.get(field) is None or (probe[field].__class__ is int and probe[field] == 0):
            probe[field] = number


def _absent(holder: object, field: str, value: Any) -> None:
    """Set a field that is missing, null or empty. Does nothing when the holder is no object."""
    if isinstance(holder, dict) and holder.get(field) in (None, "", []):
        holder[field] = value


def _inside(holder: Json, field: str) -> Json:
    """Return an object-valued field; create it if it is missing. For another type: an object without a parent."""
    if holder.get(field) is None:
        holder[field] = {}
    return _seen(holder, field)


def _seen(holder: Json, field: str) -> Json:
    """Return an object-valued field; {} for a value of another type."""
    value = holder.get(field)
    return value if isinstance(value, dict) else {}


def _objects(holder: Json, field: str) -> list[Json]:
    """Return the objects in a list-valued field; [] for a value of another type."""
    value = holder.get(field)
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _finalizer(obj: Json, finalizer: str) -> None:
    metadata = _inside(obj, "metadata")
    listed = metadata.get("finalizers") or []
    if isinstance(listed, list) and finalizer not in listed:
        metadata["finalizers"] = [*listed, finalizer]


def _placement(spec: Json, configuration: KubeVirtConfiguration) -> None:
    _absent(spec, "architecture", ARCHITECTURE)
    _absent(_inside(_inside(spec, "domain"), "machine"), "type", configuration.machine_type or MACHINE_TYPE)


def _identity(domain: Json, seed: str, *, serial: bool) -> None:
    firmware = _inside(domain, "firmware")
    _absent(firmware, "uuid", str(uuid.uuid5(uuid.NAMESPACE_OID, f"{seed}/uuid")))
    if serial:
        _absent(firmware, "serial", str(uuid.uuid5(uuid.NAMESPACE_OID, f"{seed}/serial")))


def _resources(domain: Json, configuration: KubeVirtConfiguration) -> None:
    resources = _seen(domain, "resources")
    requests, limits = dict(_seen(resources, "requests")), _seen(resources, "limits")
    least = limits.get("cpu", configuration.cpu_request)
    if least is not None and "cpu" not in requests:
        _inside(_inside(domain, "resources"), "requests")["cpu"] = least
    memory = requests.get("memory") or limits.get("memory")
    if memory is not None:
        _absent(_inside(domain, "memory"), "guest", memory)
    cpu = _inside(domain, "cpu")
    if not any(cpu.get(part) for part in ("cores", "sockets", "threads")):
        amount = limits.get("cpu") or requests.get("cpu")
        cpu.update(cores=1, sockets=_sockets(amount), threads=1)


def _max_sockets(domain: Json, configuration: KubeVirtConfiguration) -> None:
    """Set the most sockets that the guest can get while it runs. Without ACPI a guest notices no new one."""
    cpu, live = _inside(domain, "cpu"), configuration.live_update_configuration
    has_acpi = _seen(_seen(domain, "features"), "acpi").get("enabled") is not False
    if configuration.vm_rollout_strategy == STAGE or cpu.get("maxSockets") or not has_acpi:
        return
    counts = [cpu.get(part) or 1 for part in ("sockets", "cores", "threads")]
    if all(isinstance(count, int) and count > 0 for count in counts):
        sockets, cores, threads = counts
        maximum = live.max_cpu_sockets or sockets * live.max_hotplug_ratio
        cpu["maxSockets"] = max(sockets, min(maximum, MAX_VCPUS // (cores * threads)))


def _max_guest(domain: Json, configuration: KubeVirtConfiguration) -> None:
    """Set the most memory that the guest can get while it runs, if it can get any."""
    memory, live = _seen(domain, "memory"), configuration.live_update_configuration
    guest = amount_in_bytes(memory.get("guest"))
    if configuration.vm_rollout_strategy == STAGE or memory.get("maxGuest") or not guest:
        return
    usual = min(guest * live.max_hotplug_ratio, MOST_ROOM)
    most = usual if live.max_guest is None else amount_in_bytes(live.max_guest)
    if guest < most and not refuse_room(guest, most):
        memory["maxGuest"] = quantity.from_bytes(most)


def _sockets(cpus: Quantity | None) -> int:
    try:
        count = quantity.to_whole(cpus) if isinstance(cpus, str | int | float) and cpus else 1
        return min(max(count, 1), MAX_VCPUS)  # what no node has is the scheduler's to say, by the Pod's request
    except ValueError:
        return 1  # validation reports it


def _devices(spec: Json) -> None:
    devices = _inside(_inside(spec, "domain"), "devices")
    for image in (_seen(volume, "containerDisk") for volume in _objects(spec, "volumes")):
        if isinstance(image.get("image"), str):
            _absent(image, "imagePullPolicy", pull_policy(image["image"]))
    _attach(spec, devices)
    for disk in _objects(devices, "disks"):
        _disk(disk)
    if devices.get("watchdog") is not None:
        _absent(_inside(_seen(devices, "watchdog"), "i6300esb"), "action", WATCHDOG_ACTION)


def _attach(spec: Json, devices: Json) -> None:
    """Add a disk for each volume without one, and the Pod's network. Replaces lists, and changes none."""
    disks = devices.get("disks") or []
    named = [disk.get("name") for disk in _objects(devices, "disks")]
    names_of_volumes = dict.fromkeys(
        name for volume in _objects(spec, "volumes") if isinstance(name := volume.get("name"), str)
    )
    added = [{"name": name} for name in names_of_volumes if name not in named]
    if added and isinstance(disks, list):
        devices["disks"] = [*disks, *added]
    needs_interface = devices.get("autoattachPodInterface") is not False
    if needs_interface and not spec.get("networks") and not devices.get("interfaces"):
        spec["networks"] = [{"name": "default", "pod": {}}]
        devices["interfaces"] = [{"name": "default", "masquerade": {}}]


def _disk(disk: Json) -> None:
    if disk.get("cdrom") is not None:
        _absent(disk["cdrom"], "readonly", True)
        _absent(disk["cdrom"], "tray", "closed")
        _absent(disk["cdrom"], "bus", DEFAULT_BUS)
    else:
        _absent(_inside(disk, "disk"), "bus", DEFAULT_BUS)


def _switches(domain: Json, configuration: KubeVirtConfiguration) -> None:
    _absent(_inside(domain, "cpu"), "model", configuration.cpu_model or CPU_MODEL)
    _inside(_inside(domain, "features"), "acpi")
    for feature in _seen(domain, "features").values():
        _absent(feature, "enabled", True)
    for timer in _seen(_seen(domain, "clock"), "timer").values():
        _absent(timer, "present", True)


def pull_policy(image: str) -> str:
    """Return the pull policy of an image that names none: Always for :latest or no tag, as Kubernetes does."""
    if "@" in image:
        return "IfNotPresent"
    tag = image.rpartition("/")[2].partition(":")[2]
    return "Always" if tag in ("", "latest") else "IfNotPresent"

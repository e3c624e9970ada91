# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about CPU, memory, machine type, firmware and clock."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from fractions import Fraction

from controlplane.api.admission.problem import Problem, below, excerpt, key
from controlplane.api.objects import quantity
from controlplane.api.objects.guest_memory import guest_bytes, most_bytes, refuse_room
from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.meta import Quantity
from controlplane.api.objects.vmi.domain import MAX_VCPUS, Clock, Cpu, DomainSpec, Firmware, KernelBoot

MAX_CPU = 10**9
MIN_MEMORY = 10**6
MOST_MEBIBYTES = 10**6
"""Limit of a number without its unit: nobody means more mebibytes."""
MAX_MEMORY = 2**62
"""Twice as much fits into the 64-bit number that Kubernetes counts in: a Pod's limit is more than its guest's memory.
What no node has is the scheduler's to say."""
MOST_MAX_GUEST = 16 * 2**40
"""Limit of maxGuest, which takes addresses of the guest, and no memory of a node."""
MACHINE_TYPES = ("q35", "pc-q35-*", "pc", "pc-i440fx-*")
"""Patterns of allowed machine types. The configuration can name others."""


def check_compute(domain: DomainSpec, configuration: KubeVirtConfiguration, path: str) -> Iterator[Problem]:
    """Check everything in a domain except its devices."""
    yield from _cpu(domain, path)
    yield from _memory(domain, path)
    yield from _machine(domain, configuration, path)
    if domain.firmware is not None:
        yield from _firmware(domain, domain.firmware, below(path, "firmware"))
    if domain.clock is not None:
        yield from _clock(domain.clock, below(path, "clock"))


def _number(value: Quantity | None) -> Fraction | None:
    """Return an amount; None if it is unset or unreadable. fields.py reports an unreadable one."""
    if value is None:
        return None
    try:
        return quantity.parse(value)
    except quantity.QuantityError:
        return None


def _cpu(domain: DomainSpec, path: str) -> Iterator[Problem]:
    if domain.cpu is not None and domain.cpu.vcpus > MAX_VCPUS:
        count = domain.cpu.vcpus
        text = f"sockets * cores * threads is {excerpt(count)} virtual CPUs; a q35 machine takes at most {MAX_VCPUS}"
        yield Problem(below(path, "cpu"), text)
    elif domain.cpu is not None:
        yield from _max_sockets(domain.cpu, below(path, "cpu.maxSockets"))
    requests, limits = below(path, "resources.requests"), below(path, "resources.limits")
    request = _number(domain.resources.requests.get("cpu"))
    limit = _number(domain.resources.limits.get("cpu"))
    for amount, where in ((request, requests), (limit, limits)):
        if amount is not None and not 0 <= amount <= MAX_CPU:
            yield Problem(key(where, "cpu"), f"must be from 0 to {MAX_CPU}; write e.g. 2 or 500m")
    if limit == 0:
        # Kubernetes treats 0 as no limit, and a ResourceQuota counts 0: the guest could take all CPUs of a node.
        yield Problem(key(limits, "cpu"), "must be more than 0; remove it for no limit")
    if request is not None and limit is not None and request > limit:
        yield Problem(key(requests, "cpu"), "is above limits[cpu]; lower the request or raise the limit")
    for where, amounts in ((requests, domain.resources.requests), (limits, domain.resources.limits)):
        for name in sorted(set(amounts) - {"cpu", "memory"}):
            text = "not built in this version; only cpu and memory can be requested, remove it"
            yield Problem(key(where, name), text, "FieldValueNotSupported")


def _max_sockets(cpu: Cpu, where: str) -> Iterator[Problem]:
    if 0 < cpu.max_sockets < cpu.sockets:
        yield Problem(where, f"is below sockets, which is {cpu.sockets}; raise it, or remove it")
    elif cpu.most_vcpus > MAX_VCPUS:
        most = MAX_VCPUS // cpu.vcpus_per_socket
        text = f"maxSockets * cores * threads is {excerpt(cpu.most_vcpus)} virtual CPUs; a q35 machine takes at most"
        yield Problem(where, f"{text} {MAX_VCPUS}, so at most {most} such sockets")


def _memory(domain: DomainSpec, path: str) -> Iterator[Problem]:
    request, limit = domain.resources.requests.get("memory"), domain.resources.limits.get("memory")
    guest = domain.memory.guest if domain.memory is not None else None
    guest_path = below(path, "memory.guest")
    request_path = key(below(path, "resources.requests"), "memory")
    limit_path = key(below(path, "resources.limits"), "memory")
    if guest is None and request is None and limit is None:
        text = "memory is required; set memory.guest, e.g. 1Gi, or resources.requests.memory"
        yield Problem(guest_path, text, "FieldValueRequired")
    for amount, where in ((guest, guest_path), (request, request_path), (limit, limit_path)):
        yield from _memory_amount(amount, where, MAX_MEMORY)
    if domain.memory is not None and domain.memory.max_guest is not None:
        yield from _max_guest(domain, domain.memory.max_guest, below(path, "memory.maxGuest"))
    limit_amount, request_amount, guest_amount = _number(limit), _number(request), _number(guest)
    if limit_amount is not None and request_amount is not None and request_amount > limit_amount:
        yield Problem(request_path, "is above limits[memory]; lower the request or raise the limit")
    if limit_amount is not None and guest_amount is not None and guest_amount > limit_amount:
        yield Problem(guest_path, "is above resources.limits[memory]; lower it or raise the limit")


def _max_guest(domain: DomainSpec, amount: Quantity, path: str) -> Iterator[Problem]:
    problems = list(_memory_amount(amount, path, MOST_MAX_GUEST))
    yield from problems
    try:
        refusal = "" if problems else refuse_room(guest_bytes(domain), most_bytes(domain))
    except quantity.QuantityError:  # fields.py reports it
        return
    if refusal:
        yield Problem(path, f"{refusal}; change or remove maxGuest")


def _memory_amount(amount: Quantity | None, path: str, most: int) -> Iterator[Problem]:
    number = _number(amount)
    if number is None:
        return
    if number < 0:
        yield Problem(path, f"{excerpt(amount)} is negative; memory must be positive, e.g. 1Gi")
    elif number < MIN_MEMORY:
        yield Problem(path, f"{excerpt(amount)} is too small; must be at least 1M, e.g. {_meant(amount)}")
    elif number > most:
        yield Problem(path, f"{excerpt(amount)} is too large; must be at most {quantity.from_bytes(most)}")


def _meant(amount: Quantity | None) -> str:
    """Return the amount that was probably meant: a number alone counts bytes, and m thousandths of one."""
    text = str(amount)
    number, is_milli = text.removesuffix("m"), text.endswith("m")
    if not number.isdecimal() or not 0 < int(number) < MOST_MEBIBYTES:
        return "1Gi"
    return f"{number}Mi ({'m is a thousandth' if is_milli else 'without a unit it counts bytes'})"


def _machine(domain: DomainSpec, configuration: KubeVirtConfiguration, path: str) -> Iterator[Problem]:
    machine_type = domain.machine.type if domain.machine is not None else ""
    allowed = configuration.emulated_machines or MACHINE_TYPES
    if machine_type and not any(fnmatchcase(machine_type, pattern) for pattern in allowed):
        text = f"{excerpt(machine_type)} is not a machine type of this cluster; allowed: {', '.join(allowed)}"
        yield Problem(below(path, "machine.type"), text, "FieldValueNotSupported")


def _firmware(domain: DomainSpec, firmware: Firmware, path: str) -> Iterator[Problem]:
    loader = firmware.bootloader
    if loader is not None and loader.bios is not None and loader.efi is not None:
        yield Problem(below(path, "bootloader"), "bios and efi exclude each other; remove one")
    elif loader is not None and loader.efi is not None and loader.efi.secure_boot is not False:
        smm = domain.features.smm if domain.features is not None else None
        if smm is None or smm.enabled is False:
            text = (
                "secure boot (the default of efi) needs domain.features.smm.enabled: true; set that, or this to false"
            )
            yield Problem(below(path, "bootloader.efi.secureBoot"), text)
    if firmware.kernel_boot is not None:
        yield from _kernel_boot(firmware.kernel_boot, below(path, "kernelBoot"))


def _kernel_boot(boot: KernelBoot, path: str) -> Iterator[Problem]:
    container = boot.container
    if container is None:
        if boot.kernel_args:
            text = "kernel arguments need a kernel; set container.image and container.kernelPath"
            yield Problem(below(path, "kernelArgs"), text)
        return
    where = below(path, "container")
    if not container.image:
        text = "must be defined with an image; set image, e.g. quay.io/me/kernel:1"
        yield Problem(where, text, "FieldValueRequired", joint=" ")
    if not container.kernel_path and not container.initrd_path:
        text = "must be defined with at least one of the following: kernelPath, initrdPath; set kernelPath at least"
        yield Problem(where, text, "FieldValueRequired", joint=" ")
    elif not container.kernel_path:
        text = "is required; name the kernel in the image, e.g. /boot/vmlinuz"
        yield Problem(below(where, "kernelPath"), text, "FieldValueRequired")


def _clock(clock: Clock, path: str) -> Iterator[Problem]:
    if clock.utc is not None and clock.timezone:
        yield Problem(below(path, "timezone"), "utc and timezone exclude each other; remove one")

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about CPU, memory, firmware and clock."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.api.admission.validate.compute import check_compute
from controlplane.api.objects.decode import decode
from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.vmi.domain import DomainSpec
from tests.controlplane.api.admission.malformed import assert_refused, each, row

KERNEL = "domain/firmware/kernelBoot"

MALFORMED = [
    row("misspelt domain", "domian", {}, "did you mean domain"),
    row("no domain", "domain", ..., "is required"),
    row("zero cores", "domain/cpu/cores", 0, "from 1 to 1024"),
    row("fractional cores", "domain/cpu/cores", 1.5, "whole number, got 1.5"),
    row("cores as text", "domain/cpu/cores", "2", "whole number"),
    row("cores beyond 64 bits", "domain/cpu/cores", 2**70, "from 1 to 1024"),
    row(
        "vCPUs above the limit of the board",
        "domain/cpu",
        {"cores": 1024, "sockets": 1024, "threads": 1024},
        "at most 255",
    ),
    row("dedicated CPUs", "domain/cpu/dedicatedCpuPlacement", True, "not built"),
    row("maxSockets below sockets", "domain/cpu", {"sockets": 8, "maxSockets": 4}, "below sockets", at="maxSockets"),
    row("one socket later", "domain/cpu", {"sockets": 2, "maxSockets": 1}, "below sockets", at="maxSockets"),
    row(
        "maxSockets above the limit of the board",
        "domain/cpu",
        {"cores": 4, "sockets": 1, "maxSockets": 64},
        "so at most 63 such sockets",
        at="cpu.maxSockets",
    ),
    row("CPU model with a shell command", "domain/cpu/model", "host-model;rm -rf /", "must be letters"),
    row("CPU request above the limit", "domain/resources/requests/cpu", "3", "above limits", at="requests[cpu]"),
    row(
        "negative CPU request",
        "domain/resources/requests/cpu",
        "-1",
        "from 0 to 1000000000",
        at="resources.requests[cpu]",
    ),
    row(
        "CPU limit that cannot be counted",
        "domain/resources/limits/cpu",
        "1000000001",
        "from 0 to 1000000000;",
        at="resources.limits[cpu]",
    ),
    row("CPU limit of zero", "domain/resources/limits/cpu", "0", "must be more than 0", at="resources.limits[cpu]"),
    row("no memory", "domain", {"devices": {}}, "set memory.guest", at="domain.memory.guest"),
    row("negative memory", "domain/memory/guest", "-1Gi", "must be positive"),
    row("too little memory", "domain/memory/guest", "512Ki", "at least 1M"),
    row("too much memory", "domain/memory/guest", "9223372036854775808", "at most 4Ei"),
    row("memory without a unit", "domain/memory/guest", "2048", "e.g. 2048Mi (without a unit it counts bytes)"),
    row("memory in thousandths", "domain/memory/guest", "512m", "e.g. 512Mi (m is a thousandth)"),
    row("most memory without a unit", "domain/memory/guest", "999999", "e.g. 999999Mi (without a unit"),
    row("so many thousandths are no mebibytes", "domain/memory/guest", "1000000m", "e.g. 1Gi"),
    row("memory in kibibytes is no number alone", "domain/memory/guest", "512Ki", "e.g. 1Gi"),
    row("half a byte", "domain/memory/guest", "0.5", "e.g. 1Gi"),
    row("memory of zero", "domain/memory/guest", "0", '"0" is too small; must be at least 1M, e.g. 1Gi'),
    row(
        "memory request without a unit",
        "domain/resources/requests/memory",
        "2",
        "e.g. 2Mi",
        at="resources.requests[memory]",
    ),
    row(
        "memory limit without a unit", "domain/resources/limits/memory", "2", "e.g. 2Mi", at="resources.limits[memory]"
    ),
    row(
        "memory in an unknown unit", "domain/memory/guest", "1Gib", "write 1G (powers of 1000) or 1Gi (powers of 1024)"
    ),
    row("memory as elsewhere", "domain/memory/guest", "1.5 gb", "write 1.5G (powers of 1000) or 1.5Gi"),
    row("memory in kB", "domain/memory/guest", "2048KB", "write 2048k (powers of 1000) or 2048Ki"),
    row("memory in words", "domain/memory/guest", "a lot", "write e.g. 64M, 2Gi, 2 or 100m"),
    row("CPU with a space", "domain/resources/requests/cpu", "500 m", "write e.g.", at="requests[cpu]"),
    row(
        "maxGuest for a small guest", "domain/memory", {"guest": "512Mi", "maxGuest": "1Gi"}, "needs 1Gi", at="maxGuest"
    ),
    row("guest above maxGuest", "domain/memory", {"guest": "2Gi", "maxGuest": "1Gi"}, "above maxGuest", at="maxGuest"),
    row(
        "guest is no multiple of a block",
        "domain/memory",
        {"guest": "1025Mi", "maxGuest": "4Gi"},
        "multiple of 2Mi",
        at="maxGuest",
    ),
    row(
        "maxGuest above the limit", "domain/memory", {"guest": "1Gi", "maxGuest": "32Ti"}, "at most 16Ti", at="maxGuest"
    ),
    row(
        "maxGuest is no quantity",
        "domain/memory",
        {"guest": "1Gi", "maxGuest": "1Gib"},
        "not a quantity",
        at="maxGuest",
    ),
    row("memory is a list", "domain/memory/guest", ["1Gi"], "must be a quantity"),
    row("guest above limit", "domain/memory/guest", "4Gi", "limits[memory]"),
    row("memory request above the limit", "domain/resources/requests/memory", "3Gi", "above limits", at="[memory]"),
    row(
        "a GPU as a resource",
        "domain/resources/limits",
        {"nvidia.com/gpu": "1"},
        "only cpu and memory",
        at="limits[nvidia.com/gpu]",
    ),
    row("machine type with options", "domain/machine/type", "q35,kernel-irqchip=off", "must be letters"),
    row("unknown machine type", "domain/machine/type", "microvm", "allowed: q35"),
    row("unknown architecture", "architecture", "mips", "allowed: amd64"),
    row("malformed UUID", "domain/firmware/uuid", "not-a-uuid", "must be a UUID"),
    row("serial closes a tag", "domain/firmware/serial", "</serial>", "must be letters"),
    row("serial with a control character", "domain/firmware/serial", "a\x07b", "\\u0007"),
    row("bios and efi", "domain/firmware/bootloader", {"bios": {}, "efi": {}}, "exclude"),
    row(
        "secure boot without SMM",
        "domain",
        {"memory": {"guest": "1Gi"}, "firmware": {"bootloader": {"efi": {}}}, "devices": {}},
        "smm",
        at="bootloader.efi.secureBoot",
    ),
    row(
        "secure boot with SMM off",
        "domain",
        {
            "memory": {"guest": "1Gi"},
            "firmware": {"bootloader": {"efi": {}}},
            "features": {"smm": {"enabled": False}},
            "devices": {},
        },
        "smm",
        at="bootloader.efi.secureBoot",
    ),
    row("kernel arguments without a kernel", KERNEL, {"kernelArgs": "quiet"}, "need a kernel", at="kernelArgs"),
    row(
        "kernel path with parent references",
        KERNEL,
        {"container": {"image": "a", "kernelPath": "boot/../../../etc/shadow"}},
        "absolute path",
        at="kernelBoot.container.kernelPath",
    ),
    row(
        "no kernel in the image",
        KERNEL,
        {"container": {"image": "a", "initrdPath": "/initrd"}},
        "is required",
        at="kernelBoot.container.kernelPath",
    ),
    row(
        "no image of a kernel",
        KERNEL,
        {"container": {"image": "", "kernelPath": "/k"}},
        "must be defined with an image",
        at="kernelBoot.container",
    ),
    row(
        "neither kernel nor initrd",
        KERNEL,
        {"container": {"image": "a"}},
        "must be defined with at least one of the following: kernelPath, initrdPath",
        at="kernelBoot.container",
    ),
    row("utc and a time zone", "domain/clock/timezone", "Europe/Berlin", "exclude each other"),
    row("unknown tick policy", "domain/clock/timer/pit/tickPolicy", "sometimes", "allowed: delay"),
    row("negative grace period", "terminationGracePeriodSeconds", -5, "from 0 to 86400"),
    row("unknown reboot policy", "domain/rebootPolicy", "Maybe", "allowed: Reboot, Termi"),
    row("reboot policy is a boolean", "domain/rebootPolicy", True, "must be a string"),
    row("unknown eviction strategy", "evictionStrategy", "Pray", "allowed: None, LiveMigrate"),
]


@each(MALFORMED)
def test_malformed_compute_is_refused_with_field_and_remedy(path: str, value: Any, at: str, words: str) -> None:
    assert_refused(path, value, at, words)


ACCEPTED: dict[str, dict[str, Any]] = {
    "least memory": {"memory": {"guest": "1M"}},
    "most memory": {"memory": {"guest": "4Ei"}},
    "more memory than any node has": {"resources": {"requests": {"memory": "1Ei"}}},
    "all of the limit": {"memory": {"guest": "1Gi"}, "resources": {"limits": {"memory": "1Gi"}}},
    "a request of the limit": {"resources": {"requests": {"memory": "1Gi"}, "limits": {"memory": "1Gi"}}},
    "only a limit": {"resources": {"limits": {"memory": "1Gi"}}},
    "no room for more": {"memory": {"guest": "2Gi", "maxGuest": "2Gi"}},
    "most vCPUs": {"cpu": {"sockets": 5, "cores": 17, "threads": 3}},
    "most vCPUs later": {"cpu": {"sockets": 1, "cores": 17, "threads": 3, "maxSockets": 5}},
    "no more sockets later": {"cpu": {"sockets": 4, "maxSockets": 4}},
    "most CPUs that can be counted": {"resources": {"requests": {"cpu": "1e9"}, "limits": {"cpu": "1e9"}}},
    "a CPU request of the limit": {"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "2"}}},
    "least CPU request": {"resources": {"requests": {"cpu": "0"}}},
    "more CPUs than any node has": {"resources": {"requests": {"cpu": "5000"}, "limits": {"cpu": "5000"}}},
    "only a request": {"resources": {"requests": {"memory": "1Gi"}}},
    **{
        f"the machine type {name}": {"machine": {"type": name}} for name in ("q35", "pc-q35-9.2", "pc", "pc-i440fx-9.2")
    },
    "no kernel": {"firmware": {"kernelBoot": {}}},
    "UEFI with SMM": {"firmware": {"bootloader": {"efi": {}}}, "features": {"smm": {}}},
    "UEFI without secure boot": {"firmware": {"bootloader": {"efi": {"secureBoot": False}}}},
    "BIOS": {"firmware": {"bootloader": {"bios": {}}}},
    "a kernel": {"firmware": {"kernelBoot": {"kernelArgs": "quiet", "container": {"image": "a", "kernelPath": "/k"}}}},
    "UTC": {"clock": {"utc": {}}},
    "a time zone": {"clock": {"timezone": "Europe/Berlin"}},
}


@pytest.mark.parametrize(
    ("container", "text"),
    [
        ({"kernelPath": "/k"}, "must be defined with an image;"),
        ({"image": "a"}, "must be defined with at least one of the following: kernelPath, initrdPath;"),
    ],
)
def test_a_kernel_without_its_parts_is_refused_in_the_words_that_clients_look_for(
    container: dict[str, Any], text: str
) -> None:
    domain = decode({"memory": {"guest": "1Gi"}, "firmware": {"kernelBoot": {"container": container}}}, DomainSpec)
    (problem,) = check_compute(domain, KubeVirtConfiguration(), "spec.domain")
    assert str(problem).startswith(f"spec.domain.firmware.kernelBoot.container {text}")


@pytest.mark.parametrize("domain", ACCEPTED.values(), ids=ACCEPTED)
def test_values_up_to_their_limits_are_accepted(domain: dict[str, Any]) -> None:
    declared = domain if "memory" in str(domain) else {**domain, "memory": {"guest": "1Gi"}}

    assert list(check_compute(decode(declared, DomainSpec), KubeVirtConfiguration(), "spec.domain")) == []


REQUIRED = "FieldValueRequired"
NOT_SUPPORTED = "FieldValueNotSupported"


@pytest.mark.parametrize(
    ("domain", "field", "cause"),
    [
        pytest.param({"memory": None}, "memory.guest", REQUIRED, id="memory"),
        pytest.param(
            {"resources": {"limits": {"example.com/a": "1"}}},
            "resources.limits[example.com/a]",
            NOT_SUPPORTED,
            id="GPU",
        ),
        pytest.param({"machine": {"type": "microvm"}}, "machine.type", NOT_SUPPORTED, id="machine type"),
        pytest.param(
            {"firmware": {"kernelBoot": {"container": {"kernelPath": "/k"}}}},
            "firmware.kernelBoot.container",
            REQUIRED,
            id="image of a kernel",
        ),
        pytest.param(
            {"firmware": {"kernelBoot": {"container": {"image": "a"}}}},
            "firmware.kernelBoot.container",
            REQUIRED,
            id="kernel and initrd",
        ),
        pytest.param(
            {"firmware": {"kernelBoot": {"container": {"image": "a", "initrdPath": "/i"}}}},
            "firmware.kernelBoot.container.kernelPath",
            REQUIRED,
            id="kernel",
        ),
        pytest.param(
            {"memory": {"guest": "1Gi", "maxGuest": "1"}}, "memory.maxGuest", "FieldValueInvalid", id="maxGuest, once"
        ),
    ],
)
def test_a_refusal_names_field_and_cause(domain: dict[str, Any], field: str, cause: str) -> None:
    declared = decode({"memory": {"guest": "1Gi"}, **domain}, DomainSpec)
    (problem,) = check_compute(declared, KubeVirtConfiguration(), "spec.domain")
    assert (problem.path, problem.reason) == (f"spec.domain.{field}", cause)


def test_the_configuration_replaces_the_machine_types() -> None:
    domain = decode({"machine": {"type": "q35"}, "memory": {"guest": "1Gi"}}, DomainSpec)
    configuration = KubeVirtConfiguration(emulated_machines=("pc-q35-*",))

    (problem,) = check_compute(domain, configuration, "spec.domain")

    assert problem.path == "spec.domain.machine.type"
    assert problem.message.endswith("allowed: pc-q35-*")

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from tests.controlplane.hypervisor.conftest import OnFake
from tests.controlplane.hypervisor.fake_libvirt import libvirtError


@pytest.mark.parametrize(
    ("code", "origin", "expected"),
    [
        ("VIR_ERR_NO_DOMAIN", "VIR_FROM_QEMU", "NoSuchDomain"),
        ("VIR_ERR_XML_ERROR", "VIR_FROM_QEMU", "InvalidDomain"),
        ("VIR_ERR_CONFIG_UNSUPPORTED", "VIR_FROM_QEMU", "InvalidDomain"),
        ("VIR_ERR_OPERATION_INVALID", "VIR_FROM_QEMU", "WrongState"),
        ("VIR_ERR_AGENT_UNRESPONSIVE", "VIR_FROM_QEMU", "AgentSilent"),
        ("VIR_ERR_OPERATION_TIMEOUT", "VIR_FROM_QEMU", "TimedOut"),
        ("VIR_ERR_NO_CONNECT", "VIR_FROM_QEMU", "Disconnected"),
        ("VIR_ERR_OPERATION_TIMEOUT", "VIR_FROM_RPC", "TimedOut"),
        ("VIR_ERR_INTERNAL_ERROR", "VIR_FROM_RPC", "Disconnected"),
        ("VIR_ERR_SYSTEM_ERROR", "VIR_FROM_RPC", "Disconnected"),
        ("VIR_ERR_SYSTEM_ERROR", "VIR_FROM_QEMU", "HypervisorError"),
    ],
)
def test_errors_are_translated_by_name(on_fake: OnFake, code: str, origin: str, expected: str) -> None:
    raised = libvirtError("what QEMU said", getattr(on_fake.libvirt, code), getattr(on_fake.libvirt, origin))
    translated = on_fake.errors.translate("start domain web", raised)
    assert type(translated).__name__ == expected
    assert str(translated) == "cannot start domain web: what QEMU said"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("could not open kernel file '/img/kernel-boot/nope': No such file or directory", "InvalidDomain"),
        ("qemu: error reading initrd /img/kernel-boot/nope: No such file", "InvalidDomain"),
        ("could not load kernel '/img/kernel-boot/etc/os-release': Invalid argument", "InvalidDomain"),
        ("cannot set up guest memory 'pc.ram': Cannot allocate memory", "HypervisorError"),
    ],
)
def test_a_permanent_boot_failure_is_an_invalid_domain(on_fake: OnFake, text: str, expected: str) -> None:
    message = f"internal error: process exited while connecting to monitor: qemu-system-x86_64: {text}"
    raised = libvirtError(message, on_fake.libvirt.VIR_ERR_INTERNAL_ERROR, on_fake.libvirt.VIR_FROM_QEMU)
    assert type(on_fake.errors.translate("start domain web", raised)).__name__ == expected


def test_a_long_error_text_is_cut(on_fake: OnFake) -> None:
    """libvirt's errors contain QEMU's output, which a guest can make arbitrarily long."""
    assert len(str(on_fake.errors.translate("start", libvirtError("x" * 10**6, None)))) < 3000

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from controlplane.domain.builders.facts import NotBuildableError
from controlplane.domain.builders.machine import build_features, build_os, has_acpi
from tests.controlplane.domain.builders.vmis import KVM, TCG, a_vmi


@pytest.mark.parametrize("path", ["boot/vmlinuz", "/", "/boot/../../etc/shadow", "/boot//vmlinuz", "/./vmlinuz"])
def test_a_kernel_outside_the_image_is_not_built(path: str) -> None:
    """Admission refuses it too, but the builder does not rely on admission."""
    container = {"image": "example.org/kernel:1", "kernelPath": path}
    with pytest.raises(NotBuildableError, match="kernelPath"):
        build_os(a_vmi(firmware={"kernelBoot": {"container": container}}), KVM)


def test_a_kernel_image_without_an_initrd_path_has_no_initrd() -> None:
    container = {"image": "example.org/kernel:1", "kernelPath": "/boot/vmlinuz"}
    os = build_os(a_vmi(firmware={"kernelBoot": {"container": container}}), KVM)
    assert (os.kernel, os.initrd) == ("/img/kernel-boot/boot/vmlinuz", None)


def test_only_emulation_limits_the_translation_cache() -> None:
    assert build_features(a_vmi(), KVM).tcg is None
    tcg = build_features(a_vmi(), TCG).tcg
    assert tcg is not None
    assert (tcg.tb_cache.size, tcg.tb_cache.unit) == (128, "MiB")


@pytest.mark.parametrize(
    ("features", "expected"),
    [
        pytest.param(None, True, id="no features"),
        pytest.param({}, True, id="features without acpi"),
        pytest.param({"acpi": {"enabled": True}}, True, id="on"),
        pytest.param({"acpi": {"enabled": False}}, False, id="off"),
    ],
)
def test_acpi_is_on_unless_switched_off(features: object, expected: bool) -> None:
    assert has_acpi(a_vmi(features=features)) is expected


@pytest.mark.parametrize(
    ("apic", "expected"),
    [
        pytest.param({}, True, id="by default"),
        pytest.param({"enabled": True}, True, id="on"),
        pytest.param({"enabled": False}, False, id="off"),
    ],
)
def test_an_apic_that_is_switched_off_is_left_out(apic: object, expected: bool) -> None:
    assert (build_features(a_vmi(features={"apic": apic}), KVM).apic is not None) is expected


def test_uefi_without_secure_boot_uses_the_plain_firmware() -> None:
    os = build_os(a_vmi(firmware={"bootloader": {"efi": {"secureBoot": False}}}), KVM)
    assert os.loader is not None
    assert os.nvram is not None
    assert (os.loader.path, os.loader.secure) == ("/usr/share/OVMF/OVMF_CODE_4M.fd", False)
    assert os.nvram.template == "/usr/share/OVMF/OVMF_VARS_4M.fd"

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The memory device of a guest, cut out of the domain XML that a launcher reports."""

from __future__ import annotations

import pytest

from controlplane.hypervisor.errors import HypervisorError
from controlplane.hypervisor.memory_device import with_requested

DEVICE = """<memory model='virtio-mem'>
      <target>
        <size unit='KiB'>3145728</size>
        <node>0</node>
        <block unit='KiB'>2048</block>
        <requested unit='KiB'>0</requested>
        <current unit='KiB'>0</current>
        <address base='0x100000000'/>
      </target>
      <alias name='virtiomem0'/>
    </memory>"""
DOMAIN = f"<domain><memory unit='KiB'>4194304</memory><devices>{DEVICE}</devices></domain>"


def test_only_the_requested_size_of_the_device_changes() -> None:
    wanted = DEVICE.replace("<requested unit='KiB'>0<", "<requested unit='KiB'>1048576<")
    assert with_requested(DOMAIN, 1 << 30) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<domain><memory unit='KiB'>4194304</memory></domain>",
        DOMAIN.replace("<requested unit='KiB'>", "<requested>"),
        DOMAIN.replace("</requested>", ""),
        f"<requested unit='KiB'>1</requested>{DOMAIN.replace('<requested', '<asked')}",
        DEVICE.replace("</memory>", ""),
        DEVICE.replace("</requested>", "").replace("</memory>", "</memory></requested>"),
    ],
    ids=["nothing", "no device", "no unit", "no end", "elsewhere", "no end of it", "an end behind it"],
)
def test_a_domain_without_a_memory_device_is_refused(text: str) -> None:
    with pytest.raises(HypervisorError, match="no device for memory changes"):
        with_requested(text, 1 << 30)


def test_a_hostile_domain_is_searched_in_linear_time() -> None:
    with pytest.raises(HypervisorError):
        with_requested("<memory model='virtio-mem'" * 100_000, 1 << 30)  # a search from each match would not end

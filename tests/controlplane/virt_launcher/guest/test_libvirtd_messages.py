# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The log of a healthy machine has no errors of libvirtd. The lines are from libvirt 11.3."""

from __future__ import annotations

import pytest

from controlplane.virt_launcher.guest.libvirtd_messages import level_of

STAMP = "2026-11-29 05:52:19.252+0000: 28: "


@pytest.mark.parametrize(
    ("message", "is_shown"),
    [
        ("info : libvirt version: 11.3.0, package: 11.3.0-3+deb13u3 (Debian)", False),
        ("error : virHostCPUGetCPUID:1467 : Unable to open /dev/kvm: No such file or directory", False),
        ("error : virHostCPUGetCPUID:1467 : Unable to open /dev/kvm: Permission denied", True),
        ("error : virNetSocketReadWire:1782 : End of file while reading data: Input/output error", False),
        ("error : qemuAgentIO:513 : internal error: End of file from agent socket", False),
        ("error : qemuMonitorIO:576 : internal error: End of file from qemu monitor", True),
        ("warning : qemuDomainObjTaintMsg:5480 : Domain id=1 name='a' uuid=b is tainted: custom-ga-command", False),
        ("warning : qemuDomainObjTaintMsg:5480 : Domain id=1 name='a' uuid=b is tainted: custom-monitor", True),
        ("error : virCommandWait:2772 : internal error: Child process unexpected exit status 1", True),
    ],
)
def test_what_every_run_brings_is_not_shown(message: str, is_shown: bool) -> None:
    assert (level_of(STAMP + message) >= 20) is is_shown

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which messages of libvirtd are part of every run, and only help to debug. Pure; libvirtd_restart.py logs them.

libvirt logs some of them as errors, although it goes on without what it missed. Its own filters choose by source file
and level, and all errors come from one file. So the launcher chooses, by the end of the message.
"""

from __future__ import annotations

import logging

_EXPECTED = (
    # Without KVM, the Pod has no such device. Any other failure to open it is an error.
    "Unable to open /dev/kvm: No such file or directory",
    # A client has closed its connection: virt-handler, or a probe.
    "End of file while reading data: Input/output error",
    # QEMU has ended. How it ended is an event of its own.
    "End of file from agent socket",
    # virt-handler and probes send requests to the guest's agent.
    "is tainted: custom-ga-command",
)


def level_of(line: str) -> int:
    """Return the level at which a message is logged."""
    # libvirtd's version and host name come before the first warning.
    is_expected = ": info :" in line or line.rstrip().endswith(_EXPECTED)
    return logging.DEBUG if is_expected else logging.INFO

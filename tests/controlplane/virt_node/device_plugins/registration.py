# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading a device plugin's registration like a kubelet."""

from __future__ import annotations

from controlplane.virt_node.device_plugins.wire import fields


def read_register_request(data: bytes) -> tuple[str, str, str]:
    """Return version, endpoint and resource name."""
    values = {number: value.decode() for number, value in fields(data)}
    return values.get(1, ""), values.get(2, ""), values.get(3, "")

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a stream of the API (console, vnc, portforward) ends: the codes of its close frame. The reason is beside it."""

from __future__ import annotations

ENDED = 1000
"""The guest's device is gone, because the guest has stopped. Of a port: the guest has closed the connection."""
LOST = 1011
"""The connection was cut. Of a port: also because the guest has stopped, or has moved; it has closed nothing."""
TAKEN_OVER = 4001
"""Another client has opened the device. The reason names its user."""
MOVED = 4002
"""The guest runs on another node now, or is about to. The reason names it."""
TOO_SLOW = 4003
"""The client did not read what the guest wrote."""
FORBIDDEN = 4004
"""The user may not use the device any more."""
REPLACED = 4005
"""The VirtualMachineInstance was deleted, or another one has its name."""

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Condition of a VMI whose start was granted while its node's virt-handler is silent. Pure.

It is set while the node takes no machines (virt_controller/node marks the node of a silent virt-handler), and removed
afterwards. It never replaces a condition that virt-handler has written.
"""

from __future__ import annotations

from kubevirt_api import condition_types
from kubevirt_api.names import SCHEDULABLE

from controlplane.api.objects import conditions
from controlplane.api.objects.meta import Condition
from controlplane.api.objects.phase import SCHEDULED
from controlplane.virt_controller.vmi.evidence import NodeState


def with_silent_handler(
    listed: conditions.Conditions, node: NodeState | None, phase: str, stamp: str
) -> conditions.Conditions:
    """Set or remove the condition after the hand-over, unless virt-handler has written Synchronized itself."""
    synchronized = conditions.find(listed, condition_types.SYNCHRONIZED)
    if synchronized is not None and synchronized.reason != condition_types.VIRT_HANDLER_SILENT:
        return listed
    if node is None or not node.takes_none or phase != SCHEDULED:
        return conditions.remove(listed, condition_types.SYNCHRONIZED)
    message = (
        f"waiting for virt-handler on {node.name}, which is to start the guest: the node takes no machines now "
        f"(label {SCHEDULABLE} is false), because it is silent or is being replaced"
    )
    return conditions.put(
        listed,
        Condition(
            type=condition_types.SYNCHRONIZED,
            status="False",
            reason=condition_types.VIRT_HANDLER_SILENT,
            message=message,
        ),
        stamp,
    )

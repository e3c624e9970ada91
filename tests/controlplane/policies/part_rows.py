# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a write to the status of a Pod that is no launcher may change. None: the request is accepted."""

from __future__ import annotations

from tests.controlplane.policies.handler_rows import Row
from tests.controlplane.policies.pod_rows import (
    CONTROLLER,
    KUBELET,
    LABELS,
    NOTES,
    PLACED_PLAIN,
    PLAIN,
    PLAN,
    READY,
    ROOT,
    labels,
    manager,
    note,
    row,
)

PART_ROWS: dict[str, Row] = {
    "a plain Pod says whose it is with its status": labels(
        ROOT, f"{PLAIN}/status", LABELS + "kubevirt.io/created-by", made_by="1"
    ),
    "a plain Pod says whose it is with its status, by a controller": labels(
        manager("node-controller"), f"{PLAIN}/status", LABELS + "kubevirt.io/created-by", made_by="1"
    ),
    "a plain Pod says whose it is with its status, by its kubelet": labels(
        KUBELET, f"{PLACED_PLAIN}/status", "cannot update labels through pod status", made_by="1"
    ),
    "a plain Pod says whose it is with its status, by virt-controller": labels(
        CONTROLLER.unbound,
        f"{PLAIN}/status",
        "denied request",
        made_by="1",  # by either of two policies
    ),
    "a plain Pod is given a VM's name with its status": labels(
        ROOT, f"{PLAIN}/status", LABELS + "vm.kubevirt.io/name", vm="x"
    ),
    "a plain Pod is given a plan with its status": note(ROOT, f"{PLAIN}/status", "{}", NOTES + PLAN, name=PLAN),
    "a plain Pod loses its own mark with its status": labels(
        ROOT, f"{PLACED_PLAIN}/status", LABELS + "kubevirt.io", role=None
    ),
    "a plain Pod is given a plan with its status, by its kubelet": note(
        KUBELET, f"{PLACED_PLAIN}/status", "{}", NOTES + PLAN, name=PLAN
    ),
    "a plain Pod's annotation, with its status": note(KUBELET, f"{PLACED_PLAIN}/status", "b", None, name="a"),
    "a plain Pod's label, with its status": labels(ROOT, f"{PLACED_PLAIN}/status", None, app="y"),
    "the kubelet says how a plain Pod is": row(KUBELET, "STRATEGIC", f"{PLACED_PLAIN}/status", READY, None),
    "the kubelet says of a plain Pod all that it knows": row(
        KUBELET, "PUT", f"{PLACED_PLAIN}/status", lambda facts: {**facts[PLACED_PLAIN], **READY}, None
    ),
}

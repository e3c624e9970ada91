# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a Binding may write to its Pod: its labels and annotations are copied there. None: the request is accepted."""

from __future__ import annotations

from typing import Any

from tests.controlplane.policies.handler_rows import Row
from tests.controlplane.policies.pod_rows import CONTROLLER, LOOKS, PLAN, ROOT, SCHEDULER, binding, row
from tests.controlplane.policies.replay import PODS, Who

PLACING = "whoever places a Pod writes no label or annotation of KubeVirt's with it"
OLD_DOOR = PODS.replace("/pods", "/bindings")


def placed(words: str | None, name: str = "unplaced", who: Who | None = None, **metadata: Any) -> Row:
    """Bind a Pod to a node. The API server copies the Binding's metadata to the Pod."""
    return row(who or ROOT, "POST", f"{PODS}/{name}/binding", binding(name, **metadata), words)


PLACING_ROWS: dict[str, Row] = {
    "a launcher placed with another plan": placed(PLACING, annotations={PLAN: "{}"}),
    "a launcher placed with another domain's name": placed(PLACING, annotations={"kubevirt.io/domain": "x"}),
    "a launcher placed as another's": placed(PLACING, labels={"kubevirt.io/created-by": "1"}),
    "a launcher placed as another VM's": placed(PLACING, labels={"vm.kubevirt.io/name": "x"}),
    "a launcher placed as none": placed(PLACING, labels={"kubevirt.io": ""}),
    "a launcher placed with another plan, by the scheduler": placed(PLACING, who=SCHEDULER, annotations={PLAN: "{}"}),
    "a launcher placed with another plan, by virt-controller": placed(
        PLACING, who=CONTROLLER.unbound, annotations={PLAN: "{}"}
    ),
    "a launcher placed with another plan, by the old door": row(
        ROOT, "POST", OLD_DOOR, binding("unplaced", annotations={PLAN: "{}"}), PLACING
    ),
    "a plain Pod placed as a launcher": placed(PLACING, "waiting", labels=LOOKS),
    "a plain Pod placed as a launcher, by the old door": row(
        ROOT, "POST", OLD_DOOR, binding("waiting", labels=LOOKS), PLACING
    ),
    "a plain Pod placed with what is no launcher's": placed(
        None, "waiting", SCHEDULER, labels={"topology.kubernetes.io/zone": "a"}, annotations={"example.com/a": "b"}
    ),
    "a plain Pod placed": placed(None, "waiting", SCHEDULER),
    "a launcher placed with what is no launcher's": placed(
        None, who=SCHEDULER, labels={"topology.kubernetes.io/zone": "a"}, annotations={"example.com/a": "b"}
    ),
    "a launcher placed by the old door": row(ROOT, "POST", OLD_DOOR, binding("unplaced"), None),
}

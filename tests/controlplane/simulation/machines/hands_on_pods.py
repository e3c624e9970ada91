# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Actions of users on Pods: delete, force delete, replace, and remove labels."""

from __future__ import annotations

import random

from kubevirt_api.names import LAUNCHER_ROLE, ROLE

from controlplane.api.objects.resources import POD, VIRTUAL_MACHINE_INSTANCE, Key
from tests.controlplane.simulation.ledger import controlling_uid
from tests.support.store import Store

NOTHING = "nothing"
"""The result when there was nothing to act on."""


class HandsOnPods:
    def __init__(self, store: Store, rng: random.Random) -> None:
        self._store = store
        self._rng = rng

    def _pick(self) -> Key | None:
        pods = [one for one, _unused in self._store.list(POD)]
        return self._rng.choice(pods) if pods else None

    def delete(self, _unused: Key) -> str:
        one = self._pick()
        if one is None:
            return NOTHING
        self._store.delete(POD, one)
        return f"delete Pod {one}"

    def force_delete(self, _unused: Key) -> str:
        one = self._pick()
        if one is None:
            return NOTHING
        self._store.delete(POD, one, grace_period_seconds=0)
        return f"delete Pod {one} by force"

    def replace(self, key: Key) -> str:
        """Replace a Pod by another of its name."""
        pod = self._store.find(POD, key)
        if pod is None:
            return NOTHING
        owners = [{**reference, "controller": False} for reference in pod["metadata"].get("ownerReferences") or ()]
        meta = {"name": key.name, "annotations": {"squatter": "true"}, "ownerReferences": owners}
        meta["labels"] = pod["metadata"].get("labels", {})
        self._store.delete(POD, key, grace_period_seconds=0)
        self._store.create(POD, key.namespace, {"metadata": meta, "spec": {"containers": [{"name": "compute"}]}})
        return f"replace Pod {key} by one that squats"

    def remove(self, key: Key) -> str:
        """Force delete a Pod."""
        if self._store.find(POD, key) is None:
            return NOTHING
        self._store.delete(POD, key, grace_period_seconds=0)
        return f"delete Pod {key} by force"

    def hide(self, key: Key) -> str:
        """Remove the label by which a Pod is watched."""
        pod = self._store.find(POD, key)
        if pod is None or ROLE not in pod["metadata"].get("labels", {}):
            return NOTHING
        self._store.patch(POD, key, {"metadata": {"labels": {ROLE: None}}})
        return f"take the label off Pod {key}"

    def hide_of(self, vmi: Key) -> str:
        """Remove that label from the Pods of one VMI."""
        hidden = [key for key in self._pods_of(vmi) if self.hide(key) != NOTHING]
        return f"take the label off Pod {hidden[0]}" if hidden else NOTHING

    def delete_of(self, vmi: Key) -> str:
        """Delete the Pods of one VMI."""
        return self._delete_all_of(vmi, None)

    def force_delete_of(self, vmi: Key) -> str:
        return self._delete_all_of(vmi, 0)

    def _delete_all_of(self, vmi: Key, grace_period_seconds: int | None) -> str:
        pods = self._pods_of(vmi)
        for key in pods:
            self._store.delete(POD, key, grace_period_seconds=grace_period_seconds)
        how = "" if grace_period_seconds is None else " by force"
        return f"delete Pod {pods[0]}{how}" if pods else NOTHING

    def _pods_of(self, vmi: Key) -> list[Key]:
        body = self._store.find(VIRTUAL_MACHINE_INSTANCE, vmi)
        uid = None if body is None else body["metadata"]["uid"]
        return [key for key, pod in self._store.list(POD) if uid is not None and controlling_uid(pod) == uid]

    def force_delete_on(self, node: str) -> str:
        """Force delete the stuck launcher Pods of an unreachable node."""
        self._store.actor = "user"
        there = [key for key, pod in self._store.list(POD) if pod["spec"].get("nodeName") == node]
        for key in there:
            self._store.delete(POD, key, grace_period_seconds=0)
        return f"delete all {len(there)} Pods of {node} by force" if there else NOTHING

    def relabel(self, _unused: Key) -> str:
        one = self._pick()
        if one is None:
            return NOTHING
        pod = self._store.get(POD, one)
        label = None if ROLE in pod["metadata"].get("labels", {}) else LAUNCHER_ROLE
        self._store.patch(POD, one, {"metadata": {"labels": {ROLE: label}}})
        return f"{'label' if label else 'take the label off'} Pod {one}"

    def restore_labels(self) -> None:
        """Restore our label on every Pod that lost it."""
        self._store.actor = "user"
        for key, pod in self._store.list(POD):
            if pod["metadata"].get("ownerReferences") and ROLE not in pod["metadata"].get("labels", {}):
                self._store.patch(POD, key, {"metadata": {"labels": {ROLE: LAUNCHER_ROLE}}})

    def remove_squatters(self) -> None:
        self._store.actor = "user"
        for key, pod in self._store.list(POD):
            if "squatter" in pod["metadata"].get("annotations", {}):
                self._store.delete(POD, key, grace_period_seconds=0)

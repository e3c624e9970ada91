# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The effect of a pool's change on its machines. The status of a pool does not say which machines have a change.

Each machine has the revision of its template. The revisions are read before the change: a
machine has the change when its revision differs, or when the change makes no difference to it (wait/rollout.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..._client.api import Api
from ...kubevirt_api import names
from .. import kinds
from ..field_path import value_at
from ..members import members
from ..merge import compare
from ..request import pool_options

_RUN_FIELDS = ("template", "dataVolumeTemplates")
"""Fields of a machine's spec that take effect at its next start."""

Object = dict[str, Any]
Revisions = dict[str, str]
"""UID of a machine to its revision of the template."""


@dataclass(frozen=True)
class Change:
    """A change of a pool's template."""

    revisions: Revisions
    """Revisions of the machines before the change."""
    patch: Object
    """The change of a machine's spec, as a merge patch."""
    restarts: bool
    """Running machines are restarted."""


def revisions(api: Api, pool: Object, namespace: str) -> Revisions:
    """Return the revisions of a pool's machines."""
    return {vm["metadata"]["uid"]: revision(vm) for vm in members(api, pool, namespace, kinds.POOL)}


def revision(obj: Object) -> str:
    """Return the revision of the template of a machine or its instance."""
    return str((obj["metadata"].get("labels") or {}).get(names.POOL_REVISION) or "")


def change_of(old: Revisions, before: Object | None, after: Object) -> Change | None:
    """Return the change to wait for, None if the machines need none. Pure.

    A selector in the update strategy excludes machines, which keep their revision. Then there is nothing to wait for.
    """
    old_vm, new_vm = _template(before or {}), _template(after)
    strategy = value_at(after, ("spec", "updateStrategy")) or {}
    selectors = value_at(strategy, (pool_options.PROACTIVE, "selectionPolicy", "selectors"))
    if before is None or old_vm == new_vm or pool_options.UNMANAGED in strategy or selectors:
        return None
    old_spec, new_spec = old_vm.get("spec") or {}, new_vm.get("spec") or {}
    restarts = "opportunistic" not in strategy and any(old_spec.get(key) != new_spec.get(key) for key in _RUN_FIELDS)
    return Change(old, compare.merge_patch(old_spec, new_spec), restarts)


def _template(pool: Object) -> Object:
    template: Object = value_at(pool, kinds.POOL.vm or ()) or {}
    return template

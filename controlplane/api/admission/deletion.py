# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes to an object that is being deleted: who takes our finalizer away has to mean it. Pure.

Nothing else is checked: a rule that the object breaks must not block its deletion. A write that changes the finalizers
alone takes ours away, as upstream. Any other write keeps them: `kubectl replace` with a manifest, which has none, must
not give up a guest that still runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kubevirt_api import names

from controlplane.api.admission.normalize import normalize
from controlplane.api.admission.rules import Json
from controlplane.api.objects.meta import Object

BOOK_KEEPING = frozenset({"finalizers", "generation", "managedFields", "resourceVersion"})
"""Fields of the metadata that differ in a write of the finalizers alone."""
_GIVEN_UP: Mapping[str, str] = {
    names.VMI_FINALIZER: (
        "its guest may still run in its launcher Pod, which is deleted after it. If you delete that Pod by force, "
        "see first that its node is off"
    ),
    names.VM_FINALIZER: "how the run ended may not be recorded; a machine's instance is deleted after it",
    names.MIGRATION_FINALIZER: "it is ended as if it were cancelled, unless the guest has moved already",
}


def with_finalizers(obj: Json, old: Json, ours: Sequence[str]) -> Json:
    """Restore our finalizers that the write omits; the same object when it omits none."""
    missing = _omitted(obj, old, ours)
    if not missing:
        return obj
    return {**obj, "metadata": {**meta(obj), "finalizers": [*_finalizers(obj), *missing]}}


def writes_finalizers_alone(obj: Json, old: Json, root: type[Object]) -> bool:
    """Tell whether the write changes nothing but finalizers."""
    before, after = normalize(old, root), normalize(obj, root)
    return {**before, "metadata": _rest(old)} == {**after, "metadata": _rest(obj)}


def warn_of_removal(kind: str, obj: Json, old: Json, ours: Sequence[str]) -> Iterator[str]:
    """Warn of what the removal of our finalizers gives up."""
    for finalizer in _omitted(obj, old, ours):
        given_up = _GIVEN_UP.get(finalizer, "what it waits for is given up")
        yield f"{_named(kind, obj)}: {finalizer} is removed before virt-controller is done: {given_up}"


def warn_of_deletion(kind: str, obj: Json) -> str:
    """Warn of a write that is lost."""
    return f"{_named(kind, obj)} is being deleted, and this change with it; wait until it is gone, then create it again"


def meta(obj: Json | None) -> Json:
    """Return the metadata of an object; {} when it is no object, which a stored one may have."""
    metadata = (obj or {}).get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _omitted(obj: Json, old: Json, ours: Sequence[str]) -> list[str]:
    before, after = _finalizers(old), _finalizers(obj)
    return [finalizer for finalizer in ours if finalizer in before and finalizer not in after]


def _finalizers(obj: Json) -> list[Any]:
    listed = meta(obj).get("finalizers")
    return listed if isinstance(listed, list) else []


def _rest(obj: Json) -> Json:
    return {
        name: value for name, value in meta(obj).items() if name not in BOOK_KEEPING and value not in (None, {}, [])
    }


def _named(kind: str, obj: Json) -> str:
    name = meta(obj).get("name")
    return f"{kind} {name[:253]}" if isinstance(name, str) else kind

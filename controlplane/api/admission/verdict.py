# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""May this write happen, and what does it become? Pure: one request in, one verdict out.

Users' writes only: those of our own accounts pass as they are (the webhook configuration already leaves them out).
Spec that a write does not change is not judged again, so that an object let in by another version can still be
labelled, finalized and deleted. How a request arrives and a verdict leaves is controlplane.api.admission.review.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from kubevirt_api import names

from controlplane.api.admission import defaults
from controlplane.api.admission.problem import Problem, below
from controlplane.api.admission.validate import metadata as rules
from controlplane.api.admission.validate.check import check_instance, check_kubevirt, check_vm
from controlplane.api.objects.decode import DecodeError, decode
from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.meta import ObjectMeta

Json = dict[str, Any]

OUR_FINALIZERS = (names.VMI_FINALIZER, names.VM_FINALIZER)


@dataclass(frozen=True, slots=True)
class Request:
    """One write, as the API server asks about it."""

    operation: str
    """CREATE, UPDATE or DELETE."""
    kind: str
    user: str
    uid: str
    """Of this request: random, the seed of what is made up at creation."""
    obj: Json | None
    old: Json | None = None
    subresource: str = ""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a verdict depends on beside the request."""

    namespace: str = names.CONTROL_PLANE_NAMESPACE
    """Where the control plane's accounts live."""
    configuration: KubeVirtConfiguration = field(default_factory=KubeVirtConfiguration)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer: problems, or the object with its defaults."""

    problems: tuple[Problem, ...] = ()
    patched: Json | None = None
    """The object to store; None when nothing is to be added."""
    warnings: tuple[str, ...] = ()
    code: Literal[403, 422] = 422
    """Of the refusal."""

    @property
    def allowed(self) -> bool:
        return not self.problems


def review(request: Request, settings: Settings) -> Verdict:
    """Judge a write. The same request always gets the same verdict."""
    obj = request.obj
    if obj is None or is_ours(request.user, settings) or request.operation not in ("CREATE", "UPDATE"):
        return Verdict()
    if request.subresource:
        return _review_subresource(request)
    held = tuple(_finalizers_taken(request))
    if held:
        return Verdict(problems=held, code=403)
    if (obj.get("metadata") or {}).get("deletionTimestamp"):
        return Verdict()
    found = [*_metadata(request), *_spec(request, settings)]
    if found:
        return Verdict(problems=tuple(found), warnings=tuple(_warnings(obj)))
    filled = _filled(request, obj, settings)
    return Verdict(patched=None if filled is obj else filled, warnings=tuple(_warnings(obj)))


def is_ours(user: str, settings: Settings) -> bool:
    """Tell whether a user is one of the control plane's own accounts."""
    accounts = (names.API_ACCOUNT, names.CONTROLLER_ACCOUNT, names.HANDLER_ACCOUNT)
    return user in {f"system:serviceaccount:{settings.namespace}:{account}" for account in accounts}


def _review_subresource(request: Request) -> Verdict:
    if request.subresource != "status":
        return Verdict()
    text = "is written by the control plane only; change spec instead"
    return Verdict(problems=(Problem("status", text, "FieldValueForbidden"),), code=403)


def _metadata(request: Request) -> Iterator[Problem]:
    try:
        meta = decode((request.obj or {}).get("metadata") or {}, ObjectMeta)
        before = decode((request.old or {}).get("metadata") or {}, ObjectMeta)
    except DecodeError as error:
        yield Problem("metadata", str(error))
        return
    yield from rules.check_name(meta)
    if request.kind != "VirtualMachineInstance":
        return
    yield from rules.check_labels(meta.labels, "metadata.labels")
    yield from rules.check_reserved(meta.labels, before.labels, "metadata.labels")
    yield from rules.check_annotations(
        {name: value for name, value in meta.annotations.items() if before.annotations.get(name) != value},
        "metadata.annotations",
    )
    if meta.owner_references != before.owner_references:
        known = {owner.uid for owner in before.owner_references}
        fresh = tuple(owner for owner in meta.owner_references if owner.uid not in known)
        yield from rules.check_owners(fresh)


def _spec(request: Request, settings: Settings) -> list[Problem]:
    obj, old = request.obj or {}, request.old
    if old is not None and obj.get("spec") == old.get("spec") and set(obj) <= set(old):
        return []
    if request.kind == "VirtualMachine":
        return check_vm(obj, settings.configuration)
    if request.kind == "KubeVirt":
        return check_kubevirt(obj)
    if old is not None:
        text = "does not change after creation; change the VirtualMachine, or delete this instance and create another"
        return [Problem("spec", text, "FieldValueForbidden")]
    return check_instance(obj, settings.configuration)


def _finalizers_taken(request: Request) -> Iterator[Problem]:
    """Refuse to let go of a deleted object before its machine is gone. Live objects just get theirs back."""
    meta = (request.obj or {}).get("metadata") or {}
    if request.old is None or not meta.get("deletionTimestamp"):
        return
    before = (request.old.get("metadata") or {}).get("finalizers") or []
    for finalizer in OUR_FINALIZERS:
        if finalizer in before and finalizer not in (meta.get("finalizers") or []):
            text = (
                f"{finalizer} is removed by the control plane once the machine is gone; leave it. "
                "Is virt-controller running?"
            )
            yield Problem(below("metadata", "finalizers"), text, "FieldValueForbidden")


def _filled(request: Request, obj: Json, settings: Settings) -> Json:
    creating = request.operation == "CREATE"
    if request.kind == "VirtualMachine":
        filled = defaults.default_vm(obj, settings.configuration, request.uid if creating else None)
        return filled if creating else _with_finalizers(filled, request.old)
    if request.kind == "VirtualMachineInstance":
        if creating:
            return defaults.default_instance(obj, settings.configuration, request.uid)
        return _with_finalizers(obj, request.old)
    return obj


def _with_finalizers(obj: Json, old: Json | None) -> Json:
    """Give back our finalizers that a replacing write left out, as kubectl replace does."""
    before = ((old or {}).get("metadata") or {}).get("finalizers") or []
    after = (obj.get("metadata") or {}).get("finalizers") or []
    missing = [one for one in OUR_FINALIZERS if one in before and one not in after]
    if not missing:
        return obj
    return {**obj, "metadata": {**(obj.get("metadata") or {}), "finalizers": [*after, *missing]}}


def _warnings(obj: Json) -> Iterator[str]:
    spec = obj.get("spec")
    if not isinstance(spec, dict):
        return
    if obj.get("kind") == "VirtualMachine" and spec.get("running") is not None:
        yield "spec.running is deprecated, please use spec.runStrategy instead."
    if obj.get("kind") == "KubeVirt" and isinstance(spec.get("configuration"), dict):
        developer = spec["configuration"].get("developerConfiguration")
        if isinstance(developer, dict) and developer.get("featureGates"):
            yield "developerConfiguration.featureGates: no feature gate is known to this version, all are ignored."

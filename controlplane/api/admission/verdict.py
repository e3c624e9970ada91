# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decide whether a write is allowed, and which defaults it gets. Pure: one request in, one verdict out.

Writes of the control plane's own accounts pass unchanged; the webhook configuration already excludes them. A spec that
a write does not change is not checked again: an object that another version admitted can still be labelled, finalized
and deleted. review.py decodes requests and encodes verdicts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from kubevirt_api import names

from controlplane.api.admission.deletion import (
    meta,
    warn_of_deletion,
    warn_of_removal,
    with_finalizers,
    writes_finalizers_alone,
)
from controlplane.api.admission.normalize import normalize
from controlplane.api.admission.problem import Problem, excerpt
from controlplane.api.admission.rules import Json
from controlplane.api.admission.spelling import spell
from controlplane.api.admission.validate.check import check_object
from controlplane.api.admission.validate.metadata import check_name
from controlplane.api.admission.validate.unchanged import check_unchanged
from controlplane.api.objects.decode import DecodeError, decode
from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.meta import ObjectMeta
from controlplane.api.registry import KINDS, Kind, by_name

NO_DATA_VOLUMES = (
    "the cluster does not serve DataVolumes (cdi.kubevirt.io/v1beta1); install CDI, or use a persistentVolumeClaim"
)
DATA_VOLUMES_UNKNOWN = (
    "virt-api does not know yet whether the cluster serves DataVolumes (cdi.kubevirt.io/v1beta1); try again. "
    "If this lasts, see that it may watch the CustomResourceDefinition datavolumes.cdi.kubevirt.io"
)
_PLAIN_NUMBER = re.compile(r"[1-9][0-9]{0,18}", re.ASCII)
"""A resourceVersion as the API server writes it."""


@dataclass(frozen=True, slots=True)
class Request:
    """One write, as the API server asks about it."""

    operation: str
    """CREATE, UPDATE or DELETE."""
    kind: str
    user: str
    uid: str
    """UID of this request. It is random, so it is the seed of values generated at creation."""
    obj: Json | None
    old: Json | None = None
    subresource: str = ""


@dataclass(frozen=True, slots=True)
class Settings:
    """Inputs of a verdict besides the request."""

    namespace: str = names.CONTROL_PLANE_NAMESPACE
    """Namespace of the control plane's accounts."""
    configuration: KubeVirtConfiguration = field(default_factory=KubeVirtConfiguration)
    kinds: Mapping[str, Kind] = field(default_factory=lambda: by_name(KINDS))
    """The kinds that can be reviewed, by name."""

    serves_data_volumes: bool | None = None
    """Whether the cluster serves CDI's DataVolumes. None: unknown."""

    @property
    def finalizers(self) -> tuple[str, ...]:
        """The finalizers that the control plane sets, of all kinds."""
        return tuple(kind.rules.finalizer for kind in self.kinds.values() if kind.rules.finalizer)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer: problems, or the object with its defaults."""

    problems: tuple[Problem, ...] = ()
    patched: Json | None = None
    """The object with its defaults; None when nothing changes."""
    warnings: tuple[str, ...] = ()
    code: Literal[403, 422, 503] = 422
    """HTTP code of the refusal."""

    @property
    def allowed(self) -> bool:
        return not self.problems


@dataclass(frozen=True, slots=True)
class _Update:
    """The stored and the written object, normalized."""

    before: Json
    after: Json

    @property
    def changes_spec(self) -> bool:
        """Tell whether the spec is changed, or a field is added beside it."""
        return self.before.get("spec") != self.after.get("spec") or not set(self.after) <= set(self.before)


def review(request: Request, settings: Settings) -> Verdict:
    """Decide about a write. Deterministic: the API server may repeat a request."""
    obj = request.obj
    if obj is None or is_ours(request.user, settings) or request.operation not in ("CREATE", "UPDATE"):
        return Verdict()
    if request.subresource:
        return _review_subresource(request)
    kind = settings.kinds.get(request.kind)
    if kind is None:
        text = f"{request.kind[:64]} is not judged by this version; are its webhooks those of this version?"
        return Verdict(problems=(Problem("kind", text, "FieldValueNotSupported"),))
    if _is_stale(request):
        return Verdict()
    if meta(request.old).get("deletionTimestamp"):  # a replacing write lacks it in the new object
        return _review_deleted(request, obj, kind, settings)
    return _judge(request, obj, kind, settings)


def _is_stale(request: Request) -> bool:
    """Tell whether the write names another version than the stored one, so that the API server refuses it (409).

    The API server asks about the object that it compares with, also in a dry run; a patch that names no version has
    the stored one. If its cache was outdated, it asks again. It compares versions as numbers, so that 08 is 8: only a
    plain number is known to be another version.
    """
    versions = [meta(version).get("resourceVersion") for version in (request.obj, request.old)]
    is_plain = all(isinstance(version, str) and _PLAIN_NUMBER.fullmatch(version) for version in versions)
    return is_plain and versions[0] != versions[1]


def _review_deleted(request: Request, obj: Json, kind: Kind, settings: Settings) -> Verdict:
    old = request.old or {}
    if writes_finalizers_alone(obj, old, kind.root):
        return Verdict(warnings=tuple(warn_of_removal(request.kind, obj, old, settings.finalizers)))
    kept = with_finalizers(obj, old, settings.finalizers)
    return Verdict(patched=None if kept is obj else kept, warnings=(warn_of_deletion(request.kind, obj),))


def _judge(request: Request, given: Json, kind: Kind, settings: Settings) -> Verdict:
    obj = given if kind.rules.default is None else spell(given, kind.root)  # a kind without defaults is never patched
    warnings = tuple(kind.rules.warn(obj)) if isinstance(obj.get("spec"), dict) else ()
    update = None if request.old is None else _Update(normalize(request.old, kind.root), normalize(obj, kind.root))
    problems = list(_metadata(request, kind))
    data_volume_problems: list[Problem] = []
    if update is None or update.changes_spec:
        problems += _spec(update, obj, kind, settings)
        data_volume_problems += _data_volumes(obj, kind, settings)
    if problems or data_volume_problems:
        is_unsure = not problems and settings.serves_data_volumes is None
        return Verdict(problems=(*problems, *data_volume_problems), warnings=warnings, code=503 if is_unsure else 422)
    filled = _filled(request, obj, kind, settings)
    return Verdict(patched=None if filled is given else filled, warnings=warnings)


def is_ours(user: str, settings: Settings) -> bool:
    """Tell whether a user is one of the control plane's own accounts."""
    # Only in our own namespace: any user can create an account of the same name elsewhere.
    accounts = (names.API_ACCOUNT, names.CONTROLLER_ACCOUNT, names.HANDLER_ACCOUNT)
    return user in {f"system:serviceaccount:{settings.namespace}:{account}" for account in accounts}


def _review_subresource(request: Request) -> Verdict:
    if request.subresource != "status":
        return Verdict()
    text = "is written by the control plane only; change spec instead"
    return Verdict(problems=(Problem("status", text, "FieldValueForbidden"),), code=403)


def _metadata(request: Request, kind: Kind) -> Iterator[Problem]:
    metadata = (request.obj or {}).get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        yield Problem("metadata", f"must be an object, got {excerpt(metadata)}")
        return
    try:
        new = decode(meta(request.obj), ObjectMeta)
        before = decode(meta(request.old), ObjectMeta)
    except DecodeError as error:
        yield Problem("metadata", str(error))
        return
    yield from check_name(new)
    yield from kind.rules.metadata(new, before)


def _spec(update: _Update | None, obj: Json, kind: Kind, settings: Settings) -> list[Problem]:
    if update is not None and kind.rules.unchangeable:
        return list(check_unchanged(update.before, update.after, kind.rules.unchangeable))
    problems = check_object(obj, settings.configuration, kind=kind.root, rules=kind.rules)
    return [*problems, *kind.rules.whole(obj), *(() if update is None else _fixed(update, kind))]


def _fixed(update: _Update, kind: Kind) -> Iterator[Problem]:
    """Refuse a change of an immutable field."""
    before, after = update.before.get("spec"), update.after.get("spec")
    if isinstance(before, dict) and isinstance(after, dict):
        for name, message in kind.rules.fixed.items():
            if before.get(name) != after.get(name):
                yield Problem(f"spec.{name}", message, "FieldValueForbidden")


def _data_volumes(obj: Json, kind: Kind, settings: Settings) -> Iterator[Problem]:
    """Refuse DataVolumes in a cluster that does not serve them: the machine could never start."""
    if settings.serves_data_volumes:
        return
    text = NO_DATA_VOLUMES if settings.serves_data_volumes is False else DATA_VOLUMES_UNKNOWN
    for path in kind.rules.data_volumes(obj):
        yield Problem(path, text, "FieldValueNotSupported")


def _filled(request: Request, obj: Json, kind: Kind, settings: Settings) -> Json:
    if kind.rules.default is None:
        return obj
    creating = request.operation == "CREATE"
    if kind.rules.keep is not None and request.old is not None:
        obj = kind.rules.keep(obj, request.old)
    filled = kind.rules.default(obj, settings.configuration, request.uid if creating else None)
    return filled if creating else with_finalizers(filled, request.old or {}, settings.finalizers)

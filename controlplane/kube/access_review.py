# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ask the API server whether a user may do something (SubjectAccessReview). Never cached: rights can be withdrawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from controlplane.api.objects.resources import Resource
from controlplane.engine.errors import Unavailable
from controlplane.engine.ports import Api, Json

SUBJECT_ACCESS_REVIEW = Resource(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False
)


@dataclass(frozen=True, slots=True)
class User:
    """The user, as named by the API server's front proxy."""

    name: str
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    uid: str = ""


@dataclass(frozen=True, slots=True)
class Attributes:
    """The request to be authorized."""

    verb: str
    group: str
    version: str
    resource: str
    subresource: str = ""
    namespace: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """The authorizers' decision; their reason may be empty."""

    allowed: bool
    reason: str = ""


async def review_access(api: Api, user: User, attributes: Attributes) -> Decision:
    """Return the API server's decision. Raises ApiError without one; then the request must be refused."""
    answer = await api.create(SUBJECT_ACCESS_REVIEW, "", review_body(user, attributes))
    status = answer.get("status")
    if not isinstance(status, dict):
        raise Unavailable("cannot review access: the answer has no status")
    allowed = status.get("allowed") is True and status.get("denied") is not True
    return Decision(allowed, str(status.get("reason") or ""))


def review_body(user: User, attributes: Attributes) -> Json:
    """Return the SubjectAccessReview to send."""
    resource_attributes = {
        "verb": attributes.verb,
        "group": attributes.group,
        "version": attributes.version,
        "resource": attributes.resource,
        "subresource": attributes.subresource,
        "namespace": attributes.namespace,
        "name": attributes.name,
    }
    spec: Json = {
        "user": user.name,
        "groups": list(user.groups),
        "extra": {name: list(values) for name, values in user.extra.items()},
        "resourceAttributes": {name: value for name, value in resource_attributes.items() if value},
    }
    if user.uid:
        spec["uid"] = user.uid
    return {"apiVersion": SUBJECT_ACCESS_REVIEW.api_version, "kind": SUBJECT_ACCESS_REVIEW.kind, "spec": spec}

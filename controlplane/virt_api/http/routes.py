# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Routes: which paths and methods exist, and what a caller must be allowed to do there. Pure.

The table of subresources alone declares which verbs exist: discovery, OpenAPI and dispatch are derived from it.

Paths are matched as received, before any normalisation: a path with a dot segment, an empty one or an escaped slash is
unknown. Every subresource of upstream is in the table; one that is not implemented is refused by name, after
authorization.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args
from urllib.parse import unquote

from controlplane.api.registry import KINDS, Kind
from controlplane.kube.access_review import Attributes
from controlplane.links.handler import About, Verb

GROUP = "subresources.kubevirt.io"
VERSIONS = ("v1", "v1alpha3")
VM, VMI = "virtualmachines", "virtualmachineinstances"

# HTTP method to the verb of a SubjectAccessReview; other methods are 405 before authorization.
VERBS = {"GET": "get", "PUT": "update"}

Lifecycle = Literal["start", "stop", "restart"]
Stream = Literal["console", "vnc", "portforward"]
Action = Literal[
    Lifecycle,
    "migrate",
    "cancel-evacuation",
    "expand-spec",
    "expand-vm-spec",
    Verb,
    About,
    "screenshot",
    Stream,
    "unbuilt",
]


@dataclass(frozen=True, slots=True)
class Subresource:
    """A row of the table."""

    resource: str
    path: str
    """What follows the object's name; several segments are one subresource, as upstream authorizes it."""
    method: str
    action: Action = "unbuilt"
    arguments: int = 0
    """How many segments may follow, e.g. a port; they are not part of the authorization."""
    is_queued: bool = False
    """A controller carries it out after the response."""


LIFECYCLE: tuple[Lifecycle, ...] = get_args(Lifecycle)
POWER: tuple[Verb, ...] = get_args(Verb)
INQUIRIES: tuple[About, ...] = get_args(About)
STREAMS: tuple[Stream, ...] = get_args(Stream)

TABLE: tuple[Subresource, ...] = (
    *(Subresource(VM, action, "PUT", action, is_queued=True) for action in LIFECYCLE),
    Subresource(VM, "migrate", "PUT", "migrate", is_queued=True),
    Subresource(VM, "addvolume", "PUT"),
    Subresource(VM, "removevolume", "PUT"),
    Subresource(VM, "memorydump", "PUT"),
    Subresource(VM, "removememorydump", "PUT"),
    Subresource(VM, "evacuate/cancel", "PUT", "cancel-evacuation"),
    Subresource(VM, "expand-spec", "GET", "expand-spec"),
    Subresource(VM, "objectgraph", "GET"),
    Subresource(VM, "portforward", "GET", "portforward", arguments=2),
    Subresource(VMI, "addvolume", "PUT"),
    Subresource(VMI, "removevolume", "PUT"),
    Subresource(VMI, "evacuate/cancel", "PUT", "cancel-evacuation"),
    Subresource(VMI, "objectgraph", "GET"),
    Subresource(VMI, "portforward", "GET", "portforward", arguments=2),
    *(Subresource(VMI, verb, "PUT", verb) for verb in POWER),
    Subresource(VMI, "console", "GET", "console"),
    Subresource(VMI, "vnc", "GET", "vnc"),
    Subresource(VMI, "vnc/screenshot", "GET", "screenshot"),
    Subresource(VMI, "usbredir", "GET"),
    Subresource(VMI, "vsock", "GET"),
    *(Subresource(VMI, about, "GET", about) for about in INQUIRIES),
    Subresource(VMI, "sev/fetchcertchain", "GET"),
    Subresource(VMI, "sev/querylaunchmeasurement", "GET"),
    Subresource(VMI, "sev/setupsession", "PUT"),
    Subresource(VMI, "sev/injectlaunchsecret", "PUT"),
    Subresource(VMI, "backup", "PUT"),
    Subresource(VMI, "redefine-checkpoint", "PUT"),
)

EXPAND = Subresource("expand-vm-spec", "", "PUT", "expand-vm-spec")
"""A subresource of a namespace: the object is the body."""

_RESOURCES = frozenset(row.resource for row in TABLE)

# Served without authentication: discovery and health, nothing about users' objects.
Document = Literal[
    "paths",
    "groups",
    "group",
    "resources",
    "version",
    "guestfs",
    "healthz",
    "openapi-v2",
    "openapi-v3",
    "schema",
]

DOCUMENTS: Mapping[str, Document] = {
    "/": "paths",
    "/apis": "groups",
    "/healthz": "healthz",
    "/version": "version",
    "/openapi/v2": "openapi-v2",
    "/openapi/v3": "openapi-v3",
    f"/apis/{GROUP}": "group",
    **{f"/apis/{GROUP}/{version}": "resources" for version in VERSIONS},
    **{f"/apis/{GROUP}/{version}/version": "version" for version in VERSIONS},
    **{f"/apis/{GROUP}/{version}/guestfs": "guestfs" for version in VERSIONS},
    **{f"/apis/{GROUP}/{version}/healthz": "healthz" for version in VERSIONS},
    **{f"/openapi/v3/apis/{GROUP}/{version}": "schema" for version in VERSIONS},
}

CONSOLE = f"/apis/{GROUP}/{VERSIONS[0]}/console"
"""The console page. The API server authorizes the first segment below it as a name and the second as a subresource, so
libraries are in NAME/package/: resources `console` and `console/package`."""

METRICS = "/metrics"

# Admission: the path names resource and stage; API servers call these, users do not.
Stage = Literal["mutate", "validate", "evict", "migrate"]
EVICTION = "/launcher-eviction-validate"
MIGRATION = "/migration-create-validate"
"""Beside the validation of the migration itself: validates what depends on other objects."""


def webhook_paths(kinds: tuple[Kind, ...]) -> Mapping[str, Stage]:
    """Return the paths of all webhooks: validation of each kind, mutation of kinds with defaults, and the other two."""
    mutating: dict[str, Stage] = {f"/{kind.resource.plural}-mutate": "mutate" for kind in kinds if kind.rules.default}
    validating: dict[str, Stage] = {f"/{kind.resource.plural}-validate": "validate" for kind in kinds}
    return {**mutating, **validating, EVICTION: "evict", MIGRATION: "migrate"}


WEBHOOKS = webhook_paths(KINDS)


@dataclass(frozen=True, slots=True)
class DocumentRoute:
    """A discovery or health path."""

    document: Document
    version: str = ""


@dataclass(frozen=True, slots=True)
class PageRoute:
    """A file of the console page."""

    path: str | None
    """Below the page's address, as received; None if the address lacks its last slash."""


@dataclass(frozen=True, slots=True)
class MetricsRoute:
    """The metrics of this process."""


@dataclass(frozen=True, slots=True)
class WebhookRoute:
    """An admission path."""

    stage: Stage


@dataclass(frozen=True, slots=True)
class SubresourceRoute:
    """A subresource of a VM or VMI, and what the caller must be allowed to do."""

    row: Subresource
    access: Attributes
    arguments: tuple[str, ...] = ()
    """The segments that follow the subresource's path."""


@dataclass(frozen=True, slots=True)
class NoRoute:
    """No such path (404), or not with this method (405, with the allowed methods)."""

    code: Literal[404, 405]
    message: str
    allow: tuple[str, ...] = ()


Route = DocumentRoute | PageRoute | MetricsRoute | WebhookRoute | SubresourceRoute | NoRoute
_NOT_FOUND = NoRoute(404, "the server could not find the requested resource")


def find_route(method: str, raw_path: str) -> Route:
    """Return the route of a request. raw_path is the escaped path without the query."""
    if raw_path in DOCUMENTS or raw_path == METRICS:
        if method not in {"GET", "HEAD"}:
            return _not_allowed("GET")
        return MetricsRoute() if raw_path == METRICS else DocumentRoute(DOCUMENTS[raw_path], _version_in(raw_path))
    if raw_path == CONSOLE or raw_path.startswith(f"{CONSOLE}/"):
        path = None if raw_path == CONSOLE else raw_path.removeprefix(f"{CONSOLE}/")
        return PageRoute(path) if method in {"GET", "HEAD"} else _not_allowed("GET")
    if raw_path in WEBHOOKS:
        return WebhookRoute(WEBHOOKS[raw_path]) if method == "POST" else _not_allowed("POST")
    segments = _segments(raw_path)
    if segments is None or segments[:2] != ["apis", GROUP] or len(segments) < 6:
        return _NOT_FOUND
    return _in_namespace(method, segments[2:])


def _in_namespace(method: str, segments: list[str]) -> Route:
    version, scope, namespace, resource, *name = segments
    if version not in VERSIONS or scope != "namespaces":
        return _NOT_FOUND
    if resource == EXPAND.resource and not name:
        access = Attributes(VERBS[EXPAND.method], GROUP, version, EXPAND.resource, "", namespace)
        return SubresourceRoute(EXPAND, access) if method == EXPAND.method else _not_allowed(EXPAND.method)
    if resource not in _RESOURCES or not name:
        return _NOT_FOUND
    return _subresource(method, (version, namespace, resource, name[0]), name[1:])


def _subresource(method: str, target: tuple[str, str, str, str], path: list[str]) -> Route:
    version, namespace, resource, name = target
    rows = [row for row in TABLE if row.resource == resource and _fits(row, path)]
    if not rows:
        return NoRoute(404, f"{resource} have no subresource {'/'.join(path)[:64]!r}")
    row = next((row for row in rows if row.method == method), None)
    if row is None:
        return _not_allowed(*sorted({row.method for row in rows}))
    access = Attributes(VERBS[method], GROUP, version, resource, row.path, namespace, name)
    return SubresourceRoute(row, access, tuple(path[len(row.path.split("/")) :]))


def _fits(row: Subresource, segments: list[str]) -> bool:
    path = row.path.split("/")
    return segments[: len(path)] == path and len(segments) - len(path) <= row.arguments


def _segments(raw_path: str) -> list[str] | None:
    """Split and unescape; None for a path that is ambiguous."""
    if not raw_path.startswith("/"):
        return None
    segments = []
    for raw in raw_path[1:].split("/"):
        try:
            segment = unquote(raw, errors="strict")
        except UnicodeDecodeError:
            return None
        if segment in {"", ".", ".."} or "/" in segment or not segment.isprintable():
            return None
        segments.append(segment)
    return segments


def _version_in(path: str) -> str:
    return next((segment for segment in path.split("/") if segment in VERSIONS), "")


def _not_allowed(*methods: str) -> NoRoute:
    return NoRoute(405, f"use {' or '.join(methods)}", methods)

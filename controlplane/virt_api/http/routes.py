# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The route table: which paths exist, by which method, and what a caller must be allowed to do there. Pure.

Paths are matched as they came, before any normalisation: a dot segment, an empty one or an escaped slash
makes a path unknown. Every subresource of upstream is in the table, so that one that is not built is
refused by its name, to those who may know.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote

from controlplane.api.registry import KINDS, Kind
from controlplane.kube.access_review import Attributes
from controlplane.links.handler import About, Verb

GROUP = "subresources.kubevirt.io"
VERSIONS = ("v1", "v1alpha3")
VM, VMI = "virtualmachines", "virtualmachineinstances"

# HTTP method to the verb of a SubjectAccessReview; anything else is 405 before anybody is asked.
VERBS = {"GET": "get", "PUT": "update"}

Action = Literal[
    "start", "stop", "restart", "migrate", "cancel-evacuation", "expand-spec", "expand-vm-spec", Verb, About, "unbuilt"
]


@dataclass(frozen=True, slots=True)
class Subresource:
    """A row of the table."""

    resource: str
    path: str
    """What follows the object's name; several segments are one subresource, as upstream reviews it."""
    method: str
    action: Action = "unbuilt"
    arguments: int = 0
    """How many more segments may follow, e.g. a port; not part of what is reviewed."""


TABLE: tuple[Subresource, ...] = (
    Subresource(VM, "start", "PUT", "start"),
    Subresource(VM, "stop", "PUT", "stop"),
    Subresource(VM, "restart", "PUT", "restart"),
    Subresource(VM, "migrate", "PUT", "migrate"),
    Subresource(VM, "addvolume", "PUT"),
    Subresource(VM, "removevolume", "PUT"),
    Subresource(VM, "memorydump", "PUT"),
    Subresource(VM, "removememorydump", "PUT"),
    Subresource(VM, "evacuate/cancel", "PUT", "cancel-evacuation"),
    Subresource(VM, "expand-spec", "GET", "expand-spec"),
    Subresource(VM, "objectgraph", "GET"),
    Subresource(VM, "portforward", "GET", arguments=2),
    Subresource(VMI, "addvolume", "PUT"),
    Subresource(VMI, "removevolume", "PUT"),
    Subresource(VMI, "evacuate/cancel", "PUT", "cancel-evacuation"),
    Subresource(VMI, "objectgraph", "GET"),
    Subresource(VMI, "portforward", "GET", arguments=2),
    Subresource(VMI, "pause", "PUT", "pause"),
    Subresource(VMI, "unpause", "PUT", "unpause"),
    Subresource(VMI, "softreboot", "PUT", "softreboot"),
    Subresource(VMI, "reset", "PUT", "reset"),
    Subresource(VMI, "freeze", "PUT", "freeze"),
    Subresource(VMI, "unfreeze", "PUT", "unfreeze"),
    Subresource(VMI, "console", "GET"),
    Subresource(VMI, "vnc", "GET"),
    Subresource(VMI, "vnc/screenshot", "GET"),
    Subresource(VMI, "usbredir", "GET"),
    Subresource(VMI, "vsock", "GET"),
    Subresource(VMI, "guestosinfo", "GET", "guestosinfo"),
    Subresource(VMI, "userlist", "GET", "userlist"),
    Subresource(VMI, "filesystemlist", "GET", "filesystemlist"),
    Subresource(VMI, "sev/fetchcertchain", "GET"),
    Subresource(VMI, "sev/querylaunchmeasurement", "GET"),
    Subresource(VMI, "sev/setupsession", "PUT"),
    Subresource(VMI, "sev/injectlaunchsecret", "PUT"),
    Subresource(VMI, "backup", "PUT"),
    Subresource(VMI, "redefine-checkpoint", "PUT"),
)

EXPAND = Subresource("expand-vm-spec", "", "PUT", "expand-vm-spec")
"""Of a namespace and not of an object in it: what it is asked about is the body."""

_RESOURCES = frozenset(row.resource for row in TABLE)

# Served to whoever reaches the port: discovery and health, nothing about anybody's objects.
Document = Literal["paths", "groups", "group", "resources", "version", "healthz", "openapi-v2", "openapi-v3", "schema"]

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
    **{f"/apis/{GROUP}/{version}/healthz": "healthz" for version in VERSIONS},
    **{f"/openapi/v3/apis/{GROUP}/{version}": "schema" for version in VERSIONS},
}

# Admission: the path names resource and stage; the API server calls these, users do not.
Stage = Literal["mutate", "validate", "evict", "migrate"]
EVICTION = "/launcher-eviction-validate"
MIGRATION = "/migration-create-validate"
"""Beside the kind's own validation: what of a new migration the cluster must be asked about."""


def hooks(kinds: tuple[Kind, ...]) -> Mapping[str, Stage]:
    """Return each kind's path of validation, its one of mutation if it has defaults, and those that ask the cluster."""
    mutating: dict[str, Stage] = {f"/{one.resource.plural}-mutate": "mutate" for one in kinds if one.rules.default}
    validating: dict[str, Stage] = {f"/{one.resource.plural}-validate": "validate" for one in kinds}
    return {**mutating, **validating, EVICTION: "evict", MIGRATION: "migrate"}


HOOKS = hooks(KINDS)


@dataclass(frozen=True, slots=True)
class ToDocument:
    """A discovery or health path."""

    document: Document
    version: str = ""


@dataclass(frozen=True, slots=True)
class ToHook:
    """An admission path."""

    stage: Stage


@dataclass(frozen=True, slots=True)
class ToSubresource:
    """A subresource of a VM or VMI, and what the caller must be allowed to do."""

    row: Subresource
    access: Attributes


@dataclass(frozen=True, slots=True)
class NoRoute:
    """There is nothing here (404), or not by this method (405, with the methods that are)."""

    code: Literal[404, 405]
    message: str
    allow: tuple[str, ...] = ()


Match = ToDocument | ToHook | ToSubresource | NoRoute
_NOTHING = NoRoute(404, "the server could not find the requested resource")


def match(method: str, raw_path: str) -> Match:
    """Find the route of a request. raw_path is the escaped path without the query."""
    if raw_path in DOCUMENTS:
        return ToDocument(DOCUMENTS[raw_path], _version_in(raw_path)) if method in {"GET", "HEAD"} else _not_by("GET")
    if raw_path in HOOKS:
        return ToHook(HOOKS[raw_path]) if method == "POST" else _not_by("POST")
    segments = _segments(raw_path)
    if segments is None or segments[:2] != ["apis", GROUP] or len(segments) < 6:
        return _NOTHING
    return _in_namespace(method, segments[2:])


def _in_namespace(method: str, segments: list[str]) -> Match:
    version, place, namespace, resource, *named = segments
    if version not in VERSIONS or place != "namespaces":
        return _NOTHING
    if resource == EXPAND.resource and not named:
        access = Attributes(VERBS[EXPAND.method], GROUP, version, EXPAND.resource, "", namespace)
        return ToSubresource(EXPAND, access) if method == EXPAND.method else _not_by(EXPAND.method)
    if resource not in _RESOURCES or not named:
        return _NOTHING
    return _subresource(method, (version, namespace, resource, named[0]), named[1:])


def _subresource(method: str, place: tuple[str, str, str, str], rest: list[str]) -> Match:
    version, namespace, resource, name = place
    rows = [row for row in TABLE if row.resource == resource and _fits(row, rest)]
    if not rows:
        return NoRoute(404, f"{resource} have no subresource {'/'.join(rest)[:64]!r}")
    row = next((row for row in rows if row.method == method), None)
    if row is None:
        return _not_by(*sorted({row.method for row in rows}))
    return ToSubresource(row, Attributes(VERBS[method], GROUP, version, resource, row.path, namespace, name))


def _fits(row: Subresource, rest: list[str]) -> bool:
    path = row.path.split("/")
    return rest[: len(path)] == path and len(rest) - len(path) <= row.arguments


def _segments(raw_path: str) -> list[str] | None:
    """Split and unescape; None for a path that could mean another one."""
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


def _not_by(*methods: str) -> NoRoute:
    return NoRoute(405, f"use {' or '.join(methods)}", methods)

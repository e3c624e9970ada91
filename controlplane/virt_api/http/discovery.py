# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Discovery: the documents that kubectl, virtctl and the API server's aggregator read. Pure.

Only implemented subresources are announced; the others are in the route table to be refused by name.
"""

from __future__ import annotations

import hashlib
import platform

from controlplane.api.version import KUBEVIRT_VERSION, VERSION
from controlplane.http_server.health import describe_health
from controlplane.virt_api.http.response import Json, Response, document
from controlplane.virt_api.http.routes import EXPAND, GROUP, TABLE, VERBS, VERSIONS, VM, DocumentRoute, Subresource

_ACCEPTED = {"202": {"description": "Accepted"}}
_OK = {"200": {"description": "OK"}}
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
"""The kernel's names of architectures to Kubernetes'."""
COMPILER = "gc"
"""Go's, as of the version that gitVersion names: clients compare it with their own."""
GUESTFS_REGISTRY = "quay.io/kubevirt"
"""virtctl appends the name of the image, libguestfs-tools."""


def answer(route: DocumentRoute, config_version: str = "") -> Response:
    """Answer a discovery or health path. config_version: of the KubeVirt object that virt-api works with."""
    if route.document == "healthz":
        return document(describe_health(config_version))
    return document(_DOCUMENTS[route.document](route.version))


def _paths(_unused: str) -> Json:
    roots = [f"/apis/{GROUP}", *(f"/apis/{GROUP}/{version}" for version in VERSIONS)]
    return {"paths": ["/apis", *roots, "/healthz", "/metrics", "/openapi/v2", "/openapi/v3", "/version"]}


def _groups(_unused: str) -> Json:
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group("")]}


def _group(_unused: str) -> Json:
    versions = [{"groupVersion": f"{GROUP}/{version}", "version": version} for version in VERSIONS]
    return {
        "kind": "APIGroup",
        "apiVersion": "v1",
        "name": GROUP,
        "versions": versions,
        "preferredVersion": versions[0],
    }


def _resources(version: str) -> Json:
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{GROUP}/{version}",
        "resources": [
            {
                "name": "/".join(filter(None, (row.resource, row.path))),
                "singularName": "",
                "namespaced": True,
                "kind": "",
                "verbs": [VERBS[row.method]],
            }
            for row in _IMPLEMENTED
        ],
    }


def _version(_unused: str) -> Json:
    return {
        "gitVersion": KUBEVIRT_VERSION,
        "controlPlaneVersion": f"v{VERSION}",
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "",
        "goVersion": f"{platform.python_implementation()} {platform.python_version()}",
        "compiler": COMPILER,
        "platform": f"linux/{_ARCHITECTURES.get(platform.machine(), platform.machine())}",
    }


def _guestfs(_unused: str) -> Json:
    """Name the image of `virtctl guestfs`, which makes a Pod of its own: upstream's, as it needs no control plane."""
    return {
        "registry": GUESTFS_REGISTRY,
        "tag": KUBEVIRT_VERSION,
        "digest": "",
        "imagePrefix": "",
        "gsImage": "",
    }


def _openapi_v2(_unused: str) -> Json:
    return {
        "swagger": "2.0",
        "info": {"title": GROUP, "version": f"v{VERSION}"},
        "paths": {path: item for version in VERSIONS for path, item in _path_items(version).items()},
        "definitions": {},
    }


def _openapi_v3(_unused: str) -> Json:
    paths = {}
    for version in VERSIONS:
        digest = hashlib.sha256(repr(_schema(version)).encode()).hexdigest()[:32].upper()
        paths[f"apis/{GROUP}/{version}"] = {"serverRelativeURL": f"/openapi/v3/apis/{GROUP}/{version}?hash={digest}"}
    return {"paths": paths}


def _schema(version: str) -> Json:
    return {
        "openapi": "3.0.0",
        "info": {"title": GROUP, "version": f"v{VERSION}"},
        "paths": _path_items(version),
    }


def _path_items(version: str) -> Json:
    items: Json = {}
    for row in _IMPLEMENTED:
        path = row.resource if row == EXPAND else f"{row.resource}/{{name}}/{row.path}"
        items[f"/apis/{GROUP}/{version}/namespaces/{{namespace}}/{path}"] = {
            row.method.lower(): {
                "operationId": f"{version}{row.resource}{row.path}".replace("/", ""),
                "description": _describe(row),
                "responses": {**(_ACCEPTED if row.is_queued else _OK), "401": {"description": "Unauthorized"}},
            }
        }
    return items


def _describe(row: Subresource) -> str:
    target = "a virtual machine" if row.resource in (VM, EXPAND.resource) else "a virtual machine instance"
    action = row.action.replace("-", " ")
    return f"{action} of {target}" if row.method == "GET" else f"{action} {target}"


_IMPLEMENTED = (*(row for row in TABLE if row.action != "unbuilt"), EXPAND)
_DOCUMENTS = {
    "paths": _paths,
    "groups": _groups,
    "group": _group,
    "resources": _resources,
    "version": _version,
    "guestfs": _guestfs,
    "openapi-v2": _openapi_v2,
    "openapi-v3": _openapi_v3,
    "schema": _schema,
}

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from controlplane.kube.access_review import Attributes
from controlplane.virt_api.http.routes import (
    TABLE,
    VERSIONS,
    VM,
    VMI,
    DocumentRoute,
    NoRoute,
    PageRoute,
    Subresource,
    SubresourceRoute,
    WebhookRoute,
    find_route,
)

BASE = "/apis/subresources.kubevirt.io/v1/namespaces/ns"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row.resource}/{row.path}")
def test_every_row_has_a_route_with_its_access(row: Subresource, version: str) -> None:
    route = find_route(
        row.method, f"/apis/subresources.kubevirt.io/{version}/namespaces/ns/{row.resource}/web/{row.path}"
    )

    assert isinstance(route, SubresourceRoute)
    assert route.row is row
    assert route.access.verb == {"GET": "get", "PUT": "update"}[row.method]
    assert (route.access.version, route.access.namespace, route.access.name) == (version, "ns", "web")
    assert (route.access.resource, route.access.subresource) == (row.resource, row.path)


def test_each_request_matches_one_row() -> None:
    keys = [(row.resource, row.path, row.method) for row in TABLE]

    assert len(keys) == len(set(keys))


def test_a_port_is_not_part_of_the_authorization() -> None:
    route = find_route("GET", f"{BASE}/{VMI}/web/portforward/22/tcp")

    assert isinstance(route, SubresourceRoute)
    assert route.access.subresource == "portforward"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_subresource_of_a_namespace_is_authorized_without_a_name(version: str) -> None:
    route = find_route("PUT", f"/apis/subresources.kubevirt.io/{version}/namespaces/ns/expand-vm-spec")

    assert isinstance(route, SubresourceRoute)
    assert route.access == Attributes("update", "subresources.kubevirt.io", version, "expand-vm-spec", "", "ns")


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "", 404),
        ("GET", "http://elsewhere/healthz", 404),
        ("GET", "/apis/", 404),
        ("GET", "//apis", 404),
        ("GET", f"{BASE}/{VMI}/web", 404),
        ("GET", f"{BASE}/{VMI}/web/portforward/22/tcp/more", 404),
        ("GET", f"{BASE}/{VMI}/web/console/x", 404),
        ("GET", f"{BASE}/{VMI}/web/vnc/screenshot/../../y", 404),
        ("GET", f"{BASE}/{VM}/web/console", 404),
        ("GET", f"{BASE}/pods/web/console", 404),
        ("GET", f"{BASE}/{VMI}/we%2fb/console", 404),
        ("GET", f"{BASE}/{VMI}/%2e/console", 404),
        ("GET", f"{BASE}/{VMI}/%ff/console", 404),
        ("GET", f"{BASE}/{VMI}/a%0ab/console", 404),
        ("GET", f"{BASE}/{VMI}/a%00b/console", 404),
        ("PUT", f"{BASE}/expand-vm-spec/web", 404),
        ("PUT", f"{BASE}/{VM}", 404),
        ("PUT", BASE, 404),
        ("PUT", "/apis/subresources.kubevirt.io/v2/namespaces/ns/expand-vm-spec", 404),
        ("PUT", "/apis/subresources.kubevirt.io/v1/nodes/ns/expand-vm-spec", 404),
        ("GET", f"{BASE}/expand-vm-spec", 405),
        ("PUT", f"{BASE}/{VMI}/web/console", 405),
        ("BREW", f"{BASE}/{VM}/web/start", 405),
        ("PUT", "/apis", 405),
        ("POST", "/apis/subresources.kubevirt.io/v1/console/", 405),
        ("GET", "/apis/subresources.kubevirt.io/v1alpha3/console/", 404),
        ("GET", "/apis/subresources.kubevirt.io/v1/consoles", 404),
        ("GET", "/virtualmachines-validate", 405),
    ],
)
def test_unknown_routes_have_an_error_code(method: str, path: str, code: int) -> None:
    route = find_route(method, path)

    assert isinstance(route, NoRoute)
    assert route.code == code


def test_the_allowed_methods_are_named() -> None:
    assert find_route("POST", f"{BASE}/{VM}/web/start") == NoRoute(405, "use PUT", ("PUT",))


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize(
    ("below", "path"), [("", None), ("/", ""), ("/app.js", "app.js"), ("/a/package/%2e./b", "a/package/%2e./b")]
)
def test_everything_below_the_console_page_is_a_file_of_it(method: str, below: str, path: str | None) -> None:
    assert find_route(method, f"/apis/subresources.kubevirt.io/v1/console{below}") == PageRoute(path)


def test_documents_and_webhooks_have_routes() -> None:
    assert find_route("HEAD", "/healthz") == DocumentRoute("healthz")
    assert find_route("GET", "/apis/subresources.kubevirt.io/v1alpha3") == DocumentRoute("resources", "v1alpha3")
    assert find_route("GET", "/openapi/v3") == DocumentRoute("openapi-v3")
    assert find_route("GET", "/openapi/v3/apis/subresources.kubevirt.io/v1") == DocumentRoute("schema", "v1")
    assert find_route("POST", "/virtualmachineinstances-mutate") == WebhookRoute("mutate")

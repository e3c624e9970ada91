# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import msgspec
import pytest

from controlplane.api.version import KUBEVIRT_VERSION, VERSION
from controlplane.virt_api.http import discovery
from controlplane.virt_api.http.routes import DOCUMENTS, DocumentRoute, find_route

GUEST_INFO = {f"virtualmachineinstances/{name}" for name in ("guestosinfo", "userlist", "filesystemlist")}
"""The subresources that the guest agent answers."""
STREAMS = {
    "virtualmachines/portforward",
    "virtualmachineinstances/portforward",
    "virtualmachineinstances/console",
    "virtualmachineinstances/vnc",
}
READ = {*GUEST_INFO, *STREAMS, "virtualmachineinstances/vnc/screenshot", "virtualmachines/expand-spec"}


def fetch(path: str) -> Any:
    route = find_route("GET", path)
    assert isinstance(route, DocumentRoute)
    return msgspec.json.decode(discovery.answer(route).body)


@pytest.mark.parametrize("path", DOCUMENTS)
def test_every_document_is_answered(path: str) -> None:
    route = find_route("GET", path)
    assert isinstance(route, DocumentRoute)
    response = discovery.answer(route)

    assert response.code == 200
    assert response.body


def test_virtctl_reads_the_preferred_version() -> None:
    group = fetch("/apis/subresources.kubevirt.io")

    assert group["kind"] == "APIGroup"
    assert group["preferredVersion"] == {"groupVersion": "subresources.kubevirt.io/v1", "version": "v1"}


@pytest.mark.parametrize(("machine", "platform"), [("x86_64", "linux/amd64"), ("aarch64", "linux/arm64")])
def test_the_platform_has_the_name_that_kubernetes_uses(
    machine: str, platform: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients compare it with their own platform and with a node's."""
    monkeypatch.setattr("platform.machine", lambda: machine)
    assert fetch("/apis/subresources.kubevirt.io/v1/version")["platform"] == platform


@pytest.mark.parametrize("version", ["v1", "v1alpha3"])
def test_clients_compare_their_version_with_that_of_kubevirt(version: str) -> None:
    """A released virtctl begins each failure with three lines about versions if they differ."""
    document = fetch(f"/apis/subresources.kubevirt.io/{version}/version")

    assert (document["gitVersion"], document["controlPlaneVersion"]) == (KUBEVIRT_VERSION, f"v{VERSION}")
    assert KUBEVIRT_VERSION == "v1.9.0"
    assert document["compiler"] == "gc"


@pytest.mark.parametrize("path", ["/healthz", "/apis/subresources.kubevirt.io/v1/healthz"])
def test_health_says_which_configuration_virt_api_works_with(path: str) -> None:
    route = find_route("GET", path)
    assert isinstance(route, DocumentRoute)
    assert msgspec.json.decode(discovery.answer(route, "42").body) == {"config-resource-version": "42"}


def test_virtctl_guestfs_learns_which_image_it_needs() -> None:
    """It joins registry, prefix, "libguestfs-tools" and tag, unless there is a digest or a whole name."""
    image = fetch("/apis/subresources.kubevirt.io/v1/guestfs")

    assert image == {
        "registry": "quay.io/kubevirt",
        "tag": KUBEVIRT_VERSION,
        "digest": "",
        "imagePrefix": "",
        "gsImage": "",
    }


def test_only_implemented_subresources_are_announced() -> None:
    document = fetch("/apis/subresources.kubevirt.io/v1alpha3")

    assert document["groupVersion"] == "subresources.kubevirt.io/v1alpha3"
    assert {resource["name"] for resource in document["resources"]} == {
        "virtualmachines/start",
        "virtualmachines/stop",
        "virtualmachines/restart",
        "virtualmachines/migrate",
        "virtualmachines/evacuate/cancel",
        "virtualmachineinstances/evacuate/cancel",
        "virtualmachineinstances/pause",
        "virtualmachineinstances/unpause",
        "virtualmachineinstances/reset",
        "virtualmachineinstances/softreboot",
        "virtualmachineinstances/freeze",
        "virtualmachineinstances/unfreeze",
        "expand-vm-spec",
        *READ,
    }
    verbs = {resource["name"]: (resource["verbs"], resource["namespaced"]) for resource in document["resources"]}
    assert verbs == {name: (["get"] if name in READ else ["update"], True) for name in verbs}


def test_every_listed_openapi_document_exists() -> None:
    for path, entry in fetch("/openapi/v3")["paths"].items():
        location, _unused, mark = entry["serverRelativeURL"].partition("?hash=")
        assert location == f"/openapi/v3/{path}"
        assert mark
        assert fetch(location)["openapi"].startswith("3.")


def test_queued_subresources_respond_202() -> None:
    paths = fetch("/openapi/v3/apis/subresources.kubevirt.io/v1")["paths"]
    codes = {
        path.rpartition("/namespaces/{namespace}/")[2]: next(iter(operations.values()))["responses"]
        for path, operations in paths.items()
    }
    queued = {path for path, responses in codes.items() if "202" in responses}

    assert queued == {f"virtualmachines/{{name}}/{verb}" for verb in ("start", "stop", "restart", "migrate")}
    assert {"200", "401"} == set(codes["expand-vm-spec"]) == set(codes["virtualmachines/{name}/expand-spec"])

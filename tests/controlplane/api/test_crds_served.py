# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Our CRDs on a real API server without webhooks: the last line when admission is bypassed."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

import pytest

from controlplane.api.registry import KINDS, Kind
from controlplane.api.schema.crds import crd
from lab import Lab
from lab.cluster.api import Api, ApiError
from tests.controlplane.api import golden

pytestmark = pytest.mark.component

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "/apis/kubevirt.io/v1/namespaces/default"
PLURALS = {kind.resource.kind: kind.resource.plural for kind in KINDS}
COLLECTIONS = {
    kind.resource.kind: f"/apis/{kind.resource.api_version}"
    f"{'/namespaces/default' if kind.resource.namespaced else ''}/{kind.resource.plural}"
    for kind in KINDS
}
NAMESPACED = {kind.resource.kind for kind in KINDS if kind.resource.namespaced}


def is_served(client: Api, path: str) -> bool:
    """Whether a kind can be listed. Right after creation the server answers 404, then 429."""
    try:
        return client.get(path) is not None
    except ApiError as error:
        if error.status != 429:
            raise
        return False


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    lab = Lab("crds")
    with lab.running(nodes=0, controllers=False):
        client = lab.api()
        listed = client.get(CRDS) or {}
        for kind in KINDS:
            client.create(CRDS, crd(kind))
        waiting = set(PLURALS.values())
        version = listed["metadata"]["resourceVersion"]
        with contextlib.closing(client.watch(CRDS, resource_version=version, seconds=30)) as events:
            for event in events:
                conditions = event["object"].get("status", {}).get("conditions") or []
                if any(
                    condition["type"] == "Established" and condition["status"] == "True" for condition in conditions
                ):
                    waiting.discard(event["object"]["spec"]["names"]["plural"])
                if not waiting:
                    break
        deadline = time.monotonic() + 10  # It is served a few milliseconds after Established, without a signal.
        while not all(is_served(client, path) for path in COLLECTIONS.values()):
            assert time.monotonic() < deadline
        yield client
        client.close()


@pytest.fixture
def made(api: Api) -> Iterator[list[str]]:
    paths: list[str] = []
    yield paths
    for path in paths:
        api.delete(path)


def create(api: Api, made: list[str], manifest: dict[str, Any]) -> str:
    """Create an object and return its path; it is deleted after the test."""
    collection = COLLECTIONS[manifest["kind"]]
    name = manifest["metadata"]["name"]
    place = {"namespace": "default"} if manifest["kind"] in NAMESPACED else {}
    api.create(collection, {**manifest, "metadata": {**manifest["metadata"], **place}})
    made.append(f"{collection}/{name}")
    return made[-1]


def read(api: Api, path: str) -> dict[str, Any]:
    obj = api.get(path)
    assert obj is not None
    return obj


@pytest.mark.parametrize("kind", KINDS, ids=lambda condition: condition.resource.kind)
def test_the_server_accepts_the_crds_without_complaint(api: Api, kind: Kind) -> None:
    stored = read(api, f"{CRDS}/{kind.resource.plural}.{kind.resource.group}")
    bad = {"NonStructuralSchema", "NamesAccepted=False", "Terminating"}

    assert not bad & {
        condition["type"] for condition in stored["status"]["conditions"] if condition["status"] == "True"
    }
    assert stored["status"]["acceptedNames"].get("shortNames", []) == list(kind.short_names)
    assert stored["status"]["storedVersions"] == [kind.versions[0]]


@pytest.mark.parametrize("name", golden.NAMES)
def test_good_manifests_are_stored_whole(api: Api, made: list[str], name: str) -> None:
    manifest = golden.load(name)
    stored = read(api, create(api, made, manifest))

    assert stored["spec"] == manifest["spec"]


def test_unknown_fields_of_a_spec_stay_so_that_admission_can_name_them(api: Api, made: list[str]) -> None:
    manifest = golden.load("vm-full")
    for path in ("sepc", "spec/tempalte", "spec/template/spec/domain/devices/gpuz", "spec/template/spec/volumes/0/x"):
        manifest = golden.changed(manifest, path, {"any": "thing"})
    stored = read(api, create(api, made, manifest))

    assert stored["sepc"] == stored["spec"]["tempalte"] == {"any": "thing"}
    assert stored["spec"] == manifest["spec"]


def test_status_is_written_through_its_subresource_only_and_drops_unknown_fields(api: Api, made: list[str]) -> None:
    manifest = {**golden.load("vmi-masquerade"), "status": {"phase": "Running"}}
    path = create(api, made, manifest)
    assert "status" not in read(api, path)

    api.patch(path, {"status": {"phase": "Running"}})
    assert "status" not in read(api, path)

    api.patch(f"{path}/status", {"status": {"phase": "Pending", "nonsense": 1, "epoch": 1}})
    assert read(api, path)["status"] == {"phase": "Pending", "epoch": 1}


@pytest.mark.parametrize("version", ["v1", "v1alpha3"])
def test_instances_are_selected_by_phase_and_node(api: Api, made: list[str], version: str) -> None:
    for name, status in {
        "on-n1": {"phase": "Scheduled", "nodeName": "n1"},
        "also-on-n1": {"phase": "Running", "nodeName": "n1"},
        "on-n2": {"phase": "Scheduled", "nodeName": "n2"},
        "on-n11": {"phase": "Scheduled", "nodeName": "n11"},
        "on-none": {"phase": "Pending"},
    }.items():
        path = create(api, made, golden.changed(golden.load("vmi-masquerade"), "metadata/name", name))
        api.patch(f"{path}/status", {"status": status})

    def selected(selector: str) -> set[str]:
        collection = f"{GROUP.replace('/v1/', f'/{version}/')}/virtualmachineinstances"
        return {item["metadata"]["name"] for item in (api.get(f"{collection}?fieldSelector={selector}") or {})["items"]}

    assert selected("status.nodeName=n1") == {"on-n1", "also-on-n1"}
    assert selected("status.nodeName=n2") == {"on-n2"}
    assert selected("status.nodeName=n3") == set()
    assert selected("status.nodeName=") == {"on-none"}
    assert selected("status.nodeName=n1,status.phase=Running") == {"also-on-n1"}


def test_both_versions_show_the_same_object(api: Api, made: list[str]) -> None:
    path = create(api, made, golden.load("vm-cirros"))
    new, old = read(api, path), read(api, path.replace("/v1/", "/v1alpha3/"))

    assert old.pop("apiVersion") == "kubevirt.io/v1alpha3"
    assert new.pop("apiVersion") == "kubevirt.io/v1"
    assert old["spec"] == new["spec"]


SPEC = "spec/template/spec"


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        pytest.param("spec/running", True, "exactly one of runStrategy", id="running and runStrategy"),
        pytest.param("spec/runStrategy", ..., "exactly one of runStrategy", id="neither"),
        pytest.param("spec/runStrategy", "Sometimes", "spec.runStrategy", id="unknown strategy"),
        pytest.param("spec/template", ..., "spec.template", id="no template"),
        pytest.param(f"{SPEC}/volumes/0/emptyDisk", {"capacity": "1Gi"}, "exactly one source", id="two sources"),
        pytest.param(f"{SPEC}/volumes/0/containerDisk", ..., "exactly one source", id="no source"),
        pytest.param(f"{SPEC}/networks/0/pod", ..., "exactly one source", id="no network source"),
        pytest.param(f"{SPEC}/domain/devices/disks/0/cdrom", {}, "exclude each other", id="two targets"),
        pytest.param(f"{SPEC}/domain/firmware/bootloader/efi", {}, "exclude each other", id="two boot loaders"),
        pytest.param(f"{SPEC}/domain/clock/timezone", "UTC", "exclude each other", id="two clocks"),
        pytest.param(f"{SPEC}/domain/cpu/cores", -1, "domain.cpu.cores", id="negative cores"),
        pytest.param(f"{SPEC}/volumes/0/name", "../x", "volumes[0].name", id="malformed name"),
    ],
)
def test_the_server_refuses_the_worst_objects(api: Api, made: list[str], path: str, value: Any, words: str) -> None:
    manifest = golden.changed(golden.load("vm-full"), path, value)

    with pytest.raises(ApiError) as raised:
        create(api, made, manifest)

    assert raised.value.status == 422
    assert words in str(raised.value)


def test_the_schema_allows_a_change_of_the_spec_of_an_instance(api: Api, made: list[str]) -> None:
    """Admission decides who may change it."""
    path = create(api, made, golden.load("vmi-masquerade"))

    api.patch(path, {"spec": {"domain": {"memory": {"guest": "2Gi"}}, "networks": None}})

    assert read(api, path)["spec"]["domain"]["memory"]["guest"] == "2Gi"

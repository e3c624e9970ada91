# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Admission of dataVolumeTemplates and DataVolume volumes, with and without CDI. Upstream's example must pass."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.api.admission.review import parse_review, render_mutation
from controlplane.api.admission.verdict import Request, Settings, Verdict, review

CDI, NO_CDI, UNKNOWN = (Settings(serves_data_volumes=served) for served in (True, False, None))
SPEC = {
    "pvc": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}},
    "source": {"registry": {"url": "docker://registry:5000/kubevirt/alpine-container-disk-demo:devel"}},
}


_UPSTREAMS = object()


def alpine(spec: Any = _UPSTREAMS, **metadata: Any) -> dict[str, Any]:
    """Return upstream's vm-alpine-datavolume.yaml with one entry changed."""
    named = {"name": "alpine-dv", "creationTimestamp": None, **metadata}
    entry = {"metadata": named, "spec": SPEC if spec is _UPSTREAMS else spec}
    machine = {
        "domain": {
            "devices": {"disks": [{"disk": {"bus": "virtio"}, "name": "datavolumedisk1"}]},
            "machine": {"type": ""},
            "memory": {"guest": "128Mi"},
        },
        "terminationGracePeriodSeconds": 0,
        "volumes": [{"dataVolume": {"name": "alpine-dv"}, "name": "datavolumedisk1"}],
    }
    template = {"metadata": {"labels": {"kubevirt.io/vm": "vm-alpine-datavolume"}}, "spec": machine}
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": "vm-alpine-datavolume", "namespace": "default"},
        "spec": {"dataVolumeTemplates": [entry], "runStrategy": "Halted", "template": template},
    }


def judge(obj: dict[str, Any], settings: Settings = CDI, old: dict[str, Any] | None = None) -> Verdict:
    operation = "CREATE" if old is None else "UPDATE"
    return review(Request(operation, obj["kind"], "somebody", "u-1", obj, old), settings)


def listed(verdict: Verdict) -> list[tuple[str, str]]:
    return [(problem.path, problem.message) for problem in verdict.problems]


def instance(**source: Any) -> dict[str, Any]:
    machine = alpine()["spec"]["template"]["spec"]
    volumes = [{"name": "datavolumedisk1", **source}]
    meta = {"name": "web", "namespace": "default"}
    spec = {**machine, "volumes": volumes}
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": meta, "spec": spec}


def replica_set() -> dict[str, Any]:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": instance(dataVolume={"name": "x"})["spec"]}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    meta = {"name": "web", "namespace": "default"}
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstanceReplicaSet",
        "metadata": meta,
        "spec": spec,
    }


def test_with_cdi_upstreams_example_is_accepted() -> None:
    verdict = judge(alpine())

    assert verdict.problems == ()
    assert verdict.patched is not None
    assert verdict.patched["spec"]["dataVolumeTemplates"] == alpine()["spec"]["dataVolumeTemplates"]


@pytest.mark.parametrize(
    ("obj", "fields"),
    [
        (alpine(), ["spec.dataVolumeTemplates", "spec.template.spec.volumes[0].dataVolume"]),
        (instance(dataVolume={"name": "x"}), ["spec.volumes[0].dataVolume"]),
        (replica_set(), ["spec.template.spec.volumes[0].dataVolume"]),
    ],
    ids=["a VM", "an instance", "a replica set"],
)
def test_without_cdi_each_field_is_refused_with_a_remedy(obj: dict[str, Any], fields: list[str]) -> None:
    verdict = judge(obj, NO_CDI)

    assert [path for path, _unused in listed(verdict)] == fields
    assert all("install CDI, or use a persistentVolumeClaim" in text for _unused, text in listed(verdict))
    assert verdict.code == 422
    assert judge(obj).problems == ()


def test_while_cdi_is_unknown_the_request_is_to_be_retried() -> None:
    verdict = judge(alpine(), UNKNOWN)

    assert {path for path, _unused in listed(verdict)} == {
        "spec.dataVolumeTemplates",
        "spec.template.spec.volumes[0].dataVolume",
    }
    assert verdict.code == 503
    assert all("try again" in text for _unused, text in listed(verdict))
    assert judge(alpine({}), UNKNOWN).code == 422  # no retry can fix this one


def test_the_retry_response_does_not_blame_the_object() -> None:
    body = b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE",'
    body += b'"kind":{"kind":"VirtualMachine"},"userInfo":{"username":"somebody"},"object":{"kind":"VirtualMachine"}}}'

    answer = render_mutation(parse_review(body), judge(alpine(), UNKNOWN))

    assert (answer["response"]["allowed"], answer["response"]["status"]["code"]) == (False, 503)
    assert answer["response"]["status"]["reason"] == "ServiceUnavailable"


@pytest.mark.parametrize("settings", [NO_CDI, UNKNOWN], ids=["no CDI", "nobody knows"])
def test_objects_without_data_volumes_pass_and_admitted_ones_can_still_be_labelled(settings: Settings) -> None:
    assert judge(instance(persistentVolumeClaim={"claimName": "x"}), settings).problems == ()
    labelled = {**alpine(), "metadata": {**alpine()["metadata"], "labels": {"a": "b"}}}
    assert judge(labelled, settings, old=alpine()).problems == ()


ENTRY = "spec.dataVolumeTemplates[0]"
REF = {"dataSourceRef": {"kind": "VolumeSnapshot", "name": "x"}, **SPEC["pvc"]}
BAD = {
    "no name": ({"name": ""}, SPEC, "metadata.name", "is required"),
    "a name that is none": ({"name": "Alpine!"}, SPEC, "metadata.name", "DNS subdomain"),
    "named by no volume": ({"name": "other"}, SPEC, "metadata.name", "no volume of the template is made of"),
    "another namespace": ({"namespace": "shop"}, SPEC, "metadata.namespace", "is not the VirtualMachine's namespace"),
    "a label that is none": ({"labels": {"a b": ""}}, SPEC, "metadata.labels[a b]", "is not a label key"),
    "an annotation that is none": ({"annotations": {"a b": ""}}, SPEC, "metadata.annotations[a b]", "annotation key"),
    "neither pvc nor storage": ({}, {"source": {"blank": {}}}, "spec", "exactly one of pvc and storage"),
    "both": ({}, {**SPEC, "storage": {}}, "spec", "exactly one of pvc and storage"),
    "no source": ({}, {"pvc": SPEC["pvc"]}, "spec", "has no source"),
    "source and sourceRef": ({}, {**SPEC, "sourceRef": {"kind": "DataSource"}}, "spec", "source and sourceRef; keep"),
    "source and dataSourceRef": ({}, {**SPEC, "pvc": REF}, "spec", "source and dataSourceRef; keep one"),
    "an empty source": ({}, {**SPEC, "source": {}}, "spec.source", "has no source"),
    "two sources": ({}, {**SPEC, "source": {"blank": {}, "upload": {}}}, "spec.source", "has 2 sources"),
    "a spec that is text": ({}, "text", "spec", "must be an object"),
}


@pytest.mark.parametrize(("metadata", "spec", "field", "words"), BAD.values(), ids=BAD.keys())
def test_a_malformed_template_is_refused_by_its_field(metadata: Any, spec: Any, field: str, words: str) -> None:
    problems = listed(judge(alpine(spec, **metadata)))

    assert [path for path, text in problems if path == f"{ENTRY}.{field}" and words in text], problems


@pytest.mark.parametrize(
    "spec",
    [
        {"storage": {}, "source": {"blank": {}}},
        {"pvc": REF},
        {"storage": {}, "sourceRef": {"kind": "DataSource", "namespace": "images", "name": "fedora"}},
        {**SPEC, "preallocation": True, "somethingThatCdiLearnsLater": {"x": [1]}},
    ],
    ids=["storage", "a populator", "a reference", "fields of CDI's own"],
)
def test_cdi_judges_the_source(spec: Any) -> None:
    assert judge(alpine(spec)).problems == ()


def test_duplicate_template_names_and_claims_are_refused() -> None:
    vm = alpine()
    vm["spec"]["dataVolumeTemplates"] *= 2
    machine = vm["spec"]["template"]["spec"]
    machine["volumes"].append({"name": "again", "persistentVolumeClaim": {"claimName": "alpine-dv"}})

    paths = [path for path, _unused in listed(judge(vm))]

    assert paths == [
        "spec.template.spec.volumes[1].persistentVolumeClaim.claimName",
        "spec.dataVolumeTemplates[1].name",
    ]

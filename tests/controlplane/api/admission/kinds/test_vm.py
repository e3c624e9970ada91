# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Validation of a VirtualMachine beside its machine."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.api.admission.verdict import Request, Verdict, review
from tests.controlplane.api import golden
from tests.controlplane.api.admission.malformed import SETTINGS, assert_refused, each, row

ANNOTATIONS = "spec/template/metadata/annotations"

MALFORMED = [
    row("misspelt template", "spec/tempalte", {}, "did you mean template"),
    row("misspelt spec", "sepc", {}, "did you mean spec"),
    row("name in upper case", "metadata/name", "My_VM", "DNS subdomain"),
    row("name of 254 characters", "metadata/name", "a" * 254, "at most 253"),
    row("name with parent references", "metadata/name", "../../etc", "DNS subdomain"),
    row("name with a bidi override", "metadata/name", "a\u202eb", "\\u202e"),
    row(
        "malformed number of attempts",
        ANNOTATIONS,
        {"virtops.kubevirt/further-attempts": "many"},
        "a whole number from 0 to 10",
        at="metadata.annotations[virtops.kubevirt/further-attempts]",
    ),
    row(
        "run timeout of more than a day",
        ANNOTATIONS,
        {"virtops.kubevirt/run-timeout-seconds": "86401"},
        "a whole number from 0 to 86400",
        at="metadata.annotations[virtops.kubevirt/run-timeout-seconds]",
    ),
    row("label with a newline", "spec/template/metadata/labels", {"x": "a\nb"}, "label value", at="metadata.labels[x]"),
    row(
        "reserved label",
        "spec/template/metadata/labels",
        {"kubevirt.io/nodeName": "n1"},
        "reserved",
        at="metadata.labels[kubevirt.io/nodeName]",
    ),
    row(
        "unbuilt annotation",
        ANNOTATIONS,
        {"kubevirt.io/libvirt-log-filters": '1:*"\nuser="root'},
        "not built",
        at="metadata.annotations[kubevirt.io/libvirt-log-filters]",
    ),
    row("misspelt labels", "spec/template/metadata/lables", {}, "did you mean labels"),
    row("running and runStrategy", "spec/running", True, "exclude each other"),
    row("neither running nor runStrategy", "spec/runStrategy", ..., "required; set Always, Halted"),
    row("unknown strategy", "spec/runStrategy", "Sometimes", "Always, Halted, Manual"),
    row("unbuilt strategy", "spec/runStrategy", "WaitAsReceiver", "not built"),
    row("no template", "spec/template", ..., "is required"),
    row("template is a list", "spec/template", [], "must be an object, got a list"),
    row("spec is text", "spec", "text", "must be an object"),
]


REFERENCES = ("instancetype", "preference")
INFERRED = {"inferFromVolume": "containerdisk", "inferFromVolumeFailurePolicy": "Ignore"}


def judge(vm: dict[str, Any]) -> Verdict:
    return review(Request("CREATE", vm["kind"], "u", "1", vm), SETTINGS)


@pytest.mark.parametrize("name", REFERENCES)
def test_a_reference_that_may_be_left_out_is_left_out(name: str) -> None:
    """`virtctl create vm --volume-pvc` writes it by itself. As upstream, where the volume names nothing."""
    vm = golden.load("vm-full")
    verdict = judge(golden.changed(vm, f"spec/{name}", INFERRED))

    assert verdict.patched == judge(vm).patched
    assert f"spec.{name}: is left out" in " ".join(verdict.warnings)
    update = Request("UPDATE", vm["kind"], "u", "1", golden.changed(vm, f"spec/{name}", INFERRED), old=vm)
    assert review(update, SETTINGS).allowed


@pytest.mark.parametrize("name", REFERENCES)
@pytest.mark.parametrize(
    "reference",
    [
        {"inferFromVolume": "containerdisk"},
        {"inferFromVolume": "containerdisk", "inferFromVolumeFailurePolicy": "Reject"},
        {"name": "u1.medium"},
        {**INFERRED, "name": "u1.medium"},
        {"inferFromVolumeFailurePolicy": "Ignore"},
        {},
        "u1.medium",
    ],
    ids=str,
)
def test_a_reference_that_asks_for_something_is_refused_by_name(name: str, reference: Any) -> None:
    (problem,) = judge(golden.changed(golden.load("vm-full"), f"spec/{name}", reference)).problems

    assert str(problem) == f"spec.{name}: known to KubeVirt, not built in this version; remove it"


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("spec/template/metadata/creationTimestamp", ..., None),
        ("spec/template/spec/accessCredentials", ..., []),
        ("spec/template/spec/domain/chassis", ..., None),
        ("spec/template/spec/domain/memory/guest", "1024Mi", "1Gi"),
        ("spec/template/spec/hostname", ..., ""),
    ],
)
def test_a_write_of_a_typed_client_asks_for_no_restart(path: str, before: Any, after: Any) -> None:
    """virt-controller compares the template as it is stored."""
    vm = golden.changed(golden.changed(golden.load("vm-full"), path, "any"), path, before)
    old = judge(vm).patched
    assert old is not None
    new = golden.changed(golden.changed(old, path, after), "spec/runStrategy", "Halted")

    verdict = review(Request("UPDATE", vm["kind"], "u", "1", new, old=old), SETTINGS)

    assert verdict.problems == ()
    written = verdict.patched or new
    assert written["spec"]["template"]["spec"] == old["spec"]["template"]["spec"]
    assert written["spec"]["runStrategy"] == "Halted"


def test_a_change_of_the_template_is_written_as_it_is_given() -> None:
    old = judge(golden.load("vm-full")).patched
    assert old is not None
    new = golden.changed(
        golden.changed(old, "spec/template/spec/hostname", "other"), "spec/template/spec/networks/0/x", 1
    )
    new = golden.changed(new, "spec/template/spec/networks/0/x", ...)

    assert review(Request("UPDATE", old["kind"], "u", "1", new, old=old), SETTINGS) == Verdict(
        warnings=judge(golden.load("vm-full")).warnings
    )


@each(MALFORMED)
def test_a_malformed_vm_is_refused_with_field_and_remedy(path: str, value: Any, at: str, words: str) -> None:
    assert_refused(path, value, at, words, golden.load("vm-full"))

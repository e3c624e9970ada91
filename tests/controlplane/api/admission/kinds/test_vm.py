# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Validation of a VirtualMachine beside its machine."""

from __future__ import annotations

from typing import Any

from tests.controlplane.api import golden
from tests.controlplane.api.admission.malformed import assert_refused, each, row

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


@each(MALFORMED)
def test_a_malformed_vm_is_refused_with_field_and_remedy(path: str, value: Any, at: str, words: str) -> None:
    assert_refused(path, value, at, words, golden.load("vm-full"))

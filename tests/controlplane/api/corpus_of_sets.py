# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Malformed sets: one change to a good set (GOOD), the field that the error must name, and words it must contain.

Malformed machine templates are in corpus.py, for each kind that has one.
"""

from __future__ import annotations

from typing import Any

from tests.controlplane.api import golden
from tests.controlplane.api.corpus import Row

GOOD = golden.load("vmi-replicaset-cirros")
LABEL = "kubevirt.io/vmReplicaSet"
REQUIREMENT = {"key": LABEL, "operator": "Exists"}
LABELS = "spec/template/metadata/labels"
ANNOTATIONS = "spec/template/metadata/annotations"
EXPRESSIONS = "spec/selector/matchExpressions"


def labelled(**more: str) -> dict[str, str]:
    """Return the labels of the template and some more."""
    labels: dict[str, str] = GOOD["spec"]["template"]["metadata"]["labels"]
    return labels | more


def asked(**how: Any) -> list[dict[str, Any]]:
    """Return one malformed selector requirement."""
    return [REQUIREMENT | how]


SET_ROWS = [
    Row("fewer than none", "spec/replicas", -1, "spec.replicas", "from 0 to 10000"),
    Row("one too many", "spec/replicas", 10_001, "spec.replicas", "from 0 to 10000"),
    Row("2^31 replicas", "spec/replicas", 2**31, "spec.replicas", "from 0 to 10000"),
    Row("replicas as text", "spec/replicas", "3", "spec.replicas", "must be a whole number"),
    Row("paused as text", "spec/paused", "yes", "spec.paused", "true or false"),
    Row("no selector", "spec/selector", ..., "spec.selector", "is required"),
    Row("a selector of everything", "spec/selector", {}, "spec.selector", "would select everything"),
    Row("labels of nobody", "spec/selector", {"matchLabels": {}}, "spec.selector", "would select everything"),
    Row("no label key", "spec/selector/matchLabels", {"a b": "c"}, "spec.selector.matchLabels[a b]", "label key"),
    Row("another's label", "spec/selector/matchLabels", {LABEL: "other"}, "metadata.labels", "does not select"),
    Row("an operator nobody has", EXPRESSIONS, asked(operator="Like"), "operator", "In, NotIn, Exists"),
    Row("in nothing", EXPRESSIONS, asked(operator="In"), "values", "at least one value"),
    Row("a value that is not asked for", EXPRESSIONS, asked(values=["a"]), "values", "takes no values"),
    Row("no key of a requirement", EXPRESSIONS, asked(key="a b"), "matchExpressions[0][a b]", "label key"),
    Row("no operator", EXPRESSIONS, [{"key": LABEL}], "operator", "is required"),
    Row("a newline", EXPRESSIONS, asked(operator="In", values=["a\nb"]), f"Expressions[0][{LABEL}]", "label value"),
    Row("no template", "spec/template", ..., "spec.template", "is required"),
    Row("a template without labels", "spec/template/metadata", ..., "template.metadata.labels", "does not select"),
    Row("a template of others", LABELS, {LABEL: "x"}, "spec.template.metadata.labels", "does not select"),
    Row("a label of ours", LABELS, labelled(**{"kubevirt.io/nodeName": "n"}), "io/nodeName]", "reserved"),
    Row("an annotation of ours", ANNOTATIONS, {"kubevirt.io/vm-generation": "1"}, "io/vm-generation]", "reserved"),
    Row("lots of memory", "spec/template/spec/domain/memory", {"guest": "lots"}, "domain.memory.guest", "quantity"),
    Row("256 cores", "spec/template/spec/domain/cpu", {"cores": 256}, "spec.template.spec.domain.cpu", "255"),
    Row("a disk without volume", "spec/template/spec/volumes/0/name", "other", "disks[0].name", "no volume is called"),
    Row("misspelt replicas", "spec/replica", 3, "spec.replica", "did you mean replicas"),
]

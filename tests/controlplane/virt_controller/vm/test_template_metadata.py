# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which changes of a template's labels and annotations its running instance lacks."""

from __future__ import annotations

import pytest
from kubevirt_api.names import (
    FURTHER_ATTEMPTS,
    NODE_NAME,
    OUTDATED_LAUNCHER,
    POOL_REVISION,
    POOL_TEMPLATE,
    TEMPLATE_METADATA_HASH,
)

from controlplane.api.objects.meta import ObjectMeta
from controlplane.virt_controller.vm.template_metadata import changed_metadata, metadata_hash

PORT = "prometheus.io/port"
BEFORE = ObjectMeta(labels={"app": "web", "tier": "a"}, annotations={PORT: "80", "note": "x"})


def changed(labels: dict[str, str], annotations: dict[str, str], *, made_from: str | None = None) -> list[str]:
    """Return what changed. labels, annotations: of the template now."""
    own = {TEMPLATE_METADATA_HASH: made_from or metadata_hash(BEFORE)}
    # What users wrote on the instance itself is no change of the template.
    instance = ObjectMeta(labels={"app": "other", "mine": "x"}, annotations={**own, PORT: "81"})
    return changed_metadata(ObjectMeta(labels=labels, annotations=annotations), instance)


@pytest.mark.parametrize(
    ("labels", "annotations", "parts"),
    [
        ({"tier": "a", "app": "web"}, {"note": "x", PORT: "80"}, []),
        ({"app": "web", "tier": "a", "new": "x"}, BEFORE.annotations, ["labels"]),
        ({"app": "web", "tier": "b"}, BEFORE.annotations, ["labels"]),
        ({"app": "web"}, BEFORE.annotations, ["labels"]),
        ({}, {}, ["labels", "annotations"]),
        (BEFORE.labels, {PORT: "81", "note": "x"}, ["annotations"]),
        (BEFORE.labels, {"note": "x"}, ["annotations"]),
        (BEFORE.labels, {PORT: "80", "note": "y"}, []),
        (BEFORE.labels, {PORT: "80", FURTHER_ATTEMPTS: "0", POOL_TEMPLATE: "y"}, []),
        ({**BEFORE.labels, NODE_NAME: "x", POOL_REVISION: "y", OUTDATED_LAUNCHER: ""}, BEFORE.annotations, []),
    ],
    ids=[
        "another order",
        "a new label",
        "another value",
        "a label less",
        "none any more",
        "another annotation of the Pod",
        "an annotation of the Pod less",
        "a note",
        "annotations for the next start",
        "labels of the control plane",
    ],
)
def test_what_a_start_would_change_counts(
    labels: dict[str, str], annotations: dict[str, str], parts: list[str]
) -> None:
    assert changed(labels, annotations) == parts


def test_nothing_is_reported_of_an_instance_without_the_hash() -> None:
    """A former version created it."""
    assert changed_metadata(BEFORE, ObjectMeta()) == []


@pytest.mark.parametrize("made_from", ["x", "-", "a-b-c"])
def test_a_malformed_hash_is_a_change(made_from: str) -> None:
    assert changed(BEFORE.labels, BEFORE.annotations, made_from=made_from)[0] == "labels"

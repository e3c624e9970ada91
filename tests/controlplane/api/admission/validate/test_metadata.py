# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Annotations of a template. The API server validates only the metadata of the object itself."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.api.admission.problem import Problem
from controlplane.api.admission.verdict import Request, Settings, review
from tests.controlplane.api import golden

TEMPLATES = {"VM": "vm-full", "set": "vmi-replicaset-cirros"}
SIZE = 255 * 1024
BAD = ("größe/x", "a b", "x" * 64, "/x", "a/b/c", "")


def problems(template: str, annotations: dict[str, Any]) -> tuple[Problem, ...]:
    obj = golden.changed(golden.load(TEMPLATES[template]), "spec/template/metadata/annotations", annotations)
    request = Request(operation="CREATE", kind=obj["kind"], user="u", uid="1", obj=obj, old=None)
    return review(request, Settings()).problems


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("name", BAD)
def test_a_malformed_key_is_refused_by_its_name(template: str, name: str) -> None:
    (problem,) = problems(template, {name: "y", "note": "größe"})

    assert problem.path.startswith("spec.template.metadata.annotations[")
    assert "is not an annotation key" in problem.message


@pytest.mark.parametrize("template", TEMPLATES)
def test_keys_that_the_api_server_accepts_are_accepted(template: str) -> None:
    """Capitals in a prefix are among them."""
    assert problems(template, {"Example.com/A_note": "日本語", "x" * 63: ""}) == ()


@pytest.mark.parametrize("template", TEMPLATES)
def test_annotations_above_the_size_limit_minus_our_own_are_refused(template: str) -> None:
    most = {f"{number:04}": "x" * 1020 for number in range(SIZE // 1024)}
    assert problems(template, most) == ()
    (problem,) = problems(template, {**most, "0000": "x" * 1021})

    assert problem.path.endswith(".annotations")
    assert f"take {SIZE + 1} bytes together, at most {SIZE} are allowed" in problem.message

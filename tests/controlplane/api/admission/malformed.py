# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tables of malformed objects: one change to a good object, the field that the error must name, and its words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from _pytest.mark import ParameterSet

from controlplane.api.admission.verdict import Request, Settings, review
from controlplane.api.objects.resources import VIRTUAL_MACHINE_INSTANCE
from tests.controlplane.api import golden

SETTINGS = Settings(serves_data_volumes=True)


def row(title: str, path: str, value: Any, words: str, *, at: str = "") -> ParameterSet:
    """Return one row. The path has slashes; `at` is the end of the reported path, by default the same field."""
    reported = "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in path.split("/"))
    return pytest.param(path, value, at or reported, words, id=title)


def each(rows: Iterable[ParameterSet]) -> pytest.MarkDecorator:
    """Parametrize a test with rows."""
    return pytest.mark.parametrize(("path", "value", "at", "words"), rows)


def assert_refused(path: str, value: Any, at: str, words: str, good: dict[str, Any] | None = None) -> None:
    """Set one field of a good object, or of the spec of a VMI that has every field, and create it."""
    if good is None:
        good, path = golden.machine(VIRTUAL_MACHINE_INSTANCE), f"spec/{path}".removesuffix("/")
    bad = golden.changed(good, path, value)
    verdict = review(Request("CREATE", bad["kind"], "somebody", "u-1", bad), SETTINGS)
    problems = {str(problem): problem for problem in verdict.problems}
    matching = [p for p in problems.values() if f".{p.path}".endswith(at) and words in p.message]
    assert matching, list(problems)
    assert verdict.patched is None
    assert max(map(len, problems)) < 500

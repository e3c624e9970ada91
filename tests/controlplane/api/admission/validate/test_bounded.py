# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bounds on the cost of a malformed object: one user must not block admission for everybody else."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from controlplane.api.admission.problem import MAX_PROBLEMS, Problem
from controlplane.api.admission.validate.check import check_instance, check_object
from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.registry import KINDS, by_name
from tests.controlplane.api import golden
from tests.controlplane.api.admission.validate.test_affinity import REQUIRED, on_label

CONFIGURATION = KubeVirtConfiguration()
VMI = by_name(KINDS)["VirtualMachineInstance"]
GOOD = golden.load("vmi-masquerade")
DEVICES, AFFINITY = "spec/domain/devices", "spec/affinity"
UNKNOWN = [name for letter in "abcdefgh" for name in (letter, f"{letter}{letter}", f"{letter}{letter}b")]


def unknown(count: int) -> dict[str, Any]:
    return golden.changed(GOOD, DEVICES, {f"f{number:04}": 0 for number in range(count)})


def with_values(obj: dict[str, Any], count: int) -> dict[str, Any]:
    return golden.changed(obj, AFFINITY, {"nodeAffinity": {REQUIRED: on_label("a", "In", *["_"] * count)}})


def work(obj: dict[str, Any]) -> int:
    """Count the calls that it takes to judge an object."""
    calls = 0

    def count(*_unused: Any) -> None:
        nonlocal calls
        calls += 1

    sys.setprofile(count)
    try:
        assert check_instance(obj, CONFIGURATION)
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize("few", [20, 200])
def test_the_work_is_not_bad_fields_times_bad_values(few: int) -> None:
    """The object has as many bad values as unknown fields: four times the size is about four times the work."""
    small, large = (work(with_values(unknown(count), count)) for count in (few, 4 * few))

    assert large < 6 * small


def test_the_search_stops_at_the_number_of_reported_problems() -> None:
    few, many = unknown(2 * MAX_PROBLEMS), unknown(20 * MAX_PROBLEMS)

    assert len(check_instance(many, CONFIGURATION)) == MAX_PROBLEMS
    assert work(many) == work(few)
    beside = {**GOOD, **{f"f{number:04}": 0 for number in range(2 * MAX_PROBLEMS)}}
    assert len(check_instance(beside, CONFIGURATION)) == MAX_PROBLEMS
    values = with_values(GOOD, 5 * MAX_PROBLEMS)
    assert len(check_instance(values, CONFIGURATION)) == MAX_PROBLEMS


def test_no_rule_runs_after_the_last_reported_problem() -> None:
    asked_about = []
    rules = replace(VMI.rules, spec=lambda *_unused: asked_about.append(1) or iter(()))

    for count in (MAX_PROBLEMS - 1, MAX_PROBLEMS):
        check_object(unknown(count), CONFIGURATION, kind=VMI.root, rules=rules)

    assert asked_about == [1]


def is_repeated(rule: str, path: str) -> bool:
    """Whether the two paths are equal or one contains the other."""
    short, long = sorted((rule, path), key=len)
    return long == short or (long.startswith(short) and long[len(short)] in ".[")


def test_a_rule_is_skipped_exactly_where_its_field_or_one_above_or_below_is_reported() -> None:
    chance = random.Random(1)
    parts = ("", ".aa", ".a", "[0]", "[1]", "[a.b]", "[a.b].c", "[0].a", ".aa.bb")

    def said(path: str) -> Iterator[Problem]:
        yield Problem(path, "a rule")

    for _unused in range(500):
        bad = chance.sample(UNKNOWN, 3)
        rule = chance.choice(("spec", *(f"spec.{name}{chance.choice(parts)}" for name in UNKNOWN)))
        obj = golden.changed(GOOD, "spec", {**GOOD["spec"], **dict.fromkeys(bad, 0)})
        rules = replace(VMI.rules, spec=lambda *_unused, rule=rule: said(rule))

        problems = check_object(obj, CONFIGURATION, kind=VMI.root, rules=rules)

        paths = [item.path for item in problems if item.message == "a rule"]
        assert sorted(item.path for item in problems if item.message != "a rule") == sorted(
            f"spec.{name}" for name in bad
        )
        assert paths == ([] if any(is_repeated(rule, f"spec.{name}") for name in bad) else [rule])

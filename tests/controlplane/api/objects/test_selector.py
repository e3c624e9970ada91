# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Label selectors: matching and formatting as Kubernetes does it."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.api.objects.decode import decode
from controlplane.api.objects.selector import LabelSelector, matcher, matches, render

WEB = {"app": "web", "tier": "front"}


def a_selector(*requirements: tuple[Any, ...], **labels: str) -> LabelSelector:
    expressions = [{"key": key, "operator": word, "values": values} for key, word, *values in requirements]
    return decode({"matchLabels": labels, "matchExpressions": expressions}, LabelSelector)


@pytest.mark.parametrize(
    ("selector", "expected", "text"),
    [
        pytest.param(a_selector(), True, "", id="nothing asked"),
        pytest.param(a_selector(app="web"), True, "app=web", id="a label"),
        pytest.param(a_selector(app="db"), False, "app=db", id="another value"),
        pytest.param(a_selector(zone="a"), False, "zone=a", id="not there"),
        pytest.param(a_selector(tier="front", app="web"), True, "app=web,tier=front", id="two labels"),
        pytest.param(a_selector(tier="front", app="db"), False, "app=db,tier=front", id="one of two"),
        pytest.param(a_selector(("app", "In", "web", "db")), True, "app in (db,web)", id="in"),
        pytest.param(a_selector(("app", "In", "db")), False, "app in (db)", id="not in the list"),
        pytest.param(a_selector(("zone", "In", "a")), False, "zone in (a)", id="in, not there"),
        pytest.param(a_selector(("app", "NotIn", "db")), True, "app notin (db)", id="notin"),
        pytest.param(a_selector(("app", "NotIn", "web")), False, "app notin (web)", id="in the list"),
        pytest.param(a_selector(("zone", "NotIn", "a")), True, "zone notin (a)", id="notin, not there"),
        pytest.param(a_selector(("app", "Exists")), True, "app", id="exists"),
        pytest.param(a_selector(("zone", "Exists")), False, "zone", id="exists, not there"),
        pytest.param(a_selector(("zone", "DoesNotExist")), True, "!zone", id="does not exist"),
        pytest.param(a_selector(("app", "DoesNotExist")), False, "!app", id="does not exist, is there"),
        pytest.param(a_selector(("zone", "Exists"), app="web"), False, "app=web,zone", id="labels and expressions"),
    ],
)
def test_a_selector_matches_as_its_text_says(selector: LabelSelector, expected: bool, text: str) -> None:
    assert matches(selector, WEB) is expected
    assert render(selector) == text


def test_a_selector_is_compiled_once_for_many_labels() -> None:
    """The number of values does not matter: matching looks a label up and does not scan."""

    class Value(str):
        compared = 0

        def __eq__(self, other: object) -> bool:
            Value.compared += 1
            return super().__eq__(other)

        __hash__ = str.__hash__

    is_met = matcher(a_selector(("app", "NotIn", *(f"v{number}" for number in range(1000)))))

    assert all(is_met({"app": Value("web")}) for _each in range(10))
    assert not is_met({"app": Value("v999")})
    assert Value.compared < 100


def test_an_unknown_operator_selects_nothing() -> None:
    assert not matches(a_selector(("app", "Resembles", "web")), WEB)

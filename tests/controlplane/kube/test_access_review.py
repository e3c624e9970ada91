# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from controlplane.engine.errors import Unavailable
from controlplane.kube.access_review import Attributes, User, review_access, review_body

USER = User("jane", ("dev", "system:authenticated"), {"scopes": ("a", "b")})
START = Attributes("update", "subresources.kubevirt.io", "v1", "virtualmachines", "start", "ns", "web")


class Answering:
    """An API whose create returns a fixed object."""

    def __init__(self, status: Any) -> None:
        self.status = status

    async def create(self, resource: Any, namespace: str, body: Any) -> dict[str, Any]:
        return {**body, "status": self.status}


def test_the_review_names_user_and_attributes_and_omits_empty_ones() -> None:
    assert review_body(USER, START)["spec"] == {
        "user": "jane",
        "groups": ["dev", "system:authenticated"],
        "extra": {"scopes": ["a", "b"]},
        "resourceAttributes": {
            "verb": "update",
            "group": "subresources.kubevirt.io",
            "version": "v1",
            "resource": "virtualmachines",
            "subresource": "start",
            "namespace": "ns",
            "name": "web",
        },
    }


def test_the_review_names_the_uid_of_the_user_when_given() -> None:
    assert review_body(replace(USER, uid="1234"), START)["spec"]["uid"] == "1234"


@pytest.mark.parametrize(
    ("status", "allowed"),
    [
        ({"allowed": True}, True),
        ({"allowed": True, "denied": True}, False),
        ({"allowed": False}, False),
        ({"allowed": "yes"}, False),
        ({}, False),
    ],
    ids=["yes", "denied wins", "no", "not a boolean", "nothing"],
)
async def test_only_allowed_true_is_a_yes(status: dict[str, Any], allowed: bool) -> None:
    decision = await review_access(Answering(status), USER, START)  # type: ignore[arg-type]

    assert decision.allowed is allowed


async def test_a_response_without_a_status_is_an_error() -> None:
    with pytest.raises(Unavailable):
        await review_access(Answering(None), USER, START)  # type: ignore[arg-type]

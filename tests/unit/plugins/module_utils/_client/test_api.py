# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Responses that are no objects, from a proxy between a module and its API server."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.api import Api, Resource
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import NotFound, Unavailable

VMS = Resource("kubevirt.io/v1", "virtualmachines", "VirtualMachine", "default")


class Answering:
    """A transport with one response."""

    def __init__(self, answer: Any, status: int = 200) -> None:
        self._answer = status, answer

    def request(self, *_unused: object, **_options: object) -> tuple[int, Any]:
        return self._answer


@pytest.mark.parametrize(
    "answer",
    [[], "text", 5, {"items": "text"}, {"items": ["text"]}, {"items": {"a": 1}}, {"metadata": "text"}],
    ids=str,
)
def test_a_response_that_is_no_list_is_an_error(answer: Any) -> None:
    with pytest.raises(Unavailable, match="cannot list virtualmachines: unexpected response, status 200 with"):
        Api(Answering(answer)).list(VMS)  # type: ignore[arg-type]


@pytest.mark.parametrize("answer", [[], "text", {"metadata": ["text"]}], ids=str)
def test_a_response_that_is_no_object_is_an_error(answer: Any) -> None:
    with pytest.raises(
        Unavailable, match="cannot read VirtualMachine default/web: unexpected response, status 200 with"
    ):
        Api(Answering(answer)).get(VMS, "web")  # type: ignore[arg-type]


@pytest.mark.parametrize("answer", [{"details": "no such page"}, {"details": ["web"]}, "no such page"], ids=str)
def test_a_404_of_a_proxy_is_no_missing_object(answer: Any) -> None:
    with pytest.raises(NotFound, match="the API server does not know this kind"):
        Api(Answering(answer, 404)).get(VMS, "web")  # type: ignore[arg-type]

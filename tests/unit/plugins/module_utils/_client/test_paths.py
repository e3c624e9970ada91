# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""No name breaks out of its segment of a URL."""

from __future__ import annotations

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client import paths
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import BadArgument


def test_segments_are_encoded() -> None:
    path = paths.resource_path("kubevirt.io/v1", "virtualmachines", "a?b", "../c%2f", "start")
    assert path == "/apis/kubevirt.io/v1/namespaces/a%3Fb/virtualmachines/..%2Fc%252f/start"


def test_core_group_and_query() -> None:
    assert paths.resource_path("v1", "pods") == "/api/v1/pods"
    assert paths.with_query("/x", {"a": "b=c", "d": True, "e": None}) == "/x?a=b%3Dc&d=true"
    assert paths.with_query("/x", {"e": None}) == "/x"


@pytest.mark.parametrize("name", ["", "A", "a_b", "-a", "a..b", "a/b", "a\n", "x" * 254, 7])
def test_bad_names_are_refused(name: object) -> None:
    with pytest.raises(BadArgument):
        paths.check_name("name", name)


@pytest.mark.parametrize("name", ["a", "a.b", "0-1"])
def test_good_names_pass(name: str) -> None:
    paths.check_name("name", name)


def test_namespaces_have_no_dots() -> None:
    with pytest.raises(BadArgument):
        paths.check_namespace("namespace", "a.b")

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Version strings of the programs in a cluster."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.versions import release, without_image_volumes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("v1.36.3", "1.36.3", id="Kubernetes"),
        pytest.param("v1.36.3-eks-0a1b2c", "1.36.3", id="a provider's"),
        pytest.param("v1.36.3+k3s1", "1.36.3", id="a distribution's"),
        pytest.param("2.3.7", "2.3.7", id="a runtime's"),
        pytest.param("v1.37.0-beta.1", "1.37.0", id="one that comes"),
        pytest.param("unknown", None, id="none"),
        pytest.param("", None, id="nothing"),
    ],
)
def test_the_release_is_parsed_from_a_version_string(text: str, expected: str | None) -> None:
    assert release(text) == expected


def node(runtime: str) -> dict[str, Any]:
    return {"metadata": {"name": "a"}, "status": {"nodeInfo": {"containerRuntimeVersion": runtime}}}


@pytest.mark.parametrize(
    ("runtime", "expected"),
    [
        pytest.param("containerd://2.3.7", [], id="new"),
        pytest.param("containerd://2.1.0", [], id="the first that can"),
        pytest.param("containerd://2.0.5", ["a (containerd 2.0.5)"], id="the last that cannot"),
        pytest.param("containerd://1.7.27", ["a (containerd 1.7.27)"], id="old"),
        pytest.param("cri-o://1.30.9", ["a (cri-o 1.30.9)"], id="old CRI-O"),
        pytest.param("cri-o://1.31.0", [], id="new CRI-O"),
        pytest.param("other://0.1.0", [], id="nobody knows"),
        pytest.param("containerd://main", [], id="without a version"),
        pytest.param("", [], id="not text yet"),
    ],
)
def test_a_runtime_too_old_for_image_volumes_is_named(runtime: str, expected: list[str]) -> None:
    assert without_image_volumes([node(runtime)]) == expected


def test_a_node_without_version_information_is_not_named() -> None:
    assert without_image_volumes([{"metadata": {"name": "a"}}]) == []

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether API servers, kubelets and container runtimes have image volumes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import (
    Forbidden,
    Invalid,
    Unavailable,
    VirtError,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.image_volumes import (
    has_api_server,
    kubelets_without,
    runtimes_without,
)

OFF = Invalid("create Pod: spec.volumes[0]: Required value: must specify a volume type", status=422)
OTHER = Invalid("create Pod: spec.containers[0].image: Invalid value", status=422)


class Cluster:
    """An API that answers a dry run, and the configuration of kubelets by node."""

    def __init__(
        self, error: VirtError | None = None, gates: Mapping[str, Mapping[str, bool] | VirtError] | None = None
    ):
        self.error, self.gates, self.requests = error, gates or {}, list[str]()

    def create(self, _resource: Any, obj: dict[str, Any], *, dry_run: bool) -> dict[str, Any]:
        assert dry_run
        self.requests.append("create")
        if self.error:
            raise self.error
        return obj

    def ask(self, _resource: Any, name: str, subresource: str) -> dict[str, Any]:
        self.requests.append(f"{name}/{subresource}")
        answer = self.gates[name]
        if isinstance(answer, VirtError):
            raise answer
        return {"kubeletconfig": {"featureGates": dict(answer)}}


@pytest.mark.parametrize(
    ("version", "error", "has"),
    [
        ("1.34.4", None, True),
        ("1.34.4", OFF, False),
        ("1.33.0", OTHER, True),
        ("1.33.0", Forbidden("a quota", status=403), True),
    ],
)
def test_an_older_api_server_is_tried(version: str, error: VirtError | None, has: bool) -> None:
    assert has_api_server(Cluster(error), version) is has  # type: ignore[arg-type]


@pytest.mark.parametrize("version", ["1.35.0", "1.37.2", "2.0.0", None])
def test_an_api_server_with_the_gate_on_by_default_is_not_tried(version: str | None) -> None:
    cluster = Cluster(OFF)
    assert has_api_server(cluster, version)  # type: ignore[arg-type]
    assert cluster.requests == []


def a_node(name: str, version: str, *, ready: str = "True") -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": ready}]
    return {"metadata": {"name": name}, "status": {"nodeInfo": {"kubeletVersion": version}, "conditions": conditions}}


def test_kubelets_with_the_gate_off_are_named_with_their_version() -> None:
    gates: dict[str, Mapping[str, bool] | VirtError] = {
        "on": {"ImageVolume": True},
        "off": {"ImageVolume": False},
        "default": {},
        "refuses": Forbidden("nodes/proxy", status=403),
        "fails": Unavailable("no answer"),
    }
    nodes = [a_node(name, "v1.34.4+k3s1") for name in gates]
    nodes += [a_node("new", "v1.36.3"), a_node("away", "v1.34.4", ready="Unknown"), {"metadata": {"name": "bare"}}]
    cluster = Cluster(gates=gates)
    text = "(kubelet 1.34.4, feature gate ImageVolume off)"
    assert kubelets_without(cluster, nodes) == [f"default {text}", f"off {text}"]  # type: ignore[arg-type]
    assert cluster.requests == [f"{name}/proxy/configz" for name in gates]


def of_runtime(runtime: str) -> dict[str, Any]:
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
    assert runtimes_without([of_runtime(runtime)]) == expected


def test_a_node_without_version_information_is_not_named() -> None:
    assert runtimes_without([{"metadata": {"name": "a"}}]) == []

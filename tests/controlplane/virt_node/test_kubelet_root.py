# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role mounts the kubelet's root directory into virt-node at a fixed path, wherever it is on the node."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.virt_node.settings import Settings
from tests.controlplane.virt_api.test_manifests import render

PLUGINS = "/var/lib/kubelet/device-plugins"
"""A constant of Kubernetes' device plugin API: it does not depend on the kubelet's --root-dir."""


def mounts(**options: Any) -> dict[str, tuple[str, str]]:
    """Return by volume: the path on the node and the path in the container."""
    (daemon,) = [manifest for manifest in render("virt-node.yaml.j2", **options) if manifest["kind"] == "DaemonSet"]
    pod = daemon["spec"]["template"]["spec"]
    inside = {mount["name"]: mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]}
    return {
        volume["name"]: (volume["hostPath"]["path"], inside[volume["name"]])
        for volume in pod["volumes"]
        if "hostPath" in volume
    }


def test_the_default_root_needs_no_option() -> None:
    assert mounts()["pods"] == ("/var/lib/kubelet/pods", "/var/lib/kubelet/pods")


@pytest.mark.parametrize("root", ["/var/lib/k0s/kubelet", "/var/snap/microk8s/common/var/lib/kubelet", "/data/a: b"])
def test_another_root_moves_the_pods_and_not_the_device_plugins(root: str) -> None:
    by_volume = mounts(control_plane_kubelet_root=root)
    assert by_volume["pods"] == (f"{root}/pods", str(Settings().pods_directory))
    assert by_volume["device-plugins"] == (PLUGINS, str(Settings().device_plugins_directory))

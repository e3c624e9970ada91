# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role mounts the kubelet's root directory into virt-node at a fixed path, and virt-node notices another one."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from controlplane.virt_node import kubelet_root
from controlplane.virt_node.kubelet_root import check_pods_directory, find_kubelet_root
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


UID = "b7c1"
EMPTY_DIR = f"pods/{UID}/volumes/kubernetes.io~empty-dir/capabilities"


def mountinfo(*mounts: tuple[str, str, str]) -> str:
    """Return the lines of mounts (device, root in its file system, mount point), in the kernel's format."""
    return "\n".join(f"1 2 {device} {root} {point} rw shared:1 - ext4 /dev/x rw" for device, root, point in mounts)


ROOT_DISK = ("8:1", "/", "/")


@pytest.mark.parametrize(
    ("host", "root", "expected"),
    [
        pytest.param([ROOT_DISK], "/var/lib/kubelet", "/var/lib/kubelet", id="one disk"),
        pytest.param(
            [ROOT_DISK, ("8:2", "/", "/var")], "/lib/k0s/kubelet", "/var/lib/k0s/kubelet", id="a disk for /var"
        ),
        pytest.param(
            [ROOT_DISK, ("8:2", "/", "/mnt"), ("8:2", "/data", "/data")],
            "/data/kubelet",
            "/data/kubelet",
            id="a bind mount: the nearest",
        ),
        pytest.param([("8:2", "/", "/")], r"/a\040b/kubelet", "/a b/kubelet", id="a blank"),
        pytest.param([("8:9", "/", "/")], "/var/lib/kubelet", None, id="not mounted on the node"),
    ],
)
def test_the_root_is_found_where_this_pods_volume_is(
    host: list[tuple[str, str, str]], root: str, expected: str | None
) -> None:
    own = (ROOT_DISK[0] if len(host) == 1 and host[0] == ROOT_DISK else "8:2", f"{root}/{EMPTY_DIR}", "/capabilities")
    found = find_kubelet_root(mountinfo(*host), mountinfo(("0:9", "/", "/"), own), PurePosixPath("/capabilities"))
    assert found == expected


def test_a_volume_that_is_no_empty_dir_tells_nothing() -> None:
    own = mountinfo(("8:1", "/elsewhere", "/capabilities"))
    assert find_kubelet_root(mountinfo(ROOT_DISK), own, PurePosixPath("/capabilities")) is None


def test_a_directory_with_this_pod_is_the_kubelets(tmp_path: Path) -> None:
    (tmp_path / UID).mkdir()
    check_pods_directory(tmp_path, UID, tmp_path)


def test_another_directory_is_refused_with_the_option_and_the_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in (
        ("HOST_MOUNTS", mountinfo(ROOT_DISK)),
        ("OWN_MOUNTS", mountinfo(("8:1", f"/var/lib/k0s/kubelet/{EMPTY_DIR}", "/capabilities"))),
    ):
        (tmp_path / name).write_text(text)
        monkeypatch.setattr(kubelet_root, name, tmp_path / name)
    with pytest.raises(ValueError, match=rf"lacks this Pod \({UID}\). Set control_plane_kubelet_root to /var/lib/k0s"):
        check_pods_directory(tmp_path, UID, Path("/capabilities"))

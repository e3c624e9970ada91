# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The objects of every lab."""

from __future__ import annotations

from lab.cluster.manifests import base_objects


def test_one_storage_class_is_the_default() -> None:
    classes = [item for _unused, item in base_objects() if item["kind"] == "StorageClass"]
    defaults = [
        item["metadata"]["name"]
        for item in classes
        if item["metadata"]["annotations"].get("storageclass.kubernetes.io/is-default-class") == "true"
    ]
    assert defaults == ["standard"]


def test_the_permission_of_kubelets_comes_first() -> None:
    """A kubelet caches a denial for 30 s."""
    assert base_objects()[0][1]["metadata"]["name"] == "lab:kubelet-api-admin"


def test_dns_is_unprivileged() -> None:
    (deployment,) = [item for _unused, item in base_objects() if item["kind"] == "Deployment"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}

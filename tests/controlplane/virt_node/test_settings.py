# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings from the environment."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from controlplane.virt_node.settings import read_settings


def test_every_setting_has_a_default() -> None:
    settings = read_settings({})
    assert (settings.pods_directory, settings.log_level) == (Path("/var/lib/kubelet/pods"), "INFO")
    assert settings.socket == Path("/run/virtops/node/virt-node.sock")


def test_the_pod_is_known_from_the_environment() -> None:
    assert read_settings({"POD_UID": "u"}).pod_uid == "u"


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("NODE_SOCKET", "socket"),
        ("KUBELET_PODS", "pods_directory"),
        ("KUBELET_DEVICE_PLUGINS", "device_plugins_directory"),
        ("DEVICES_DIRECTORY", "devices_directory"),
        ("CAPABILITIES_DIRECTORY", "capabilities_directory"),
        ("KVM_PROBE", "kvm_probe"),
    ],
)
def test_each_path_can_be_set_separately(name: str, field: str) -> None:
    defaults = read_settings({})
    assert read_settings({name: "/elsewhere"}) == replace(defaults, **{field: Path("/elsewhere")})

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of virt-controller from the environment."""

from __future__ import annotations

import pytest

from controlplane.virt_controller.settings import Settings, SettingsError, read_settings

REQUIRED = {"POD_NAMESPACE": "kubevirt", "VIRT_LAUNCHER_IMAGE": "launcher:1"}


def test_defaults() -> None:
    assert read_settings(REQUIRED) == Settings(namespace="kubevirt", launcher_image="launcher:1")


def test_every_setting_can_be_set() -> None:
    settings = read_settings(
        {**REQUIRED, "POD_NAME": "me", "LOG_LEVEL": "DEBUG", "HEALTH_PORT": "9", "HEALTH_ADDRESS": "::1"}
    )
    assert read_settings({**REQUIRED, "IMAGE_PULL_SECRETS": '["one", "two"]'}).image_pull_secrets == ("one", "two")
    assert read_settings({**REQUIRED, "CONTROL_PLANE_IMAGE": "plane:1"}).image == "plane:1"
    assert (settings.pod_name, settings.log_level, settings.port, settings.address) == ("me", "DEBUG", 9, "::1")


@pytest.mark.parametrize(
    ("port", "is_valid"),
    [("0", False), ("1", True), ("65535", True), ("65536", False), ("-1", False), ("8080 ", False), ("٨", False)],
    ids=ascii,
)
def test_only_a_valid_port_is_accepted(port: str, is_valid: bool) -> None:
    """With 0 the kernel would choose a port that no probe knows."""
    if is_valid:
        assert read_settings({**REQUIRED, "HEALTH_PORT": port}).port == int(port)
    else:
        with pytest.raises(SettingsError, match="is not a port"):
            read_settings({**REQUIRED, "HEALTH_PORT": port})


def test_an_error_names_all_problems() -> None:
    with pytest.raises(SettingsError) as caught:
        read_settings({"HEALTH_PORT": "eighty", "IMAGE_PULL_SECRETS": "registry"})
    for name in ("POD_NAMESPACE", "VIRT_LAUNCHER_IMAGE", "HEALTH_PORT 'eighty'", "IMAGE_PULL_SECRETS is not a list"):
        assert name in str(caught.value)

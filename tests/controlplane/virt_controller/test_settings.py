# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""virt-controller's environment."""

from __future__ import annotations

import pytest

from controlplane.virt_controller.settings import Settings, SettingsError, read_settings

NEEDED = {"POD_NAMESPACE": "kubevirt", "VIRT_LAUNCHER_IMAGE": "launcher:1"}


def test_what_is_not_set_has_its_default() -> None:
    assert read_settings(NEEDED) == Settings(namespace="kubevirt", launcher_image="launcher:1")


def test_everything_can_be_set() -> None:
    found = read_settings(
        {**NEEDED, "POD_NAME": "me", "LOG_LEVEL": "DEBUG", "HEALTH_PORT": "9", "HEALTH_ADDRESS": "::1"}
    )
    assert read_settings({**NEEDED, "IMAGE_PULL_SECRETS": '["one", "two"]'}).image_pull_secrets == ("one", "two")
    assert read_settings({**NEEDED, "CONTROL_PLANE_IMAGE": "plane:1"}).image == "plane:1"
    assert (found.pod_name, found.log_level, found.port, found.address) == ("me", "DEBUG", 9, "::1")


@pytest.mark.parametrize(
    ("port", "is_one"),
    [("0", False), ("1", True), ("65535", True), ("65536", False), ("-1", False), ("8080 ", False), ("٨", False)],
    ids=ascii,
)
def test_a_port_is_one_that_can_be_asked_at(port: str, is_one: bool) -> None:
    """0 would be any, and no probe would find it."""
    if is_one:
        assert read_settings({**NEEDED, "HEALTH_PORT": port}).port == int(port)
    else:
        with pytest.raises(SettingsError, match="is not a port"):
            read_settings({**NEEDED, "HEALTH_PORT": port})


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(SettingsError) as caught:
        read_settings({"HEALTH_PORT": "eighty", "IMAGE_PULL_SECRETS": "registry"})
    for name in ("POD_NAMESPACE", "VIRT_LAUNCHER_IMAGE", "HEALTH_PORT 'eighty'", "IMAGE_PULL_SECRETS is no list"):
        assert name in str(caught.value)

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings from the environment."""

from __future__ import annotations

import pytest

from controlplane.virt_handler.settings import SettingsError, read_settings

LEAST = {"NODE_NAME": "node-1", "POD_NAMESPACE": "kubevirt"}


def test_node_and_namespace_are_enough() -> None:
    settings = read_settings(LEAST)
    assert (settings.node, settings.namespace, settings.port, settings.log_level) == (
        "node-1",
        "kubevirt",
        8443,
        "INFO",
    )
    assert settings.node_socket == "/run/virtops/node/virt-node.sock"


def test_addresses_and_networks_are_read() -> None:
    assert read_settings(LEAST).address == ""
    assert read_settings({**LEAST, "HEALTH_ADDRESS": "10.0.0.7"}).address == "10.0.0.7"
    assert read_settings(LEAST).migration_network == ""
    assert read_settings({**LEAST, "MIGRATION_NETWORK": "net/one"}).migration_network == "net/one"
    values = [read_settings({**LEAST, "ON_CONTROL_PLANE": word}).is_on_control_plane for word in ("true", "false", "")]
    assert values == [True, False, False]


def test_all_problems_are_reported_at_once() -> None:
    with pytest.raises(SettingsError, match="NODE_NAME is not set; POD_NAMESPACE is not set; HEALTH_PORT 'x' is not"):
        read_settings({"HEALTH_PORT": "x"})


@pytest.mark.parametrize("port", ["0", "65536", "-1", "8080 "], ids=repr)
def test_an_invalid_port_is_refused(port: str) -> None:
    with pytest.raises(SettingsError, match="is not a port"):
        read_settings({**LEAST, "HEALTH_PORT": port})

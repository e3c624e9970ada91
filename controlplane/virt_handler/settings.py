# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""virt-handler's settings and their defaults, read from the environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from controlplane.domain import layout
from controlplane.links.handler import PORT


class SettingsError(Exception):
    """Variables are missing or invalid. The text lists all problems."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    node: str
    """Name of the Node that this process serves."""
    namespace: str
    """The control plane's namespace, which also has the heartbeat's Lease."""
    pod_name: str = ""
    """The holder of the Lease."""
    log_level: str = "INFO"
    port: int = 8443
    """Health and metrics, HTTPS."""
    address: str = ""
    """The address of health, metrics and the endpoint for virt-api; "": all. The role sets the Pod's address."""
    endpoint_port: int = PORT
    """The endpoint for virt-api, TLS, at the same address. virt-api must be able to reach it."""
    node_socket: str = layout.NODE_SOCKET
    """The path of virt-node's socket."""
    sockets: str = layout.HANDLER_RUN
    """A directory for sockets that no other process sees."""
    migration_network: str = ""
    """The migration network; "": the interface `migration0` if the Pod has one, else the Pod's network."""
    image: str = ""
    """The control plane's image, for the Node's annotation kubevirt.io/control-plane-image."""
    is_on_control_plane: bool = False
    """VMs may also run on a node that is reserved for the cluster's control plane."""


def read_settings(environment: Mapping[str, str]) -> Settings:
    """Read NODE_NAME and POD_NAMESPACE (both required), POD_NAME, LOG_LEVEL, HEALTH_PORT, HEALTH_ADDRESS,
    ENDPOINT_PORT, NODE_SOCKET, SOCKETS, MIGRATION_NETWORK, CONTROL_PLANE_IMAGE and ON_CONTROL_PLANE ("true").

    Raises SettingsError.
    """
    problems = [f"{name} is not set" for name in ("NODE_NAME", "POD_NAMESPACE") if not environment.get(name)]
    ports = {
        "HEALTH_PORT": environment.get("HEALTH_PORT", "8443"),
        "ENDPOINT_PORT": environment.get("ENDPOINT_PORT", f"{PORT}"),
    }
    for name, port in ports.items():
        if not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
            problems.append(f"{name} {port!r} is not a port")
    if problems:
        raise SettingsError("cannot start virt-handler: " + "; ".join(problems))
    return Settings(
        node=environment["NODE_NAME"],
        namespace=environment["POD_NAMESPACE"],
        pod_name=environment.get("POD_NAME", ""),
        log_level=environment.get("LOG_LEVEL") or "INFO",
        port=int(ports["HEALTH_PORT"]),
        address=environment.get("HEALTH_ADDRESS", ""),
        endpoint_port=int(ports["ENDPOINT_PORT"]),
        node_socket=environment.get("NODE_SOCKET") or layout.NODE_SOCKET,
        sockets=environment.get("SOCKETS") or layout.HANDLER_RUN,
        migration_network=environment.get("MIGRATION_NETWORK", ""),
        image=environment.get("CONTROL_PLANE_IMAGE", ""),
        is_on_control_plane=environment.get("ON_CONTROL_PLANE") == "true",
    )

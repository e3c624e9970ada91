# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""virt-handler's settings: from the environment, once, in __main__. Every default stands here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from controlplane.domain import layout
from controlplane.links.handler import PORT


class SettingsError(Exception):
    """The environment lacks something, or something in it cannot be right; all problems at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    node: str
    """Name of the Node that this process serves."""
    namespace: str
    """Where the control plane lives; the heartbeat's Lease is there."""
    pod_name: str = ""
    """For the Lease's holder and for Events."""
    log_level: str = "INFO"
    port: int = 8080
    """Health and metrics, plain HTTP."""
    address: str = ""
    """Where that is served; "" is every address. The role sets the Pod's."""
    door_port: int = PORT
    """Where virt-api asks about guests, TLS, at the same address, which it must be able to call."""
    node_socket: str = layout.NODE_SOCKET
    """Where virt-node listens."""
    sockets: str = layout.HANDLER_RUN
    """Where this process makes sockets that nobody else sees."""
    migration_network: str = ""
    """The network by which migrations come; "": by one that is named so if there is one, else the Pod's."""
    image: str = ""
    """Of the control plane, as the role names it: the node says so, see kubevirt.io/control-plane-image."""
    is_on_control_plane: bool = False
    """Machines are taken also where the node is kept for the control plane of the cluster."""


def read_settings(environment: Mapping[str, str]) -> Settings:
    """Read NODE_NAME and POD_NAMESPACE (both needed), POD_NAME, LOG_LEVEL, HEALTH_PORT, HEALTH_ADDRESS, DOOR_PORT,
    NODE_SOCKET, SOCKETS, MIGRATION_NETWORK, CONTROL_PLANE_IMAGE and ON_CONTROL_PLANE ("true"). SettingsError."""
    problems = [f"{name} is not set" for name in ("NODE_NAME", "POD_NAMESPACE") if not environment.get(name)]
    ports = {
        "HEALTH_PORT": environment.get("HEALTH_PORT", "8080"),
        "DOOR_PORT": environment.get("DOOR_PORT", f"{PORT}"),
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
        door_port=int(ports["DOOR_PORT"]),
        node_socket=environment.get("NODE_SOCKET") or layout.NODE_SOCKET,
        sockets=environment.get("SOCKETS") or layout.HANDLER_RUN,
        migration_network=environment.get("MIGRATION_NETWORK", ""),
        image=environment.get("CONTROL_PLANE_IMAGE", ""),
        is_on_control_plane=environment.get("ON_CONTROL_PLANE") == "true",
    )

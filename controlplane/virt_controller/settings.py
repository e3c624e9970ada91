# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""virt-controller's settings. __main__ reads them from the environment once. All defaults are here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec


class SettingsError(Exception):
    """The environment is incomplete or invalid. The message names all problems."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    namespace: str
    """The control plane's namespace, with the Lease, the KubeVirt object and the certificates."""
    launcher_image: str
    image: str = ""
    """Image of the control plane, as the role names it. virt-handlers write theirs into an annotation of their Node."""
    image_pull_secrets: tuple[str, ...] = ()
    """Names of Secrets in the namespaces of VMIs, for the launcher image."""
    pod_name: str = ""
    """Identifies the holder of the Lease and the source of Events."""
    node: str = ""
    """Name of the Node of this process."""
    log_level: str = "INFO"
    port: int = 8443
    """Port for health and metrics, HTTPS."""
    address: str = ""
    """Address to listen on; "" for every address. The role sets the Pod's address."""


def read_settings(environment: Mapping[str, str]) -> Settings:
    """Read POD_NAMESPACE and VIRT_LAUNCHER_IMAGE (required), POD_NAME, NODE_NAME, LOG_LEVEL, HEALTH_PORT,
    HEALTH_ADDRESS, CONTROL_PLANE_IMAGE and IMAGE_PULL_SECRETS (a JSON list). Raises SettingsError.
    """
    required = ("POD_NAMESPACE", "VIRT_LAUNCHER_IMAGE")
    problems = [f"{name} is not set" for name in required if not environment.get(name)]
    port = environment.get("HEALTH_PORT") or "8443"
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        problems.append(f"HEALTH_PORT {port!r} is not a port")
    try:
        secrets = msgspec.json.decode(environment.get("IMAGE_PULL_SECRETS") or "[]", type=tuple[str, ...])
    except msgspec.MsgspecError as error:
        problems.append(f"IMAGE_PULL_SECRETS is not a list of names: {error}")
    if problems:
        raise SettingsError("cannot start virt-controller: " + "; ".join(problems))
    return Settings(
        namespace=environment["POD_NAMESPACE"],
        launcher_image=environment["VIRT_LAUNCHER_IMAGE"],
        image=environment.get("CONTROL_PLANE_IMAGE", ""),
        image_pull_secrets=secrets,
        pod_name=environment.get("POD_NAME", ""),
        node=environment.get("NODE_NAME", ""),
        log_level=environment.get("LOG_LEVEL") or "INFO",
        port=int(port),
        address=environment.get("HEALTH_ADDRESS", ""),
    )

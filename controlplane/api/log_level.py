# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The log level of a component by developerConfiguration.logVerbosity of the KubeVirt object. Pure."""

from __future__ import annotations

from typing import Literal

from controlplane.api.objects.kubevirt import LogVerbosity

Component = Literal["virt-api", "virt-controller", "virt-handler", "virt-launcher"]

DEBUG_FROM = 3
"""Upstream's default is 2; its components log details from 3 on."""


def configured_level(verbosity: LogVerbosity, component: Component, node: str = "") -> str | None:
    """Return the level, or None if the configuration sets none. node: the one that the component runs on, if known."""
    by_component = {
        "virt-api": verbosity.virt_api,
        "virt-controller": verbosity.virt_controller,
        "virt-handler": verbosity.virt_handler,
        "virt-launcher": verbosity.virt_launcher,
    }
    number = verbosity.node_verbosity.get(node, 0) or by_component[component]
    if number == 0:
        return None
    return "DEBUG" if number >= DEBUG_FROM else "INFO"

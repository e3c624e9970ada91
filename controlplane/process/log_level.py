# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The log level of this process, which follows the KubeVirt object without a restart."""

from __future__ import annotations

import logging

from controlplane.api.log_level import Component, configured_level
from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.process import logs

log = logging.getLogger(__name__)


class LogLevel:
    """A callable that takes each new configuration."""

    def __init__(self, component: Component, deployed: str, node: str) -> None:
        """deployed: the level without a configured one. node: the Node of this process; "" if unknown."""
        self._component = component
        self._deployed = self._current = deployed.upper()
        self._node = node

    def __call__(self, configuration: KubeVirtConfiguration) -> None:
        verbosity = configuration.developer_configuration.log_verbosity
        level = configured_level(verbosity, self._component, self._node) or self._deployed
        if level != self._current:
            self._current = level
            logs.set_level(level)
            log.info("log level changed", extra={"log_level": level})

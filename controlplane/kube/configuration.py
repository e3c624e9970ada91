# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The current configuration, from the KubeVirt object; defaults if there is none."""

from __future__ import annotations

import logging
from collections.abc import Callable

from controlplane.api.objects.decode import DecodeError, decode_kubevirt
from controlplane.api.objects.kubevirt import KubeVirt, KubeVirtConfiguration, KubeVirtSpec
from controlplane.api.objects.kubevirt_settings import effective_configuration, malformed_settings
from controlplane.api.objects.resources import Key
from controlplane.engine.ports import Cache

log = logging.getLogger(__name__)

DEFAULTS = KubeVirtConfiguration()


class Configuration:
    """A callable that returns the current configuration. If the object is unreadable, the last readable one counts."""

    def __init__(self, cache: Cache) -> None:
        self._current = DEFAULTS
        self.spec = KubeVirtSpec()
        """The object's spec; its configuration is without our annotations' settings."""
        self.version = ""
        """The object's resourceVersion; "" without one."""
        self._subscribers: list[Callable[[KubeVirtConfiguration], None]] = []
        cache.subscribe(self._follow)

    def subscribe(self, callback: Callable[[KubeVirtConfiguration], None]) -> None:
        """Call back with each configuration that is read from now on."""
        self._subscribers.append(callback)

    def __call__(self) -> KubeVirtConfiguration:
        return self._current

    def _follow(self, key: Key, _before: bytes | None, after: bytes | None) -> None:
        try:
            kubevirt = KubeVirt() if after is None else decode_kubevirt(after)
        except DecodeError as error:
            log.warning("configuration ignored", extra={"key": str(key), "error": str(error)})
            return
        for name, why in malformed_settings(kubevirt.metadata.annotations):
            log.warning("setting ignored", extra={"key": str(key), "annotation": name, "because": why})
        self._current, self.spec = effective_configuration(kubevirt), kubevirt.spec
        for callback in self._subscribers:
            callback(self._current)
        self.version = kubevirt.metadata.resource_version

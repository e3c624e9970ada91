# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Our own settings, in annotations of the KubeVirt object: pure.

A typed client of KubeVirt that writes the whole object drops the fields of spec that KubeVirt does not have; it keeps
annotations. Settings of all machines are still read from fields of the same meaning in spec.configuration too; an
annotation overrides its field.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import msgspec
from kubevirt_api.names import CONSOLE_ORIGINS, CONTAINER_DISK_LIMIT, FURTHER_ATTEMPTS, QUARANTINE, RUN_TIMEOUT

from controlplane.api.objects import quantity
from controlplane.api.objects.console_origins import parse_origins
from controlplane.api.objects.kubevirt import LONGEST_QUARANTINE_SECONDS, KubeVirt, KubeVirtConfiguration
from controlplane.api.objects.start_limits import BOUNDS, parse_limit

LEAST_CONTAINER_DISK, MOST_CONTAINER_DISK = 2**20, 64 * 2**40


class Setting(NamedTuple):
    attribute: str
    """The attribute of KubeVirtConfiguration."""
    field: str
    """The field of spec.configuration."""
    parse: Callable[[str], Any]
    """Return the value. ValueError says what the text must be."""


def _parse_size(text: str) -> str:
    try:
        is_good = LEAST_CONTAINER_DISK <= quantity.to_bytes(text) <= MOST_CONTAINER_DISK
    except quantity.QuantityError:
        is_good = False
    if not is_good:
        raise ValueError("must be a quantity from 1Mi to 64Ti, e.g. 64Gi")
    return text


SETTINGS: Mapping[str, Setting] = {
    CONTAINER_DISK_LIMIT: Setting("container_disk_limit", "containerDiskLimit", _parse_size),
    FURTHER_ATTEMPTS: Setting(
        "further_attempts", "furtherAttempts", partial(parse_limit, most=BOUNDS[FURTHER_ATTEMPTS])
    ),
    RUN_TIMEOUT: Setting("run_timeout_seconds", "runTimeoutSeconds", partial(parse_limit, most=BOUNDS[RUN_TIMEOUT])),
    QUARANTINE: Setting(
        "quarantine_seconds", "quarantineSeconds", partial(parse_limit, most=LONGEST_QUARANTINE_SECONDS)
    ),
}
"""Settings of all machines, by annotation."""
PARSERS: Mapping[str, Callable[[str], Any]] = {
    **{name: setting.parse for name, setting in SETTINGS.items()},
    CONSOLE_ORIGINS: parse_origins,
}
"""How the value of each setting is read, by annotation."""


def settings_of(annotations: Mapping[str, str]) -> dict[str, str]:
    """Return the annotations that are settings of all machines."""
    return {name: annotations[name] for name in SETTINGS if name in annotations}


def malformed_settings(annotations: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each annotation that cannot be read, and what it must be."""
    for name in sorted(PARSERS.keys() & annotations.keys()):
        try:
            PARSERS[name](annotations[name])
        except ValueError as error:
            yield name, str(error)


def console_origins(kubevirt: KubeVirt) -> frozenset[str]:
    """Return the origins of web pages that may open streams; none if the setting cannot be read."""
    try:
        return parse_origins(kubevirt.metadata.annotations.get(CONSOLE_ORIGINS, ""))
    except ValueError:
        return frozenset()


def effective_configuration(kubevirt: KubeVirt) -> KubeVirtConfiguration:
    """Return the configuration with the settings. One that cannot be read counts as not set; admission refuses it."""
    values: dict[str, Any] = {}
    for name, text in settings_of(kubevirt.metadata.annotations).items():
        with suppress(ValueError):
            values[SETTINGS[name].attribute] = SETTINGS[name].parse(text)
    return msgspec.structs.replace(kubevirt.spec.configuration, **values)

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The level of the process follows the configuration."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from controlplane.api.objects.kubevirt import DeveloperConfiguration, KubeVirtConfiguration, LogVerbosity
from controlplane.process.log_level import LogLevel


@pytest.fixture(autouse=True)
def root() -> Iterator[logging.Logger]:
    root = logging.getLogger()
    level = root.level
    yield root
    root.setLevel(level)


def configured(**verbosity: int) -> KubeVirtConfiguration:
    developer = DeveloperConfiguration(log_verbosity=LogVerbosity(**verbosity))  # type: ignore[arg-type]
    return KubeVirtConfiguration(developer_configuration=developer)


def test_the_level_follows_the_configuration_and_returns_to_the_deployed_one(root: logging.Logger) -> None:
    root.setLevel(logging.WARNING)
    follow = LogLevel("virt-api", "warning", "node-1")
    levels = []
    for configuration in (configured(), configured(virt_api=5), configured(virt_api=2), configured()):
        follow(configuration)
        levels.append(logging.getLevelName(root.level))
    assert levels == ["WARNING", "DEBUG", "INFO", "WARNING"]


def test_another_components_verbosity_changes_nothing(root: logging.Logger) -> None:
    root.setLevel(logging.ERROR)
    LogLevel("virt-api", "ERROR", "")(configured(virt_handler=5))
    assert root.level == logging.ERROR

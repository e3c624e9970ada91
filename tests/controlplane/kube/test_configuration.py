# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The configuration in effect."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from kubevirt_api.names import FURTHER_ATTEMPTS

from controlplane.api.objects.resources import KUBEVIRT, Key
from controlplane.kube.cache import Store
from controlplane.kube.configuration import Configuration

NAME = Key("kubevirt", "kubevirt")


def an_object(version: int, developer: Any, annotations: dict[str, str] | None = None) -> bytes:
    return msgspec.json.encode(
        {
            "apiVersion": "kubevirt.io/v1",
            "kind": "KubeVirt",
            "metadata": {
                "name": "kubevirt",
                "namespace": "kubevirt",
                "uid": "u",
                "resourceVersion": str(version),
                "annotations": annotations or {},
            },
            "spec": {"configuration": {"developerConfiguration": developer}},
        }
    )


@pytest.fixture
def cache() -> Store:
    return Store(KUBEVIRT)


def test_defaults_apply_without_an_object(cache: Store) -> None:
    assert Configuration(cache)().developer_configuration.cpu_allocation_ratio == 10


def test_changes_take_effect_and_a_removal_restores_the_defaults(cache: Store) -> None:
    configuration = Configuration(cache)
    cache.put(an_object(1, {"useEmulation": True}))
    assert configuration().developer_configuration.use_emulation
    cache.remove(NAME)
    assert not configuration().developer_configuration.use_emulation


def test_an_unreadable_configuration_changes_nothing(cache: Store) -> None:
    configuration = Configuration(cache)
    cache.put(an_object(1, {"useEmulation": True}))
    cache.put(an_object(2, {"useEmulation": "yes"}))
    assert configuration().developer_configuration.use_emulation


def test_the_version_is_that_of_the_configuration_in_use(cache: Store) -> None:
    configuration = Configuration(cache)
    assert configuration.version == ""
    cache.put(an_object(1, {"useEmulation": True}))
    assert configuration.version == "1"
    cache.put(an_object(2, {"useEmulation": "yes"}))
    assert configuration.version == "1", "the new one cannot be read"
    cache.remove(NAME)
    assert configuration.version == ""


def test_settings_in_annotations_take_effect(cache: Store) -> None:
    configuration = Configuration(cache)
    cache.put(an_object(1, {}, {FURTHER_ATTEMPTS: "5"}))
    assert configuration().further_attempts == 5


def test_a_malformed_setting_is_logged_and_the_rest_counts(cache: Store, caplog: pytest.LogCaptureFixture) -> None:
    configuration = Configuration(cache)
    cache.put(an_object(1, {"useEmulation": True}, {FURTHER_ATTEMPTS: "many"}))
    assert (configuration().further_attempts, configuration().developer_configuration.use_emulation) == (2, True)
    assert [record.message for record in caplog.records] == ["setting ignored"]


def test_subscribers_get_each_readable_configuration(cache: Store) -> None:
    configuration = Configuration(cache)
    got: list[bool] = []
    configuration.subscribe(lambda new: got.append(new.developer_configuration.use_emulation))
    cache.put(an_object(1, {"useEmulation": True}))
    cache.put(an_object(2, {"useEmulation": "yes"}))
    cache.remove(NAME)
    assert got == [True, False]

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Our settings in annotations of the KubeVirt object, and the fields of older roles."""

from __future__ import annotations

from typing import Any

import pytest
from kubevirt_api.names import CONTAINER_DISK_LIMIT, FURTHER_ATTEMPTS, QUARANTINE, RUN_TIMEOUT

from controlplane.api.objects.decode import decode_kubevirt
from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.kubevirt_settings import SETTINGS, effective_configuration, malformed_settings

FIELDS = {"containerDiskLimit": "8Gi", "furtherAttempts": 1, "runTimeoutSeconds": 60, "quarantineSeconds": 30}
ANNOTATIONS = {CONTAINER_DISK_LIMIT: "16Gi", FURTHER_ATTEMPTS: "0", RUN_TIMEOUT: "90", QUARANTINE: "0"}


def effective(annotations: dict[str, str], **fields: Any) -> tuple[Any, ...]:
    kubevirt = decode_kubevirt({"metadata": {"annotations": annotations}, "spec": {"configuration": fields}})
    configuration = effective_configuration(kubevirt)
    return tuple(getattr(configuration, setting.attribute) for setting in SETTINGS.values())


@pytest.mark.parametrize(
    ("annotations", "fields", "values"),
    [
        ({}, FIELDS, ("8Gi", 1, 60, 30)),
        (ANNOTATIONS, {}, ("16Gi", 0, 90, 0)),
        (ANNOTATIONS, FIELDS, ("16Gi", 0, 90, 0)),
        ({RUN_TIMEOUT: "90"}, FIELDS, ("8Gi", 1, 90, 30)),
        ({"note": "x"}, {}, ("64Gi", 2, None, 900)),
    ],
    ids=["an older role", "annotations", "both", "some", "none"],
)
def test_an_annotation_overrides_its_field(
    annotations: dict[str, str], fields: dict[str, Any], values: tuple[Any, ...]
) -> None:
    assert effective(annotations, **fields) == values


def test_a_client_that_drops_unknown_fields_loses_no_setting() -> None:
    """It keeps the metadata: decoding into KubeVirt's types and back."""
    assert effective(ANNOTATIONS) == effective(ANNOTATIONS, **FIELDS)


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("text", ["", "-1", "x", "1e99", "99999999999999999", "²"])
def test_a_malformed_setting_counts_as_not_set_and_is_named(name: str, text: str) -> None:
    """Only by bypassing admission. The others take effect."""
    given = {**ANNOTATIONS, name: text}
    assert [malformed for malformed, _unused in malformed_settings(given)] == [name]
    position = list(SETTINGS).index(name)
    assert effective(given, **FIELDS)[position] == list(FIELDS.values())[position]
    others = [value for index, value in enumerate(effective(given)) if index != position]
    assert others == [value for index, value in enumerate(effective(ANNOTATIONS)) if index != position]


def test_other_fields_of_the_configuration_stay() -> None:
    kubevirt = decode_kubevirt({"metadata": {"annotations": ANNOTATIONS}, "spec": {"configuration": {"cpuModel": "x"}}})
    assert effective_configuration(kubevirt).cpu_model == "x"
    assert effective_configuration(decode_kubevirt({})) == KubeVirtConfiguration()

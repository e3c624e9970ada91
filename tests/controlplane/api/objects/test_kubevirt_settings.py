# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Our settings in annotations of the KubeVirt object, and the fields of older roles."""

from __future__ import annotations

from typing import Any

import pytest
from kubevirt_api.names import CONSOLE_ORIGINS, CONTAINER_DISK_LIMIT, FURTHER_ATTEMPTS, QUARANTINE, RUN_TIMEOUT

from controlplane.api.objects.decode import decode_kubevirt
from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.kubevirt_settings import (
    SETTINGS,
    console_origins,
    effective_configuration,
    malformed_settings,
)

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


@pytest.mark.parametrize(
    ("text", "origins"),
    [
        ("", set()),
        ("https://api.example.com:6443", {"https://api.example.com:6443"}),
        (
            "  https://A.example:443 http://b.example:80\thttps://[::1]:6443 ",
            {"https://a.example", "http://b.example", "https://[::1]:6443"},
        ),
    ],
)
def test_origins_are_separated_by_spaces_and_compared_as_browsers_send_them(text: str, origins: set[str]) -> None:
    annotations = {CONSOLE_ORIGINS: text}
    assert console_origins(decode_kubevirt({"metadata": {"annotations": annotations}})) == origins
    assert list(malformed_settings(annotations)) == []


@pytest.mark.parametrize(
    "text",
    [
        "api.example.com",
        "https://",
        "*",
        "https://a.example/",
        "https://a.example/path",
        "https://user@a.example",
        "https://a.example:0",
        "https://a.example:99999",
        "ftp://a.example",
        "https://a.example,https://b.example/",
        "null",
        "https://[::1",
        f"https://{'a' * 300}",
        " ".join(f"https://{number}.example" for number in range(17)),
    ],
)
def test_what_is_no_list_of_origins_allows_nothing_and_is_named(text: str) -> None:
    annotations = {CONSOLE_ORIGINS: text}
    assert console_origins(decode_kubevirt({"metadata": {"annotations": annotations}})) == frozenset()
    ((name, words),) = malformed_settings(annotations)
    assert name == CONSOLE_ORIGINS
    assert "separated by spaces, e.g. https://api.example.com:6443" in words


def test_without_the_setting_no_other_origin_is_allowed() -> None:
    assert console_origins(decode_kubevirt({})) == frozenset()

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Validation of a KubeVirt object: how workload updates move running VMIs to new launchers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.controlplane.api import golden
from tests.controlplane.api.admission.validate.test_check import problems_of

INSIDE = "spec.workloadUpdateStrategy"


def problems(**strategy: Any) -> list[str]:
    manifest = golden.changed(golden.load("kubevirt"), "spec/workloadUpdateStrategy", strategy)
    return [problem.path for problem in problems_of(manifest)]


@pytest.mark.parametrize("methods", [[], ["LiveMigrate"], ["Evict"], ["LiveMigrate", "Evict"]], ids=str)
def test_both_workload_update_methods_are_accepted(methods: list[str]) -> None:
    assert problems(workloadUpdateMethods=methods) == []


def test_an_unknown_workload_update_method_is_refused() -> None:
    assert problems(workloadUpdateMethods=["Restart"]) == [f"{INSIDE}.workloadUpdateMethods[0]"]


@pytest.mark.parametrize(("size", "is_good"), [(0, True), (1000, True), (-1, False), (1001, False)])
def test_a_batch_has_a_size(size: int, is_good: bool) -> None:
    assert problems(batchEvictionSize=size) == ([] if is_good else [f"{INSIDE}.batchEvictionSize"])


@pytest.mark.parametrize(
    ("interval", "is_good"),
    [
        *[(interval, True) for interval in ("", "0s", "90s", "1m30s", "24h")],
        *[(interval, False) for interval in ("90", "-1s", "24h0m1s", "a minute")],
    ],
)
def test_batches_follow_each_other_within_a_day(interval: str, is_good: bool) -> None:
    assert problems(batchEvictionInterval=interval) == ([] if is_good else [f"{INSIDE}.batchEvictionInterval"])


@pytest.mark.parametrize(
    ("taint", "is_good"), [("kubevirt.io/drain", True), ("drain", True), ("", True), ("a b", False), ("a/b/c", False)]
)
def test_the_taint_that_drains_is_a_label_key(taint: str, is_good: bool) -> None:
    manifest = golden.changed(golden.load("kubevirt"), "spec/configuration/migrations", {"nodeDrainTaintKey": taint})
    paths = [problem.path for problem in problems_of(manifest)]
    assert paths == ([] if is_good else ["spec.configuration.migrations.nodeDrainTaintKey"])


@pytest.mark.parametrize(
    ("amount", "is_good"),
    [("4Gi", True), ("16Ti", True), (8589934592, True), ("1Gi", True), ("64Ti", False), ("1e99", False)]
    + [(amount, False) for amount in ("0", 0, "8", "8G", "-8Gi", "4097Ki", "1Mi")],
)
def test_the_cluster_limits_are_within_the_limits_of_a_guest(amount: str | int, is_good: bool) -> None:
    manifest = {
        "apiVersion": "kubevirt.io/v1",
        "kind": "KubeVirt",
        "metadata": {"name": "kubevirt", "namespace": "kubevirt"},
        "spec": {"configuration": {"liveUpdateConfiguration": {"maxGuest": amount}}},
    }
    paths = [problem.path for problem in problems_of(manifest)]
    assert paths == ([] if is_good else ["spec.configuration.liveUpdateConfiguration.maxGuest"])


ECDSA, RSA = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"


@pytest.mark.parametrize(
    ("tls", "fields"),
    [
        ({}, []),
        ({"minTLSVersion": "VersionTLS12"}, []),
        ({"minTLSVersion": "VersionTLS13"}, []),
        ({"minTLSVersion": "VersionTLS12", "ciphers": [ECDSA]}, []),
        ({"minTLSVersion": "VersionTLS12", "ciphers": [RSA, ECDSA, "TLS_RSA_WITH_RC4_128_SHA"]}, []),
        ({"ciphers": [ECDSA]}, [".ciphers"]),
        ({"minTLSVersion": "VersionTLS13", "ciphers": [ECDSA]}, [".ciphers"]),
        ({"minTLSVersion": "VersionTLS12", "ciphers": [ECDSA, "NOT_VALID_CIPHER", ""]}, [".ciphers[1]", ".ciphers[2]"]),
        ({"minTLSVersion": "VersionTLS12", "ciphers": [RSA]}, [".ciphers"]),
        ({"minTLSVersion": "VersionTLS11"}, [".minTLSVersion"]),
    ],
)
def test_ciphers_are_those_that_tls_1_2_can_use(tls: dict[str, Any], fields: list[str]) -> None:
    manifest = golden.changed(golden.load("kubevirt"), "spec/configuration/tlsConfiguration", tls)
    paths = [problem.path for problem in problems_of(manifest)]
    assert paths == [f"spec.configuration.tlsConfiguration{field}" for field in fields]


@pytest.mark.parametrize(("name", "hint"), [(ECDSA.lower(), f"did you mean {ECDSA}?"), ("AES", f"e.g. {ECDSA}")])
def test_an_unknown_cipher_gets_a_hint(name: str, hint: str) -> None:
    tls = {"minTLSVersion": "VersionTLS12", "ciphers": [name]}
    manifest = golden.changed(golden.load("kubevirt"), "spec/configuration/tlsConfiguration", tls)
    (problem,) = problems_of(manifest)
    assert hint in problem.message


@pytest.mark.parametrize(
    ("config", "refused"),
    [
        ({}, []),
        ({"ca": {"duration": "48h", "renewBefore": "24h"}, "server": {"duration": "24h", "renewBefore": "12h"}}, []),
        ({"ca": {"duration": "48h"}, "server": {"duration": "48h"}}, []),
        ({"server": {"duration": "a day"}}, [".server.duration"]),
        ({"ca": {"duration": "1m"}}, [".ca.duration"]),
        ({"server": {"duration": "24h", "renewBefore": "24h"}}, [".server.renewBefore"]),
        ({"server": {"duration": "24h", "renewBefore": "1s"}}, [".server.renewBefore"]),
        ({"ca": {"duration": "24h"}}, [""]),
        ({"caRotateInterval": "24h"}, [".caRotateInterval"]),
    ],
    ids=str,
)
def test_certificates_have_lifetimes_that_can_be_kept(config: dict[str, Any], refused: list[str]) -> None:
    manifest = golden.changed(golden.load("kubevirt"), "spec/certificateRotateStrategy", {"selfSigned": config})
    where = "spec.certificateRotateStrategy.selfSigned"
    assert [problem.path for problem in problems_of(manifest)] == [where + path for path in refused]


@pytest.mark.parametrize(
    ("profile", "refused"),
    [
        ({}, []),
        ({"runtimeDefaultProfile": True}, []),
        ({"localhostProfile": "profiles/launcher.json"}, []),
        ({"localhostProfile": "profiles/launcher.json", "runtimeDefaultProfile": True}, [""]),
        *(
            ({"localhostProfile": path}, [".localhostProfile"])
            for path in ("", "/etc/launcher.json", "../launcher.json")
        ),
    ],
    ids=str,
)
def test_the_seccomp_profile_of_launchers_is_one_of_the_runtime_or_of_the_node(
    profile: dict[str, Any], refused: list[str]
) -> None:
    custom = {"virtualMachineInstanceProfile": {"customProfile": profile}}
    manifest = golden.changed(golden.load("kubevirt"), "spec/configuration/seccompConfiguration", custom)
    where = "spec.configuration.seccompConfiguration.virtualMachineInstanceProfile.customProfile"
    assert [problem.path for problem in problems_of(manifest)] == [where + path for path in refused]

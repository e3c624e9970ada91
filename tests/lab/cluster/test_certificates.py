# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates: their names, and that a second run keeps them."""

from __future__ import annotations

import ipaddress
import stat
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from lab.cluster.certificates import control_plane_requests, ensure_certificates, node_requests
from lab.machines.addresses import Addresses

REQUESTS = [*control_plane_requests(Addresses(index=2)), *node_requests("node-1", "10.99.2.11")]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("certificates") / "pki"
    ensure_certificates(path, REQUESTS)
    return path


def load(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: request.file)
def test_a_certificate_is_signed_by_its_authority(directory: Path, request_) -> None:  # type: ignore[no-untyped-def]
    certificate = load(directory / f"{request_.file}.crt")
    certificate.verify_directly_issued_by(load(directory / f"{request_.authority}.crt"))
    usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.SERVER_AUTH if request_.is_server else ExtendedKeyUsageOID.CLIENT_AUTH]


def test_the_api_server_has_its_address_and_service_names(directory: Path) -> None:
    names = load(directory / "apiserver.crt").extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    addresses = names.get_values_for_type(x509.IPAddress)
    assert {ipaddress.ip_address("10.99.2.1"), ipaddress.ip_address("10.96.0.1")} <= set(addresses)
    assert "kubernetes.default.svc" in names.get_values_for_type(x509.DNSName)


def test_a_kubelet_is_a_node_for_the_node_authorizer(directory: Path) -> None:
    subject = load(directory / "node-1-client.crt").subject
    assert subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value == "system:node:node-1"
    assert subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)[0].value == "system:nodes"


def test_only_the_owner_can_read_keys(directory: Path) -> None:
    assert {stat.S_IMODE(path.stat().st_mode) for path in directory.glob("*.key")} == {0o600}
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_a_second_run_keeps_files_and_adds_missing_ones(directory: Path) -> None:
    before = {path.name: path.read_bytes() for path in directory.iterdir()}
    ensure_certificates(directory, [*REQUESTS, *node_requests("node-2", "10.99.2.12")])
    after = {path.name: path.read_bytes() for path in directory.iterdir()}
    assert before.items() <= after.items()
    load(directory / "node-2-serving.crt").verify_directly_issued_by(load(directory / "ca.crt"))

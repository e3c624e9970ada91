# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's certificate authorities and key pairs: ECDSA P-256, made once per lab and stored with its state."""

from __future__ import annotations

import datetime
import ipaddress
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from lab.machines.addresses import KUBERNETES_SERVICE, Addresses

_LIFETIME = datetime.timedelta(days=3650)
# New certificates stay valid if the clock is set back a little.
_LEEWAY = datetime.timedelta(hours=1)


@dataclass(frozen=True, kw_only=True)
class Request:
    """One certificate: for a client without names, for a server with names."""

    file: str
    common_name: str
    organization: str = ""
    names: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    authority: str = "ca"

    @property
    def is_server(self) -> bool:
        return bool(self.names or self.addresses)


def control_plane_requests(addresses: Addresses, domain: str = "cluster.local") -> list[Request]:
    names = ["kubernetes", "kubernetes.default", "kubernetes.default.svc", f"kubernetes.default.svc.{domain}"]
    return [
        Request(
            file="apiserver",
            common_name="kube-apiserver",
            names=("localhost", *names),
            addresses=(str(addresses.control_plane), str(KUBERNETES_SERVICE), "127.0.0.1"),
        ),
        Request(file="apiserver-kubelet-client", common_name="kube-apiserver-kubelet-client"),
        Request(file="front-proxy-client", common_name="front-proxy-client", authority="front-proxy-ca"),
        Request(file="admin", common_name="lab-admin", organization="system:masters"),
        Request(file="kube-controller-manager", common_name="system:kube-controller-manager"),
        Request(file="kube-scheduler", common_name="system:kube-scheduler"),
        Request(file="kube-proxy", common_name="system:kube-proxy"),
    ]


def node_requests(name: str, address: str) -> list[Request]:
    return [
        Request(file=f"{name}-client", common_name=f"system:node:{name}", organization="system:nodes"),
        Request(file=f"{name}-serving", common_name=name, names=(name,), addresses=(address,)),
    ]


class Authority:
    """A certificate authority whose key is in the lab's directory."""

    def __init__(self, directory: Path, name: str) -> None:
        self._directory, self._name = directory, name
        key_file, certificate_file = directory / f"{name}.key", directory / f"{name}.crt"
        if key_file.exists() and certificate_file.exists():
            key = serialization.load_pem_private_key(key_file.read_bytes(), password=None)
            assert isinstance(key, ec.EllipticCurvePrivateKey)
            self._key = key
            self._certificate = x509.load_pem_x509_certificate(certificate_file.read_bytes())
            return
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._certificate = self._self_sign()
        _write(certificate_file, self._certificate.public_bytes(serialization.Encoding.PEM))
        _write(key_file, _private_pem(self._key))

    def _self_sign(self) -> x509.Certificate:
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"lab-{self._name}")])
        builder = _builder(name, name, self._key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        builder = builder.add_extension(_key_usage(authority=True), critical=True)
        identifier = x509.SubjectKeyIdentifier.from_public_key(self._key.public_key())
        builder = builder.add_extension(identifier, critical=False)
        return builder.sign(self._key, hashes.SHA256())

    def issue(self, request: Request) -> None:
        """Write FILE.crt and FILE.key unless both exist."""
        key_file = self._directory / f"{request.file}.key"
        certificate_file = self._directory / f"{request.file}.crt"
        if key_file.exists() and certificate_file.exists():
            return
        key = ec.generate_private_key(ec.SECP256R1())
        attributes = [x509.NameAttribute(NameOID.COMMON_NAME, request.common_name)]
        if request.organization:
            attributes.insert(0, x509.NameAttribute(NameOID.ORGANIZATION_NAME, request.organization))
        builder = _builder(x509.Name(attributes), self._certificate.subject, key.public_key())
        usage = ExtendedKeyUsageOID.SERVER_AUTH if request.is_server else ExtendedKeyUsageOID.CLIENT_AUTH
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(_key_usage(authority=False), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        # Python's strict verification requires it.
        identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = builder.add_extension(identifier, critical=False)
        if request.is_server:
            names: list[x509.GeneralName] = [x509.DNSName(name) for name in request.names]
            names += [x509.IPAddress(ipaddress.ip_address(address)) for address in request.addresses]
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        _write(certificate_file, certificate.public_bytes(serialization.Encoding.PEM))
        _write(key_file, _private_pem(key))


def ensure_certificates(directory: Path, requests: Sequence[Request]) -> None:
    """Create the missing ones of the authorities, the service-account key pair and the requested certificates."""
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    authorities = {name: Authority(directory, name) for name in ("ca", "front-proxy-ca")}
    for request in requests:
        authorities[request.authority].issue(request)
    private = directory / "sa.key"
    if not private.exists():
        key = ec.generate_private_key(ec.SECP256R1())
        public = key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        _write(directory / "sa.pub", public)
        _write(private, _private_pem(key))


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _LEEWAY)
        .not_valid_after(now + _LIFETIME)
    )


def _key_usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=not authority,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=authority,
        crl_sign=authority,
        encipher_only=False,
        decipher_only=False,
    )


def _private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _write(path: Path, content: bytes) -> None:
    """Write a private file atomically. Its mode is private from its creation."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    partial.replace(path)

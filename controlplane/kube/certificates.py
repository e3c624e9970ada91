# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make and judge certificates: our authority, serving pairs, when to renew. Pure; no Secret is read here.

All functions take `now` (seconds since the epoch) and PEM bytes, and return PEM bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

RENEW_AT = 0.8  # of a certificate's life
SKEW = timedelta(minutes=5)  # certificates begin this long ago: not all nodes agree on the time


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate (leaf first, when it is a chain) and its private key, as PEM."""

    certificate: bytes
    key: bytes

    def __repr__(self) -> str:
        return "KeyPair(...)"  # a key must not get into a log by way of a dataclass's repr


@dataclass(frozen=True, slots=True)
class Life:
    """When a certificate begins and ends, in seconds since the epoch."""

    begins: float
    ends: float

    def is_over(self, now: float) -> bool:
        return now >= self.ends

    def renew_at(self) -> float:
        return self.begins + (self.ends - self.begins) * RENEW_AT


def make_authority(common_name: str, now: float, lifetime: timedelta) -> KeyPair:
    """Make a self-signed CA that may sign leaf certificates only."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    usage = _usage(key_cert_sign=True, crl_sign=True)
    certificate = (
        _builder(name, name, key.public_key(), now, lifetime)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return _pair(certificate, key)


def issue_server(authority: KeyPair, dns_names: Sequence[str], now: float, lifetime: timedelta) -> KeyPair:
    """Issue a serving pair for these DNS names; the first is the common name. Never outlives its authority."""
    issuer = x509.load_pem_x509_certificate(authority.certificate)
    signer = _signing_key(authority.key)
    key = ec.generate_private_key(ec.SECP256R1())
    left = issuer.not_valid_after_utc - datetime.fromtimestamp(now, UTC)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, dns_names[0][:64])])
    certificate = (
        _builder(subject, issuer.subject, key.public_key(), now, min(lifetime, left))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(digital_signature=True), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in dns_names]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
        .sign(signer, hashes.SHA256())
    )
    return _pair(certificate, key)


def life(certificate: bytes) -> Life:
    """Return the life of the first certificate. Raises ValueError when it is none."""
    parsed = x509.load_pem_x509_certificate(certificate)
    return Life(parsed.not_valid_before_utc.timestamp(), parsed.not_valid_after_utc.timestamp())


def belongs_together(pair: KeyPair) -> bool:
    """Tell whether the key is the certificate's; False for anything that cannot be parsed."""
    try:
        certificate = x509.load_pem_x509_certificate(pair.certificate)
        key = serialization.load_pem_private_key(pair.key, None)
    except (ValueError, TypeError):
        return False
    return bool(certificate.public_key() == key.public_key())


def is_issued_by(certificate: bytes, authority: bytes) -> bool:
    """Tell whether the authority's key signed the certificate."""
    try:
        issuer = x509.load_pem_x509_certificate(authority)
        x509.load_pem_x509_certificate(certificate).verify_directly_issued_by(issuer)
    except Exception:
        return False
    return True


def dns_names(certificate: bytes) -> tuple[str, ...]:
    """Return the DNS names a certificate is for."""
    parsed = x509.load_pem_x509_certificate(certificate)
    try:
        names = parsed.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    return tuple(names.get_values_for_type(x509.DNSName))


def split(bundle: bytes) -> list[bytes]:
    """Return the certificates of a bundle, one PEM each; an unreadable bundle is empty."""
    try:
        return [_pem(parsed) for parsed in x509.load_pem_x509_certificates(bundle)]
    except ValueError:
        return []


def join(certificates: Iterable[bytes], now: float) -> bytes:
    """Return a bundle: each certificate that has not ended, once, in order."""
    kept = dict.fromkeys(certificate for certificate in certificates if not life(certificate).is_over(now))
    return b"".join(kept)


def _builder(
    subject: x509.Name, issuer: x509.Name, public_key: ec.EllipticCurvePublicKey, now: float, lifetime: timedelta
) -> x509.CertificateBuilder:
    begins = datetime.fromtimestamp(now, UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins - SKEW)
        .not_valid_after(begins + lifetime)
    )


def _usage(*, digital_signature: bool = False, key_cert_sign: bool = False, crl_sign: bool = False) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=digital_signature,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=key_cert_sign,
        crl_sign=crl_sign,
        encipher_only=False,
        decipher_only=False,
    )


def _signing_key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(pem, None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError("the authority's key is not an elliptic-curve key")
    return key


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> KeyPair:
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return KeyPair(_pem(certificate), private)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)

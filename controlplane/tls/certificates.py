# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Create and check certificates: the control plane's CA, the key pairs it issues, when to renew. Pure; no I/O.

All functions take `now` (seconds since the epoch) and PEM bytes, and return PEM bytes. Checked input may come from
anybody: unreadable input is a result, not an exception.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import islice
from typing import Literal

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from controlplane.api.certificate_lifetimes import RENEW_AT

SKEW = timedelta(minutes=5)  # certificates are valid this much earlier, because the clocks of nodes differ
SMALLEST_RSA_BITS = 2048

Signer = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey | ed25519.Ed25519PrivateKey
"""Keys whose signatures API servers verify."""

# Limits for Secrets that any administrator may write: reading one must not block the event loop, which renews a Lease.
MOST_BYTES = 256 * 1024
MOST_CERTIFICATES = 64
MOST_KEY_BYTES = 8 * 1024  # an RSA key of 8,192 bits; the time to check a key grows with the fourth power of its length

_SERVER, _CLIENT = ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH
_USAGES = {"server": [_SERVER], "client": [_CLIENT], "peer": [_SERVER, _CLIENT]}
_BEGIN, _END = b"-----BEGIN CERTIFICATE-----", b"-----END CERTIFICATE-----"
_KINDS = f"RSA from {SMALLEST_RSA_BITS} bits, P-256, P-384, P-521 or Ed25519"
_CURVES = (ec.SECP256R1, ec.SECP384R1, ec.SECP521R1)
_UNREADABLE = (
    ValueError,
    TypeError,  # an encrypted key, a signature of another kind
    UnsupportedAlgorithm,
    InvalidSignature,
    x509.InvalidVersion,
    x509.DuplicateExtension,
    x509.UnsupportedGeneralNameType,
)
"""What cryptography raises for unreadable certificates and keys."""


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate (leaf first, when it is a chain) and its private key, as PEM."""

    certificate: bytes
    key: bytes

    def __repr__(self) -> str:
        return "KeyPair(...)"  # keeps the key out of logs


Usage = Literal["server", "client", "peer"]
"""peer: server and client, between two virt-handlers."""


@dataclass(frozen=True, slots=True)
class Subject:
    """The names and the usage of a leaf certificate."""

    common_name: str
    usage: Usage
    dns_names: tuple[str, ...] = ()
    uri: str = ""


@dataclass(frozen=True, slots=True)
class UnusableKey:
    """A key or a CA that cannot sign."""

    why: str
    """Never contains key material."""


@dataclass(frozen=True, slots=True)
class Validity:
    """Begin and end of a certificate, in seconds since the epoch."""

    begins: float
    ends: float

    def is_over(self, now: float) -> bool:
        return now >= self.ends

    def renew_at(self) -> float:
        return self.begins + (self.ends - self.begins) * RENEW_AT


def make_ca(common_name: str, now: float, lifetime: timedelta) -> KeyPair:
    """Create a self-signed CA that may sign only leaf certificates."""
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


def make_self_signed(subject: Subject, now: float, lifetime: timedelta) -> KeyPair:
    """Create a self-signed key pair. Peers must learn the certificate itself in another way."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject.common_name[:64])])
    certificate = _leaf(_builder(name, name, key.public_key(), now, lifetime), subject, key.public_key())
    return _pair(certificate.sign(key, hashes.SHA256()), key)


def issue(authority: KeyPair, subject: Subject, now: float, lifetime: timedelta) -> KeyPair:
    """Issue a key pair, which never outlives its CA.

    authority: as returned by find_ca. Raises ValueError for any other.
    """
    issuer = x509.load_pem_x509_certificate(authority.certificate)
    signer = _signer(authority.key)
    if isinstance(signer, UnusableKey):
        raise ValueError(signer.why)
    key = ec.generate_private_key(ec.SECP256R1())
    rest = issuer.not_valid_after_utc - datetime.fromtimestamp(now, UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject.common_name[:64])])
    builder = _builder(name, issuer.subject, key.public_key(), now, min(lifetime, rest))
    certificate = (
        _leaf(builder, subject, key.public_key())
        .add_extension(_issuer_identifier(issuer), critical=False)
        .sign(signer, None if isinstance(signer, ed25519.Ed25519PrivateKey) else hashes.SHA256())
    )
    return _pair(certificate, key)


def find_ca(bundle: bytes, key: bytes) -> KeyPair | UnusableKey:
    """Find the key's certificate in the bundle, if the two can sign."""
    signer = _signer(key)
    if isinstance(signer, UnusableKey):
        return signer
    if len(bundle) > MOST_BYTES or bundle.count(_BEGIN) > MOST_CERTIFICATES:
        return UnusableKey(f"its bundle has more than {MOST_CERTIFICATES} certificates or {MOST_BYTES // 1024} KiB")
    certificates, public_key = split_bundle(bundle), signer.public_key()
    for certificate in certificates:
        if _is_for(certificate, public_key):
            if is_ca(certificate):
                return KeyPair(certificate, key)
            return UnusableKey("the certificate is not one of an authority that may sign certificates")
    return UnusableKey("the key is for none of the certificates" if certificates else "no certificate can be read")


def is_ca(certificate: bytes) -> bool:
    """Tell whether a certificate is a CA whose signatures API servers accept; False for unreadable input."""
    try:
        parsed = x509.load_pem_x509_certificate(certificate)
        extensions = parsed.extensions
        if (
            not _is_verifiable(parsed.public_key())
            or not extensions.get_extension_for_class(x509.BasicConstraints).value.ca
        ):
            return False
        return extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign
    except x509.ExtensionNotFound as missing:
        return missing.oid == x509.KeyUsage.oid  # without KeyUsage every usage is allowed
    except _UNREADABLE:
        return False


@lru_cache(maxsize=256)
def validity(certificate: bytes) -> Validity:
    """Return begin and end of the first certificate. Raises ValueError for unreadable input."""
    parsed = x509.load_pem_x509_certificate(certificate)
    return Validity(parsed.not_valid_before_utc.timestamp(), parsed.not_valid_after_utc.timestamp())


def is_key_pair(pair: KeyPair) -> bool:
    """Tell whether the key belongs to the certificate; False for unreadable input."""
    key = _private_key(pair.key)
    return not isinstance(key, UnusableKey) and _is_for(pair.certificate, key.public_key())


def _is_for(certificate: bytes, public_key: object) -> bool:
    try:
        return bool(x509.load_pem_x509_certificate(certificate).public_key() == public_key)
    except _UNREADABLE:
        return False


@lru_cache(maxsize=256)  # a reconcile checks each pair several times, and a signature costs 1 ms
def is_issued_by(certificate: bytes, authority: bytes) -> bool:
    """Tell whether the authority's key signed the certificate; False for unreadable input."""
    try:
        issuer = x509.load_pem_x509_certificate(authority)
        x509.load_pem_x509_certificate(certificate).verify_directly_issued_by(issuer)
    except _UNREADABLE:
        return False
    return True


@lru_cache(maxsize=64)
def is_for_subject(certificate: bytes, subject: Subject) -> bool:
    """Tell whether a certificate has exactly this subject's names and usage; False for unreadable input."""
    try:
        extensions = x509.load_pem_x509_certificate(certificate).extensions
        names = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        usages = extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except (x509.ExtensionNotFound, *_UNREADABLE):
        return False
    return set(names) == set(_alternatives(subject)) and list(usages) == _USAGES[subject.usage]


def _alternatives(subject: Subject) -> list[x509.GeneralName]:
    uris = [x509.UniformResourceIdentifier(subject.uri)] if subject.uri else []
    return [*(x509.DNSName(name) for name in subject.dns_names), *uris]


def split_bundle(bundle: bytes) -> list[bytes]:
    """Return the certificates of a bundle, one PEM each, without unreadable ones, at most MOST_CERTIFICATES."""
    blocks = islice(_blocks(bundle[:MOST_BYTES]), MOST_CERTIFICATES)
    return [read for block in blocks if (read := _normal(block)) is not None]


def _blocks(bundle: bytes) -> Iterator[bytes]:
    begin = bundle.find(_BEGIN)
    while begin >= 0 and (end := bundle.find(_END, begin)) >= 0:
        yield bundle[begin : end + len(_END)]
        begin = bundle.find(_BEGIN, end)


@lru_cache(maxsize=256)
def _normal(block: bytes) -> bytes | None:
    try:
        pem = _pem(x509.load_pem_x509_certificate(block))
        validity(pem)
    except (OverflowError, *_UNREADABLE):
        return None
    return pem


def join_bundle(certificates: Iterable[bytes], now: float) -> bytes:
    """Return a bundle of the certificates that have not ended, each once, in order."""
    return b"".join(
        dict.fromkeys(certificate for certificate in certificates if not validity(certificate).is_over(now))
    )


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


def _leaf(
    builder: x509.CertificateBuilder, subject: Subject, public_key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    """Add the subject's names and usage. A leaf signs no certificates."""
    return (
        builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(digital_signature=True), critical=True)
        .add_extension(x509.ExtendedKeyUsage(_USAGES[subject.usage]), critical=False)
        .add_extension(x509.SubjectAlternativeName(_alternatives(subject)), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
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


@lru_cache(maxsize=16)  # checking an RSA key takes 0.3 s; there is one CA, and a key pair per role
def _private_key(pem: bytes) -> PrivateKeyTypes | UnusableKey:
    if not pem:
        return UnusableKey("there is no key")
    if len(pem) > MOST_KEY_BYTES:
        return UnusableKey(f"the key has more than {MOST_KEY_BYTES // 1024} KiB")
    try:
        return serialization.load_pem_private_key(pem, None)
    except TypeError:
        return UnusableKey("the key is encrypted")
    except (ValueError, UnsupportedAlgorithm):
        return UnusableKey("the key cannot be read")


def _signer(pem: bytes) -> Signer | UnusableKey:
    key = _private_key(pem)
    if isinstance(key, UnusableKey) or (isinstance(key, Signer) and _is_verifiable(key.public_key())):
        return key
    return UnusableKey(f"API servers do not verify such a key; use {_KINDS}")


def _is_verifiable(key: object) -> bool:
    """Tell whether API servers accept a public key. With an unknown key they refuse the whole bundle."""
    if isinstance(key, rsa.RSAPublicKey):
        return key.key_size >= SMALLEST_RSA_BITS
    if isinstance(key, ec.EllipticCurvePublicKey):
        return isinstance(key.curve, _CURVES)
    return isinstance(key, ed25519.Ed25519PublicKey)


def _issuer_identifier(issuer: x509.Certificate) -> x509.AuthorityKeyIdentifier:
    """Name the issuer's key as its own certificate does; otherwise OpenSSL does not find the issuer."""
    try:
        own = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    except x509.ExtensionNotFound:
        return x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer.public_key())  # type: ignore[arg-type]
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(own)


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> KeyPair:
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return KeyPair(_pem(certificate), private)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)

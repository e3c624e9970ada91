# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import ssl
import time
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509 import ExtendedKeyUsage
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from controlplane.tls.certificates import (
    MOST_BYTES,
    MOST_CERTIFICATES,
    MOST_KEY_BYTES,
    KeyPair,
    Subject,
    UnusableKey,
    find_ca,
    is_ca,
    is_for_subject,
    is_issued_by,
    is_key_pair,
    issue,
    join_bundle,
    make_ca,
    split_bundle,
    validity,
)
from tests.controlplane.tls.pairs import dns_names, issue_server

NOW = 1_750_000_000.0
YEAR = timedelta(days=365)

DAY = timedelta(days=1)
NAMES = ("virt-api.kubevirt.svc", "virt-api.kubevirt.svc.cluster.local")


@pytest.fixture(scope="module")
def authority() -> KeyPair:
    return make_ca("ours", NOW, YEAR)


def test_a_serving_pair_has_the_requested_names_and_lifetime(authority: KeyPair) -> None:
    pair = issue_server(authority, NAMES, NOW, DAY)

    assert is_key_pair(pair)
    assert is_issued_by(pair.certificate, authority.certificate)
    assert dns_names(pair.certificate) == NAMES
    assert validity(pair.certificate).ends == NOW + DAY.total_seconds()
    assert validity(pair.certificate).begins < NOW


def test_a_serving_pair_never_outlives_its_ca(authority: KeyPair) -> None:
    pair = issue_server(authority, NAMES, NOW, YEAR * 3)

    assert validity(pair.certificate).ends <= validity(authority.certificate).ends


def test_renewal_is_due_at_two_thirds_of_the_lifetime(authority: KeyPair) -> None:
    renew_at = validity(authority.certificate).renew_at()

    assert renew_at == pytest.approx(NOW + 2 / 3 * YEAR.total_seconds(), abs=300)


def test_a_certificate_of_another_ca_is_not_ours(authority: KeyPair) -> None:
    other = make_ca("ours", NOW, YEAR)

    assert not is_issued_by(issue_server(other, NAMES, NOW, DAY).certificate, authority.certificate)


@pytest.mark.parametrize(
    "pair",
    [KeyPair(b"", b""), KeyPair(b"-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n", b"x")],
    ids=["empty", "garbage"],
)
def test_unreadable_pems_are_no_key_pair(pair: KeyPair) -> None:
    assert not is_key_pair(pair)
    assert not is_issued_by(pair.certificate, pair.certificate)


def test_a_key_of_another_pair_does_not_match(authority: KeyPair) -> None:
    pair = issue_server(authority, NAMES, NOW, DAY)

    assert not is_key_pair(KeyPair(pair.certificate, authority.key))


def test_a_bundle_has_each_unexpired_certificate_once(authority: KeyPair) -> None:
    new = make_ca("new", NOW, YEAR)
    dead = make_ca("dead", NOW - 2 * YEAR.total_seconds(), YEAR)

    bundle = join_bundle([new.certificate, authority.certificate, new.certificate, dead.certificate], NOW)

    assert split_bundle(bundle) == [new.certificate, authority.certificate]
    assert split_bundle(b"nonsense") == []


def test_the_repr_hides_the_key(authority: KeyPair) -> None:
    assert "PRIVATE" not in repr(authority)


def shake_hands(pair: KeyPair, bundle: bytes, tmp_path: Path) -> None:
    """Do a handshake: the server has the pair, the client trusts the bundle. Raises ssl.SSLError."""
    (tmp_path / "pair.pem").write_bytes(pair.certificate + pair.key)
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    server.load_cert_chain(tmp_path / "pair.pem")
    client.load_verify_locations(cadata=bundle.decode())
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (
        client.wrap_bio(to_client, to_server, server_hostname=NAMES[0]),
        server.wrap_bio(to_server, to_client, server_side=True),
    )
    for _unused in range(4):
        for end in ends:
            with suppress(ssl.SSLWantReadError):
                end.do_handshake()
    assert ends[0].getpeercert()


@pytest.mark.parametrize(
    "key",
    [
        rsa.generate_private_key(65537, 2048),
        ec.generate_private_key(ec.SECP384R1()),
        ed25519.Ed25519PrivateKey.generate(),
    ],
    ids=["RSA", "P-384", "Ed25519"],
)
def test_clients_trust_pairs_issued_by_a_ca_with_any_kind_of_key(key: Any, tmp_path: Path) -> None:
    """The authority key identifier is copied from the CA certificate: with another one OpenSSL finds no issuer."""
    now = time.time()
    ca = by_hand(key, now)

    read_ca = find_ca(b"# mine\n" + make_ca("other", now, YEAR).certificate + ca.certificate, ca.key)
    assert isinstance(read_ca, KeyPair)
    assert read_ca == ca
    pair = issue_server(read_ca, NAMES, now, DAY)

    assert is_issued_by(pair.certificate, ca.certificate)
    shake_hands(pair, ca.certificate, tmp_path)
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(pair, make_ca("other", now, YEAR).certificate, tmp_path)


def by_hand(key: Any, now: float, *, is_constrained: bool = True) -> KeyPair:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "by hand")])
    begins = datetime.fromtimestamp(now, UTC) - DAY
    builder = x509.CertificateBuilder(name, name, key.public_key(), 7, begins, begins + YEAR)
    builder = builder.add_extension(x509.SubjectKeyIdentifier(b"mine"), critical=False)
    if is_constrained:
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    certificate = builder.sign(key, None if isinstance(key, ed25519.Ed25519PrivateKey) else hashes.SHA256())
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return KeyPair(certificate.public_bytes(Encoding.PEM), private)


def test_an_unreadable_ca_issues_nothing(authority: KeyPair) -> None:
    with pytest.raises(ValueError, match="cannot be read"):
        issue_server(KeyPair(authority.certificate, b"x"), NAMES, NOW, DAY)


@pytest.mark.parametrize("junk", [b"x", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", b"\xff"])
def test_unreadable_parts_of_a_bundle_are_skipped(authority: KeyPair, junk: bytes) -> None:
    assert split_bundle(junk + b"\n" + authority.certificate + junk) == [authority.certificate]
    assert not is_ca(junk)
    assert not is_for_subject(junk, Subject("x", "server", NAMES))


BEGIN, END = b"-----BEGIN CERTIFICATE-----\n", b"-----END CERTIFICATE-----\n"


@pytest.mark.parametrize(
    "bundle",
    [BEGIN * 90_000, BEGIN * 90_000 + END, END * 90_000, (BEGIN + END) * 40_000, BEGIN + b"A" * 2_500_000 + END],
    ids=["begins", "one end", "ends", "empty ones", "one long one"],
)
def test_a_malformed_bundle_is_parsed_in_linear_time(bundle: bytes) -> None:
    assert split_bundle(bundle) == []  # a search that starts again at each marker would not end


@pytest.mark.parametrize("more", ["certificates", "bytes"])
def test_a_bundle_over_the_limit_is_unusable_and_read_only_up_to_the_limit(authority: KeyPair, more: str) -> None:
    many = authority.certificate * MOST_CERTIFICATES
    bundle = many + (authority.certificate if more == "certificates" else b"#" * MOST_BYTES)

    assert find_ca(many, authority.key) == authority
    assert find_ca(bundle, authority.key) == UnusableKey(why="its bundle has more than 64 certificates or 256 KiB")
    assert len(split_bundle(bundle)) == MOST_CERTIFICATES
    assert split_bundle(b"#" * MOST_BYTES + authority.certificate) == []


def test_a_key_over_the_limit_is_unusable_and_not_parsed(authority: KeyPair) -> None:
    key = authority.key + b"#" * MOST_KEY_BYTES

    assert find_ca(authority.certificate, key) == UnusableKey(why="the key has more than 8 KiB")
    assert not is_key_pair(KeyPair(authority.certificate, key))


def test_a_key_is_parsed_once_for_any_number_of_certificates(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check of an RSA key of 4,096 bits takes a third of a second; a Lease expires after ten seconds."""
    mine, parsed = make_ca("mine", NOW, YEAR), []
    load = serialization.load_pem_private_key
    monkeypatch.setattr(serialization, "load_pem_private_key", lambda *args: parsed.append(args) or load(*args))
    others = make_ca("other", NOW, YEAR).certificate * 20

    for _unused in range(3):
        assert find_ca(others + mine.certificate, mine.key) == mine
        assert is_key_pair(mine)

    assert len(parsed) == 1


def test_a_serving_certificate_is_no_ca(authority: KeyPair) -> None:
    assert is_ca(authority.certificate)
    assert not is_ca(issue_server(authority, NAMES, NOW, DAY).certificate)


def test_a_certificate_without_basic_constraints_is_no_ca() -> None:
    """Verifiers check the basic constraints; a CA may omit the key usage."""
    key = ec.generate_private_key(ec.SECP256R1())
    assert is_ca(by_hand(key, NOW).certificate)
    assert not is_ca(by_hand(key, NOW, is_constrained=False).certificate)


def test_a_certificate_has_a_single_use(authority: KeyPair) -> None:
    """A serving pair can neither sign nor act as a client; the CA cannot sign another CA."""
    leaf = x509.load_pem_x509_certificate(issue_server(authority, NAMES, NOW, DAY).certificate).extensions
    root = x509.load_pem_x509_certificate(authority.certificate).extensions

    assert not leaf.get_extension_for_class(x509.BasicConstraints).value.ca
    usages = leaf.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usages) == [ExtendedKeyUsageOID.SERVER_AUTH]
    assert root.get_extension_for_class(x509.BasicConstraints).value.path_length == 0


SERVER = Subject("a.svc", "server", ("a.svc",), "spiffe://x/a/server")
CLIENT = Subject("a/client", "client", (), "spiffe://x/a/client")


@pytest.mark.parametrize("subject", [SERVER, CLIENT], ids=["server", "client"])
def test_a_pair_fits_its_subject_only(subject: Subject) -> None:
    """One key pair per role and direction: another use, name or role does not match."""
    pair = issue(make_ca("ca", NOW, YEAR), subject, NOW, DAY)
    extensions = x509.load_pem_x509_certificate(pair.certificate).extensions
    (usage,) = extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    names = extensions.get_extension_for_class(x509.SubjectAlternativeName).value

    assert is_for_subject(pair.certificate, subject)
    assert usage == (ExtendedKeyUsageOID.SERVER_AUTH if subject is SERVER else ExtendedKeyUsageOID.CLIENT_AUTH)
    assert names.get_values_for_type(x509.UniformResourceIdentifier) == [subject.uri]
    for other in (
        replace(subject, usage="client" if subject is SERVER else "server"),
        replace(subject, uri="spiffe://x/b/server"),
        replace(subject, dns_names=("b.svc",)),
        replace(subject, uri=""),
    ):
        assert not is_for_subject(pair.certificate, other)


def test_a_pair_with_an_additional_use_does_not_fit_its_subject(monkeypatch: pytest.MonkeyPatch) -> None:
    """With such a server key a process could also act as a client."""
    authority = make_ca("ca", NOW, YEAR)
    with monkeypatch.context() as patch:
        both = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        patch.setattr(x509, "ExtendedKeyUsage", lambda _usages: ExtendedKeyUsage(both))
        pair = issue(authority, SERVER, NOW, DAY)
    assert not is_for_subject(pair.certificate, SERVER)

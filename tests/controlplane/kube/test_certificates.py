# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import ssl
from datetime import timedelta
from pathlib import Path

import pytest

from controlplane.kube.certificates import (
    KeyPair,
    belongs_together,
    dns_names,
    is_issued_by,
    issue_server,
    join,
    life,
    make_authority,
    split,
)

NOW = 1_750_000_000.0
YEAR = timedelta(days=365)
DAY = timedelta(days=1)
NAMES = ("virt-api.kubevirt.svc", "virt-api.kubevirt.svc.cluster.local")


@pytest.fixture(scope="module")
def authority() -> KeyPair:
    return make_authority("ours", NOW, YEAR)


def test_a_serving_pair_is_what_was_asked_for(authority: KeyPair) -> None:
    pair = issue_server(authority, NAMES, NOW, DAY)

    assert belongs_together(pair)
    assert is_issued_by(pair.certificate, authority.certificate)
    assert dns_names(pair.certificate) == NAMES
    assert life(pair.certificate).ends == NOW + DAY.total_seconds()
    assert life(pair.certificate).begins < NOW


def test_openssl_takes_the_pair(authority: KeyPair, tmp_path: Path) -> None:
    pair = issue_server(authority, NAMES, NOW, DAY)
    (tmp_path / "tls.crt").write_bytes(pair.certificate)
    (tmp_path / "tls.key").write_bytes(pair.key)

    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(tmp_path / "tls.crt", tmp_path / "tls.key")
    ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=authority.certificate.decode())


def test_a_serving_pair_never_outlives_its_authority(authority: KeyPair) -> None:
    pair = issue_server(authority, NAMES, NOW, YEAR * 3)

    assert life(pair.certificate).ends <= life(authority.certificate).ends


def test_renewal_is_due_at_four_fifths_of_a_life(authority: KeyPair) -> None:
    renew_at = life(authority.certificate).renew_at()

    assert renew_at == pytest.approx(NOW + 0.8 * YEAR.total_seconds(), abs=300)


def test_a_certificate_of_another_authority_is_not_ours(authority: KeyPair) -> None:
    other = make_authority("ours", NOW, YEAR)

    assert not is_issued_by(issue_server(other, NAMES, NOW, DAY).certificate, authority.certificate)


@pytest.mark.parametrize(
    "pair",
    [KeyPair(b"", b""), KeyPair(b"-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n", b"x")],
    ids=["empty", "garbage"],
)
def test_what_cannot_be_read_does_not_belong_together(pair: KeyPair) -> None:
    assert not belongs_together(pair)
    assert not is_issued_by(pair.certificate, pair.certificate)


def test_a_key_of_another_pair_does_not_belong(authority: KeyPair) -> None:
    pair = issue_server(authority, NAMES, NOW, DAY)

    assert not belongs_together(KeyPair(pair.certificate, authority.key))


def test_a_bundle_holds_each_living_certificate_once(authority: KeyPair) -> None:
    new = make_authority("new", NOW, YEAR)
    dead = make_authority("dead", NOW - 2 * YEAR.total_seconds(), YEAR)

    bundle = join([new.certificate, authority.certificate, new.certificate, dead.certificate], NOW)

    assert split(bundle) == [new.certificate, authority.certificate]
    assert split(b"nonsense") == []


def test_a_key_is_not_shown(authority: KeyPair) -> None:
    assert "PRIVATE" not in repr(authority)

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which key pair virt-api uses when its Secret has one that is not valid yet or has expired."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest

from controlplane.api.objects.resources import Key
from controlplane.tls.certificates import SKEW, KeyPair, make_ca
from controlplane.virt_api.cluster import Cluster
from controlplane.virt_api.http.key_pairs import KeyPairInUse
from controlplane.virt_api.http.tls import ServingTls, TlsError
from controlplane.virt_api.settings import CLIENT_SECRET_NAME
from tests.controlplane.tls.pairs import issue_server
from tests.controlplane.virt_api.served import Served, now, secret, serving

NOW = 1_750_000_000.0
DAY = 86400.0
AUTHORITY = make_ca("ours", NOW - DAY, timedelta(days=400))


def a_pair(begins: float = -DAY, days: float = 90) -> KeyPair:
    lifetime = timedelta(days=days) - SKEW
    return issue_server(AUTHORITY, ["virt-api.kubevirt.svc"], NOW + begins + SKEW.total_seconds(), lifetime)


@dataclass
class Used:
    """The pair in use, with a clock."""

    now: float = NOW
    pairs: KeyPairInUse = field(init=False)

    def __post_init__(self) -> None:
        self.pairs = KeyPairInUse(lambda: self.now)

    def at(self, seconds: float) -> KeyPair | None:
        self.now = NOW + seconds
        return self.pairs.current


def test_a_valid_pair_is_used_at_once() -> None:
    used, first, second = Used(), a_pair(), a_pair()
    assert used.pairs.current is None

    used.pairs.take(first)
    assert used.pairs.current == first
    used.pairs.take(second)
    assert used.pairs.current == second


def test_a_pair_that_is_not_valid_yet_is_used_as_soon_as_it_is_valid() -> None:
    used, first, late = Used(), a_pair(), a_pair(begins=30 * DAY)
    used.pairs.take(first)
    used.pairs.take(late)

    assert used.at(0) == first
    assert used.at(30 * DAY - 1) == first
    assert used.at(30 * DAY) == late
    assert used.at(0) == late, "a clock that goes back changes nothing that was changed"


def test_an_expired_pair_does_not_replace_a_valid_one() -> None:
    """The issuer's clock was slow, or ours is fast."""
    used, first = Used(), a_pair()
    used.pairs.take(first)
    used.pairs.take(a_pair(begins=-80 * DAY, days=79))

    assert used.pairs.current == first


def test_when_the_old_pair_expires_the_next_is_used_even_if_it_is_not_valid() -> None:
    used, first, late = Used(), a_pair(days=10), a_pair(begins=30 * DAY)
    used.pairs.take(first)
    used.pairs.take(late)

    assert used.at(9 * DAY - 1) == first
    assert used.at(9 * DAY) == late


def test_the_latest_pair_counts() -> None:
    used, first, corrected = Used(), a_pair(), a_pair()
    used.pairs.take(first)
    used.pairs.take(a_pair(begins=30 * DAY))
    used.pairs.take(corrected)
    assert used.pairs.current == corrected

    used.pairs.take(a_pair(begins=30 * DAY))
    used.pairs.take(corrected)
    assert used.at(31 * DAY) == corrected, "it was put back"


@pytest.mark.parametrize("pair", [a_pair(begins=30 * DAY), KeyPair(b"?", b"?")], ids=["not begun", "unreadable"])
def test_the_only_pair_is_always_used(pair: KeyPair) -> None:
    used = Used()
    used.pairs.take(pair)

    assert used.pairs.current == pair


def test_a_client_pair_waits_until_it_is_valid() -> None:
    clock = Used()
    cluster, key = Cluster("kubevirt", client_pairs=clock.pairs), Key("kubevirt", CLIENT_SECRET_NAME)
    first, late = a_pair(), a_pair(begins=30 * DAY)

    cluster.take_client_pair(key, None, secret(first))
    cluster.take_client_pair(key, None, secret(late))

    assert cluster.client_pair == first
    clock.now += 30 * DAY
    assert cluster.client_pair == late


def test_a_waiting_pair_is_checked_when_it_arrives() -> None:
    """When it becomes valid later, nothing could report the error."""
    tls, other = ServingTls(now=lambda: NOW), a_pair()
    tls.use_pair(a_pair())

    with pytest.raises(TlsError):
        tls.use_pair(KeyPair(a_pair(begins=30 * DAY).certificate, other.key))


async def test_clients_are_served_with_a_certificate_that_they_accept(tmp_path: Path) -> None:
    """With a certificate that is not valid yet, API servers would refuse every write and every subresource."""
    async with serving(tmp_path) as served:
        served.serving_authority = make_ca("long", now(), timedelta(days=400))
        served.take_pair(served.serving_pair())
        assert (await called(served)) == 200

        served.take_pair(late_pair(served))
        served.trust(served.proxy_authority, "front-proxy-client")
        assert (await called(served)) == 200


async def test_a_waiting_pair_does_not_trust_a_former_front_proxy() -> None:
    clock, former, proxy = (
        Used(),
        make_ca("gone", NOW, timedelta(days=1)),
        make_ca("x", NOW, timedelta(days=1)),
    )
    tls = ServingTls(now=lambda: clock.now)
    tls.use_authority(former.certificate)
    tls.use_pair(a_pair())
    tls.use_pair(a_pair(begins=30 * DAY))
    tls.use_authority(proxy.certificate)

    clock.now += 30 * DAY

    (authority,) = tls.current.get_ca_certs(binary_form=True) if tls.current else ()
    assert authority == ssl.PEM_cert_to_DER_cert(proxy.certificate.decode())
    assert tls.current is not None
    assert tls.is_current(tls.current)


def late_pair(served: Served) -> KeyPair:
    return issue_server(served.serving_authority, ["virt-api.kubevirt.svc"], now() + 80 * DAY, timedelta(days=90))


async def called(served: Served) -> int:
    return (await served.call("GET", "/healthz"))[0]

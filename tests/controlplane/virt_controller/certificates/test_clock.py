# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Leaders with wrong clocks, temporary or permanent: their writes are repaired, and peers keep trusting each other."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from controlplane.api.certificate_lifetimes import AUTHORITY, PAIR
from controlplane.tls.certificates import SKEW, KeyPair, issue, join_bundle, make_ca, split_bundle, validity
from controlplane.virt_controller.certificates.apply import apply
from controlplane.virt_controller.certificates.decide import (
    MOST_KEPT,
    SETTLE_SECONDS,
    IssuePair,
    MakeAuthority,
    PatchBundle,
    Plan,
    decide,
)
from controlplane.virt_controller.certificates.observe import observe
from controlplane.virt_controller.certificates.observed_since import ObservedSince
from tests.controlplane.virt_controller.certificates.test_decide import (
    CA_KEY,
    DAY,
    NOW,
    SECRETS,
    SUBJECT,
    Toy,
    a_serving,
    a_world,
    by_hand,
    counts,
    with_pair,
)

PAIRS = SECRETS["all"][1:]
ALL_ANEW = 40
"""Writes: fewer than two for each authority, pair and bundle."""


def ours(begins_in: float) -> KeyPair:
    """An authority that this project issues."""
    return make_ca("kubevirt-ca", NOW + begins_in + SKEW.total_seconds(), AUTHORITY.duration)


def a_pair(authority: KeyPair, begins_in: float) -> KeyPair:
    return issue(authority, SUBJECT, NOW + begins_in + SKEW.total_seconds(), PAIR.duration)


async def a_toy() -> Toy:
    toy = Toy()
    await toy.create()
    await toy.live(10 * DAY)
    return toy


async def lead(toy: Toy, ahead: float, seconds: float) -> int:
    """Let another process lead that has observed no change yet; return the number of writes."""
    toy.ahead, toy.observed_since = ahead, ObservedSince()
    return await toy.live(seconds)


def certificates(toy: Toy) -> dict[str, bytes]:
    pairs = {key.name: toy.data(key, "tls.crt") for key in PAIRS}
    return pairs | {CA_KEY.name: split_bundle(toy.data(CA_KEY, "ca.crt"))[0]}


def not_valid(toy: Toy) -> list[str]:
    return [name for name, pair in certificates(toy).items() if not counts(pair, toy.now)]


STAYS = {"30 s": 30.0, "5 min": 300.0, "2 d": 2 * DAY}


@pytest.mark.parametrize(
    ("days", "stays"),
    [
        *((1, "30 s"), (80, "2 d"), (300, "5 min"), (-1, "2 d"), (-80, "5 min"), (-80, "2 d"), (-100, "30 s")),
        *((-300, "5 min"), (-400, "2 d"), (-20_000, "30 s")),
    ],
)
async def test_a_clock_that_steps_and_is_corrected_leaves_no_damage_and_breaks_no_connection(
    days: int, stays: str
) -> None:
    toy = await a_toy()

    toy.ahead = days * DAY
    wrong = await toy.live(STAYS[stays])
    toy.ahead = 0.0
    repaired = await toy.live(3 * SETTLE_SECONDS)

    assert not_valid(toy) == []
    assert wrong <= ALL_ANEW
    assert repaired <= ALL_ANEW
    assert await toy.live(30 * DAY) == 0


async def test_a_clock_ahead_by_more_than_the_authoritys_lifetime_is_repaired_in_minutes() -> None:
    """The leader believes that everything has expired, and nobody trusts what is served in the meantime."""
    toy = await a_toy()
    check, toy.check = toy.check, lambda: None  # type: ignore[method-assign]

    toy.ahead = 4000 * DAY
    assert await toy.live(30) <= ALL_ANEW
    toy.ahead = 0.0
    assert await toy.live(3 * SETTLE_SECONDS) <= ALL_ANEW

    assert not_valid(toy) == []
    toy.check = check  # type: ignore[method-assign]
    for recent in (toy.used, toy.recently_served, toy.recently_trusted):
        recent.clear()
    assert await toy.live(30 * DAY) == 0
    assert await toy.live(90 * DAY) <= ALL_ANEW


@pytest.mark.parametrize("days", [300, -80, -400])
async def test_two_leaders_with_different_clocks_write_once_for_each_change_of_leader(days: int) -> None:
    toy = await a_toy()

    for _unused in range(2):
        for ahead in (days * DAY, 0.0):
            assert await lead(toy, ahead, 3 * SETTLE_SECONDS) <= ALL_ANEW
            assert await lead(toy, ahead, 3600) == 0, "the same clock finds nothing more to do"
        assert not_valid(toy) == []


async def test_a_leader_that_is_behind_for_long_serves_no_expired_certificate() -> None:
    """A certificate starts by the leader's clock and never ends earlier than the one it replaces. Both are used."""
    toy = await a_toy()
    before = certificates(toy)

    toy.ahead = -400 * DAY
    await toy.live(DAY)

    after = certificates(toy)
    assert all(validity(after[name]).begins <= toy.now + toy.ahead for name in after)
    assert all(validity(after[name]).ends >= validity(before[name]).ends for name in after)
    assert all(validity(after[name]).ends <= validity(after[CA_KEY.name]).ends for name in after)


async def test_a_swinging_clock_creates_at_most_one_authority_a_minute_and_the_bundle_stays_small() -> None:
    toy = await a_toy()
    toy.check = lambda: None  # type: ignore[method-assign]
    authorities: dict[bytes, None] = {}

    for swing in range(24):
        toy.ahead = 300 * DAY if swing % 2 else 0.0
        await toy.live(10)
        authorities[certificates(toy)[CA_KEY.name]] = None

    assert len(authorities) <= 1 + 2 * 240 / SETTLE_SECONDS
    assert all(len(split_bundle(bundle)) <= MOST_KEPT for bundle in toy.recently_trusted)


def test_an_authority_of_ours_that_is_not_valid_yet_is_replaced_and_stays_in_the_bundle() -> None:
    old, late = ours(-3600), ours(80 * DAY)
    world = a_world(late, a_serving(old), join_bundle([late.certificate, old.certificate], NOW))

    (action,) = decide(world).actions

    assert isinstance(action, MakeAuthority)
    assert action.keep == (late.certificate, old.certificate)
    assert "not valid yet" in action.because
    assert action.ends == validity(late.certificate).ends, "whose clock is right is not known: it ends no sooner"
    assert not action.is_loss


def test_a_start_within_the_clock_skew_is_accepted() -> None:
    authority = ours(SKEW.total_seconds() - 1)
    serving = a_pair(authority, SKEW.total_seconds() - 1)

    assert decide(a_world(authority, serving, authority.certificate)).actions == ()


def waiting(plan: Plan) -> float:
    assert plan.actions == ()
    return plan.requeue_after


def test_a_new_authority_is_not_replaced_at_once() -> None:
    """Age counts by this process's observation: a swinging clock creates one authority a minute, not one per swing."""
    late = ours(80 * DAY)
    world = replace(a_world(late, a_serving(late), late.certificate), authority_for=20.0)

    assert waiting(decide(world)) == SETTLE_SECONDS - 20


def test_a_pair_that_is_not_valid_yet_is_reissued_once_every_verifier_has_the_bundle() -> None:
    """Its holder may use another, valid pair whose authority is the only one in an old bundle."""
    old, new = ours(-7200), ours(-3600)
    both = join_bundle([new.certificate, old.certificate], NOW)
    world = a_world(new, a_pair(old, 80 * DAY), both)

    (action,) = decide(world).actions
    assert isinstance(action, IssuePair)
    assert "not valid yet" in action.because
    assert action.ends == NOW + 80 * DAY + PAIR.duration.total_seconds() + SKEW.total_seconds()

    assert 0 < waiting(decide(replace(world, bundles_for=20.0))) <= SETTLE_SECONDS - 20
    assert 0 < waiting(decide(with_pair(world, used_for=20.0))) <= SETTLE_SECONDS - 20
    (action,) = decide(replace(world, verifiers=(replace(world.verifiers[0], bundles=(old.certificate,)),))).actions
    assert isinstance(action, PatchBundle)
    assert split_bundle(action.bundle) == [new.certificate, old.certificate]


async def test_a_pair_with_a_longer_lifetime_is_renewed_no_later() -> None:
    toy = await a_toy()
    toy.ahead = 3000 * DAY
    toy.check = lambda: None  # type: ignore[method-assign]
    await toy.live(30)
    toy.ahead = 0.0
    await toy.live(3600)
    repaired = certificates(toy)

    assert await toy.live(59 * DAY) == 0
    await toy.live(3 * DAY)
    assert all(certificates(toy)[key.name] != repaired[key.name] for key in PAIRS)
    await toy.live(184 * DAY)
    assert certificates(toy)[CA_KEY.name] != repaired[CA_KEY.name]


def by_a_tool(path_length: int | None, *, says_usage: bool) -> KeyPair:
    """An authority with our name that becomes valid tomorrow, as other tools create one."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kubevirt-ca")])
    begins = datetime.fromtimestamp(NOW + DAY, UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 7, begins, begins + AUTHORITY.duration)
    builder = builder.add_extension(x509.SubjectKeyIdentifier(b"mine"), critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=path_length), critical=True)
    if says_usage:
        usage = (True, False, False, False, False, True, False, False, False)
        builder = builder.add_extension(x509.KeyUsage(*usage), critical=True)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return KeyPair(builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM), private)


AS_A_PERSON_MAKES_THEM: dict[str, Any] = {
    "another name": lambda: make_ca("mine", NOW + DAY, AUTHORITY.duration),
    "our name, no usage": lambda: by_a_tool(0, says_usage=False),
    "our name, signs authorities": lambda: by_a_tool(None, says_usage=True),
}


@pytest.mark.parametrize("make", AS_A_PERSON_MAKES_THEM.values(), ids=AS_A_PERSON_MAKES_THEM)
def test_an_authority_created_by_hand_waits_until_it_is_valid_and_that_is_reported(make: Any) -> None:
    old, new = ours(-3600), make()
    world = a_world(new, a_serving(old), join_bundle([new.certificate, old.certificate], NOW))

    plan = decide(world)
    assert plan.actions == ()
    assert "is not valid before 2025-06-1" in plan.waiting

    later = decide(replace(world, now=NOW + DAY + SKEW.total_seconds() + SETTLE_SECONDS))
    assert [type(verifier) for verifier in later.actions] == [IssuePair]
    assert later.waiting == ""


def test_a_leader_whose_clock_is_behind_keeps_an_authority_created_by_hand_and_its_pairs() -> None:
    mine = by_hand(ec.generate_private_key(ec.SECP256R1()))
    world = a_world(mine, a_serving(mine), mine.certificate)

    assert decide(world).actions == ()
    assert decide(replace(world, now=NOW - 80 * DAY)).actions == ()


async def test_a_longer_lifetime_is_cut_at_the_authoritys_end() -> None:
    toy, authority = await a_toy(), ours(-3600)
    world = observe(toy.caches(), "kubevirt", NOW)

    await apply(toy.api, IssuePair(world.pairs[0].secret, authority, SUBJECT, "test", ends=NOW + 9000 * DAY), NOW)

    assert validity(toy.data(PAIRS[0], "tls.crt")).ends == validity(authority.certificate).ends

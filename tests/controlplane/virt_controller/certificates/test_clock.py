# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Leaders whose clocks are wrong, for a while or for good: what they leave is mended, and cuts nobody off meanwhile."""

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

from controlplane.tls.certificates import SKEW, KeyPair, issue, join_bundle, make_ca, split_bundle, validity
from controlplane.virt_controller.certificates.apply import apply
from controlplane.virt_controller.certificates.decide import (
    AUTHORITY_LIFE,
    MOST_KEPT,
    PAIR_LIFE,
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
"""Writes: an authority, each pair and each bundle, not twice over for each of two steps."""


def ours(begins_in: float) -> KeyPair:
    """An authority as we make them."""
    return make_ca("kubevirt-ca", NOW + begins_in + SKEW.total_seconds(), AUTHORITY_LIFE)


def a_pair(authority: KeyPair, begins_in: float) -> KeyPair:
    return issue(authority, SUBJECT, NOW + begins_in + SKEW.total_seconds(), PAIR_LIFE)


async def a_toy() -> Toy:
    toy = Toy()
    await toy.create()
    await toy.live(10 * DAY)
    return toy


async def lead(toy: Toy, ahead: float, seconds: float) -> int:
    """Let another process lead that has seen nothing change; return the number of writes."""
    toy.ahead, toy.standing = ahead, ObservedSince()
    return await toy.live(seconds)


def certificates(toy: Toy) -> dict[str, bytes]:
    pairs = {key.name: toy.data(key, "tls.crt") for key in PAIRS}
    return pairs | {CA_KEY.name: split_bundle(toy.data(CA_KEY, "ca.crt"))[0]}


def not_valid(toy: Toy) -> list[str]:
    return [name for name, one in certificates(toy).items() if not counts(one, toy.now)]


DAYS_AHEAD = [1, 80, 300]
DAYS_BEHIND = [-1, -80, -100, -300, -400, -20_000]


@pytest.mark.parametrize("stays", [30.0, 300.0, 2 * DAY], ids=["30 s", "5 min", "2 d"])
@pytest.mark.parametrize("days", [*DAYS_AHEAD, *DAYS_BEHIND])
async def test_a_clock_that_steps_and_is_set_right_leaves_nothing_behind_and_cuts_nobody_off(
    days: int, stays: float
) -> None:
    toy = await a_toy()

    toy.ahead = days * DAY
    astray = await toy.live(stays)
    toy.ahead = 0.0
    mended = await toy.live(3 * SETTLE_SECONDS)

    assert not_valid(toy) == []
    assert astray <= ALL_ANEW
    assert mended <= ALL_ANEW
    assert await toy.live(30 * DAY) == 0


async def test_a_clock_that_was_ahead_by_more_than_the_authoritys_life_is_got_over_in_minutes() -> None:
    """The leader takes everything for ended: meanwhile nobody trusts what is served."""
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


@pytest.mark.parametrize("days", [*DAYS_AHEAD, *DAYS_BEHIND])
async def test_two_leaders_with_different_clocks_write_once_for_each_change_of_leader(days: int) -> None:
    toy = await a_toy()

    for _unused in range(4):
        for ahead in (days * DAY, 0.0):
            assert await lead(toy, ahead, 3 * SETTLE_SECONDS) <= ALL_ANEW
            assert await lead(toy, ahead, 3600) == 0, "the same clock finds nothing more to do"
        assert not_valid(toy) == []


async def test_a_leader_that_is_behind_for_long_serves_nobody_what_has_ended() -> None:
    """What it issues begins by its clock and ends no sooner than what it takes the place of: it counts by either."""
    toy = await a_toy()
    before = certificates(toy)

    toy.ahead = -400 * DAY
    await toy.live(DAY)

    after = certificates(toy)
    assert all(validity(after[name]).begins <= toy.now + toy.ahead for name in after)
    assert all(validity(after[name]).ends >= validity(before[name]).ends for name in after)
    assert all(validity(after[name]).ends <= validity(after[CA_KEY.name]).ends for name in after)


async def test_a_clock_that_swings_makes_an_authority_a_minute_at_most_and_the_bundle_does_not_fill() -> None:
    toy = await a_toy()
    toy.check = lambda: None  # type: ignore[method-assign]
    authorities: dict[bytes, None] = {}

    for swing in range(24):
        toy.ahead = 300 * DAY if swing % 2 else 0.0
        await toy.live(10)
        authorities[certificates(toy)[CA_KEY.name]] = None

    assert len(authorities) <= 1 + 2 * 240 / SETTLE_SECONDS
    assert all(len(split_bundle(bundle)) <= MOST_KEPT for bundle in toy.recently_trusted)


def test_an_authority_of_ours_that_has_not_begun_is_made_anew_and_the_bundle_keeps_it() -> None:
    old, late = ours(-3600), ours(80 * DAY)
    world = a_world(late, a_serving(old), join_bundle([late.certificate, old.certificate], NOW))

    (action,) = decide(world).actions

    assert isinstance(action, MakeAuthority)
    assert action.keep == (late.certificate, old.certificate)
    assert "has not begun" in action.because
    assert action.ends == validity(late.certificate).ends, "whose clock is right is not known: it ends no sooner"
    assert not action.is_loss


def test_what_begins_within_what_clocks_differ_by_is_left_alone() -> None:
    authority = ours(SKEW.total_seconds() - 1)
    serving = a_pair(authority, SKEW.total_seconds() - 1)

    assert decide(a_world(authority, serving, authority.certificate)).actions == ()


def waiting(plan: Plan) -> float:
    assert plan.actions == ()
    return plan.requeue_after


def test_an_authority_that_was_made_a_moment_ago_is_not_made_anew_at_once() -> None:
    """By this process's eyes: a clock that swings makes one a minute, and not one each time."""
    late = ours(80 * DAY)
    world = replace(a_world(late, a_serving(late), late.certificate), authority_for=20.0)

    assert waiting(decide(world)) == SETTLE_SECONDS - 20


def test_a_pair_that_has_not_begun_is_issued_anew_when_everybody_has_the_bundle() -> None:
    """Its holder may have one that counts; whoever is late with the bundle may trust that one's authority alone."""
    old, new = ours(-7200), ours(-3600)
    both = join_bundle([new.certificate, old.certificate], NOW)
    world = a_world(new, a_pair(old, 80 * DAY), both)

    (action,) = decide(world).actions
    assert isinstance(action, IssuePair)
    assert "has not begun" in action.because
    assert action.ends == NOW + 80 * DAY + PAIR_LIFE.total_seconds() + SKEW.total_seconds()

    assert 0 < waiting(decide(replace(world, bundles_for=20.0))) <= SETTLE_SECONDS - 20
    assert 0 < waiting(decide(with_pair(world, used_for=20.0))) <= SETTLE_SECONDS - 20
    (action,) = decide(replace(world, verifiers=(replace(world.verifiers[0], bundles=(old.certificate,)),))).actions
    assert isinstance(action, PatchBundle)
    assert split_bundle(action.bundle) == [new.certificate, old.certificate]


async def test_a_pair_that_may_last_longer_is_renewed_no_later() -> None:
    toy = await a_toy()
    toy.ahead = 3000 * DAY
    toy.check = lambda: None  # type: ignore[method-assign]
    await toy.live(30)
    toy.ahead = 0.0
    await toy.live(3600)
    mended = certificates(toy)

    assert await toy.live(59 * DAY) == 0
    await toy.live(3 * DAY)
    assert all(certificates(toy)[key.name] != mended[key.name] for key in PAIRS)
    await toy.live(184 * DAY)
    assert certificates(toy)[CA_KEY.name] != mended[CA_KEY.name]


def by_a_tool(path_length: int | None, *, says_usage: bool) -> KeyPair:
    """An authority of our name that begins tomorrow, as other tools make one."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kubevirt-ca")])
    begins = datetime.fromtimestamp(NOW + DAY, UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 7, begins, begins + AUTHORITY_LIFE)
    builder = builder.add_extension(x509.SubjectKeyIdentifier(b"mine"), critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=path_length), critical=True)
    if says_usage:
        usage = (True, False, False, False, False, True, False, False, False)
        builder = builder.add_extension(x509.KeyUsage(*usage), critical=True)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return KeyPair(builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM), private)


AS_A_PERSON_MAKES_THEM: dict[str, Any] = {
    "another name": lambda: make_ca("mine", NOW + DAY, AUTHORITY_LIFE),
    "our name, no usage": lambda: by_a_tool(0, says_usage=False),
    "our name, signs authorities": lambda: by_a_tool(None, says_usage=True),
}


@pytest.mark.parametrize("make", AS_A_PERSON_MAKES_THEM.values(), ids=AS_A_PERSON_MAKES_THEM)
def test_an_authority_put_there_by_hand_waits_its_time_and_that_is_said(make: Any) -> None:
    old, new = ours(-3600), make()
    world = a_world(new, a_serving(old), join_bundle([new.certificate, old.certificate], NOW))

    plan = decide(world)
    assert plan.actions == ()
    assert "is not valid before 2025-06-1" in plan.waiting

    later = decide(replace(world, now=NOW + DAY + SKEW.total_seconds() + SETTLE_SECONDS))
    assert [type(verifier) for verifier in later.actions] == [IssuePair]
    assert later.waiting == ""


def test_a_leader_that_is_behind_lets_an_authority_by_hand_and_its_pairs_be() -> None:
    mine = by_hand(ec.generate_private_key(ec.SECP256R1()))
    world = a_world(mine, a_serving(mine), mine.certificate)

    assert decide(world).actions == ()
    assert decide(replace(world, now=NOW - 80 * DAY)).actions == ()


async def test_a_longer_life_is_cut_at_the_authoritys_end() -> None:
    toy, authority = await a_toy(), ours(-3600)
    world = observe(toy.caches(), "kubevirt", NOW)

    await apply(toy.api, IssuePair(world.pairs[0].held, authority, SUBJECT, "test", ends=NOW + 9000 * DAY), NOW)

    assert validity(toy.data(PAIRS[0], "tls.crt")).ends == validity(authority.certificate).ends

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is to be written about certificates, from what is there and the time. Pure; nobody's material makes it raise."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from controlplane.api.objects.resources import SECRET, Key, Resource
from controlplane.kube.certificates import (
    SKEW,
    KeyPair,
    Subject,
    Unusable,
    belongs_together,
    find_authority,
    is_authority,
    is_issued_by,
    is_of,
    join,
    life,
    split,
)

AUTHORITY_LIFE = timedelta(days=365)
PAIR_LIFE = timedelta(days=90)

# How long a bundle has been with everybody before a pair is used that needs it, and a pair been used before what the
# last one needed is taken away: API servers, virt-api and virt-handlers learn by watch, in seconds.
SETTLE_SECONDS = 60.0
LONGEST_REST_SECONDS = 24 * 3600.0
MOST_KEPT = 16
"""Certificates of a bundle: whatever makes authorities again and again does not fill it without end."""


@dataclass(frozen=True, slots=True)
class Held:
    """A Secret with a key pair; empty bytes where it holds nothing."""

    key: Key
    version: str
    """"" when the Secret does not exist."""
    pair: KeyPair


@dataclass(frozen=True, slots=True)
class Verifier:
    """An object whose caBundle(s) decide whether the API server trusts us."""

    resource: Resource
    key: Key
    version: str
    bundles: tuple[bytes, ...]
    """PEM; one per hook of a webhook configuration."""


@dataclass(frozen=True, slots=True)
class Issued:
    """The Secret of a pair that our authority issues."""

    held: Held
    subject: Subject
    """Whom it must be of."""
    bundle: bytes | None = None
    """PEM of what its holder trusts, which stands beside the pair; None when the holder verifies nobody of ours."""
    used_for: float = math.inf
    """Seconds since this process saw the pair change; inf if it never did."""


@dataclass(frozen=True, slots=True)
class World:
    """All that counts."""

    authority: Held
    pairs: tuple[Issued, ...]
    verifiers: tuple[Verifier, ...]
    """API servers' objects, those that exist; one that is missing is not ours to create."""
    now: float
    bundles_for: float = math.inf
    """Seconds since this process saw a bundle change; inf if it never did."""

    @property
    def trusting(self) -> tuple[Verifier, ...]:
        """Everybody who verifies somebody of ours: API servers, and the holders of pairs."""
        holders = (
            Verifier(SECRET, one.held.key, one.held.version, (one.bundle,))
            for one in self.pairs
            if one.bundle is not None
        )
        return (*self.verifiers, *holders)


@dataclass(frozen=True, slots=True)
class MakeSecret:
    """Make a Secret that is missing, empty; what belongs into it is decided when it is there."""

    key: Key
    because: str


@dataclass(frozen=True, slots=True)
class MakeAuthority:
    """Make a new authority and keep these older ones beside it in the bundle."""

    held: Held
    keep: tuple[bytes, ...]
    because: str
    is_loss: bool = False
    """It takes the place of material that somebody put there and that cannot be used."""


@dataclass(frozen=True, slots=True)
class IssuePair:
    """Issue a pair by the current authority."""

    held: Held
    authority: KeyPair
    subject: Subject
    because: str
    bundle: bytes | None = None
    """To be written beside it."""


@dataclass(frozen=True, slots=True)
class PatchBundle:
    """Let a verifier trust the whole bundle."""

    verifier: Verifier
    bundle: bytes
    because: str


Action = MakeSecret | MakeAuthority | IssuePair | PatchBundle


@dataclass(frozen=True, slots=True)
class Plan:
    """Writes, and when to look again if nothing changes before."""

    actions: tuple[Action, ...]
    look_again_in: float


def decide(world: World) -> Plan:
    """Choose the writes.

    A missing Secret is made only while somebody verifies us: during a removal the verifiers go first, and nothing may
    come back after it.
    """
    missing = [held for held in (world.authority, *(one.held for one in world.pairs)) if not held.version]
    if missing:
        makes = tuple(MakeSecret(held.key, "it is missing") for held in missing if world.verifiers)
        return Plan(makes, LONGEST_REST_SECONDS)
    held, now = world.authority, world.now
    found = find_authority(held.pair.certificate, held.pair.key)
    why = _authority_problem(found, now)
    if isinstance(found, Unusable) or why:
        keep = _trusted((*split(held.pair.certificate), *_handed_out(world)), now)
        is_loss = isinstance(found, Unusable) and held.pair.key != b""
        return Plan((MakeAuthority(held, keep, why, is_loss),), LONGEST_REST_SECONDS)
    return _keep(world, found)


def _authority_problem(found: KeyPair | Unusable, now: float) -> str:
    if isinstance(found, Unusable):
        return f"there is no usable authority: {found.why}"
    if now >= life(found.certificate).renew_at():
        return "the authority is at four fifths of its life"
    return ""


def _keep(world: World, authority: KeyPair) -> Plan:
    """Choose the writes while there is an authority: first hand out the bundle, then issue by it."""
    now = world.now
    known = _trusted((authority.certificate, *split(world.authority.pair.certificate)), now)
    # An authority that was replaced by hand, or lost: what is in use may still be by the one before, which then is
    # known to the verifiers only.
    is_done = all(
        not _fault(one, known, now) and _settles_in(one.held.pair, one.used_for, now) <= 0 for one in world.pairs
    )
    trusted = known if is_done else _trusted((*known, *_handed_out(world)), now)
    bundle = join(trusted, now)
    late = tuple(each for each in world.trusting if any(one != bundle for one in each.bundles))
    issues = tuple(
        IssuePair(one.held, authority, one.subject, why, bundle if one.bundle is not None else None)
        for one in world.pairs
        if (why := _reissue(world, one, authority, trusted, is_handed_out=not late))
    )
    # A Secret that is written with its pair gets the bundle by the same write.
    written = {(SECRET, each.held.key) for each in issues}
    patches = tuple(
        PatchBundle(each, bundle, "its bundle is not the current one")
        for each in late
        if (each.resource, each.key) not in written
    )
    return Plan((*issues, *patches), _rest(world, authority, trusted))


def _reissue(world: World, one: Issued, authority: KeyPair, trusted: tuple[bytes, ...], *, is_handed_out: bool) -> str:
    """Say why a pair is to be issued now, "" when it is not."""
    pair = one.held.pair
    if not _is_usable(pair):
        # Its holder goes on with the pair that it has loaded. If the bundles name another authority than this one, that
        # pair may be by it, and who is late with the new bundle still trusts it alone.
        is_by_this_one = set(_handed_out(world)) <= {authority.certificate}
        is_ready = is_by_this_one or (is_handed_out and world.bundles_for >= SETTLE_SECONDS)
        return "there is no usable pair" if is_ready else ""
    fault = _fault(one, trusted, world.now)
    if fault or not is_handed_out or _settles_in(authority, world.bundles_for, world.now) > 0:
        return fault
    if world.now >= life(pair.certificate).renew_at():
        return "the certificate is at four fifths of its life"
    if not is_issued_by(pair.certificate, authority.certificate):
        return "the certificate is by the former authority"
    return ""


def _fault(one: Issued, trusted: tuple[bytes, ...], now: float) -> str:
    """Say why the pair is of no use now, "" when it is."""
    pair = one.held.pair
    if not _is_usable(pair):
        return "there is no usable pair"
    if life(pair.certificate).is_over(now):
        return "the certificate has ended"
    if not is_of(pair.certificate, one.subject):
        return "the certificate is for other names or another role"
    if not any(is_issued_by(pair.certificate, authority) for authority in trusted):
        return "the certificate is by an authority that nobody trusts"
    return ""


def _is_usable(pair: KeyPair) -> bool:
    return bool(split(pair.certificate)) and belongs_together(pair)


def _handed_out(world: World) -> tuple[bytes, ...]:
    """Return what is trusted by anybody at the moment, each certificate once."""
    bundles = dict.fromkeys(bundle for verifier in world.trusting for bundle in verifier.bundles)
    return tuple(dict.fromkeys(one for bundle in bundles for one in split(bundle)))


def _trusted(certificates: Iterable[bytes], now: float) -> tuple[bytes, ...]:
    """Return those of living authorities, each once, in order."""
    living = (one for one in dict.fromkeys(certificates) if not life(one).is_over(now) and is_authority(one))
    return tuple(living)[:MOST_KEPT]


def _settles_in(pair: KeyPair, seen_for: float, now: float) -> float:
    """Return in how many seconds something has settled, 0 when it has: by our own eyes, and by its age.

    A leader that has just begun has seen nothing change; the age says what the one before it has just made.
    """
    age = now - life(pair.certificate).begins - SKEW.total_seconds()
    return max(0.0, SETTLE_SECONDS - seen_for, SETTLE_SECONDS - age)


def _rest(world: World, authority: KeyPair, trusted: tuple[bytes, ...]) -> float:
    """Return how long nothing falls due by time alone."""
    now = world.now
    moments = [life(authority.certificate).renew_at(), *(life(one).ends for one in trusted)]
    waits = [_settles_in(authority, world.bundles_for, now)]
    for one in world.pairs:
        pair = one.held.pair
        if _is_usable(pair):
            moments.append(life(pair.certificate).renew_at())
            waits.append(_settles_in(pair, one.used_for, now))
        else:
            waits.append(SETTLE_SECONDS - world.bundles_for)
    ahead = [left for left in (*waits, *(moment - now for moment in moments)) if left > 0]
    return min([LONGEST_REST_SECONDS, *(max(1.0, left) for left in ahead)])

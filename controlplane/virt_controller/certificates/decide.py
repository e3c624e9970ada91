# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is to be written about certificates, from what is there and the time. Pure; nobody's material makes it raise.

What is wrong with one of them by itself: faults.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from controlplane.api.objects.resources import SECRET, Key, Resource
from controlplane.tls.certificates import (
    KeyPair,
    Subject,
    UnusableKey,
    find_ca,
    is_ca,
    is_issued_by,
    join_bundle,
    split_bundle,
    validity,
)
from controlplane.virt_controller.certificates.faults import (
    SETTLE_SECONDS,
    due_at,
    fault,
    is_early,
    is_ours,
    is_usable,
    settles_in,
)

AUTHORITY_LIFE = timedelta(days=365)
PAIR_LIFE = timedelta(days=90)
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
    authority_for: float = math.inf
    """The same of the authority."""

    @property
    def trusting(self) -> tuple[Verifier, ...]:
        """Everybody who verifies somebody of ours: API servers, and the holders of pairs."""
        holders = (
            Verifier(SECRET, issued.held.key, issued.held.version, (issued.bundle,))
            for issued in self.pairs
            if issued.bundle is not None
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
    ends: float = 0.0
    """No sooner, even if that is a longer life than usual."""


@dataclass(frozen=True, slots=True)
class IssuePair:
    """Issue a pair by the current authority."""

    held: Held
    authority: KeyPair
    subject: Subject
    because: str
    bundle: bytes | None = None
    """To be written beside it."""
    ends: float = 0.0
    """No sooner, unless its authority ends."""


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
    requeue_after: float
    waiting: str = ""
    """What somebody put there that has to wait for its time."""


def decide(world: World) -> Plan:
    """Choose the writes.

    A missing Secret is made only while somebody verifies us: during a removal the verifiers go first, and nothing may
    come back after it.
    """
    missing = [held for held in (world.authority, *(issued.held for issued in world.pairs)) if not held.version]
    if missing:
        makes = tuple(MakeSecret(held.key, "it is missing") for held in missing if world.verifiers)
        return Plan(makes, LONGEST_REST_SECONDS)
    found = find_ca(world.authority.pair.certificate, world.authority.pair.key)
    if isinstance(found, UnusableKey):
        is_loss = world.authority.pair.key != b""
        return _replace_authority(world, f"there is no usable authority: {found.why}", is_loss=is_loss)
    namespace = world.authority.key.namespace
    if is_early(found.certificate, world.now) and is_ours(found.certificate, namespace):
        # However a clock swings, it makes no more than one in a while.
        if (rest := SETTLE_SECONDS - world.authority_for) > 0:
            return Plan((), rest)
        return _replace_authority(world, "the authority has not begun", ends=validity(found.certificate).ends)
    if world.now >= _authority_due_at(found.certificate, namespace):
        return _replace_authority(world, "the authority is at two thirds of its life time")
    return _keep(world, found)


def _replace_authority(world: World, why: str, *, is_loss: bool = False, ends: float = 0.0) -> Plan:
    held = world.authority
    keep = _trusted((*split_bundle(held.pair.certificate), *_handed_out(world)), world.now)
    return Plan((MakeAuthority(held, keep, why, is_loss, ends),), LONGEST_REST_SECONDS)


def _authority_due_at(certificate: bytes, namespace: str) -> float:
    """Return when to replace an authority; how long one lasts that somebody put there is his to choose."""
    if is_ours(certificate, namespace):
        return due_at(certificate, AUTHORITY_LIFE)
    return validity(certificate).renew_at()


def _keep(world: World, authority: KeyPair) -> Plan:
    """Choose the writes while there is an authority: first hand out the bundle, then issue by it."""
    now = world.now
    known = _trusted((authority.certificate, *split_bundle(world.authority.pair.certificate)), now)
    # An authority that was replaced by hand, or lost: what is in use may still be by the one before, which then is
    # known to the verifiers only.
    is_done = all(
        not fault(issued.held.pair, issued.subject, known, now)
        and settles_in(issued.held.pair, issued.used_for, now) <= 0
        for issued in world.pairs
    )
    trusted = known if is_done else _trusted((*known, *_handed_out(world)), now)
    bundle = join_bundle(trusted, now)
    late = tuple(
        verifier for verifier in world.trusting if any(certificate != bundle for certificate in verifier.bundles)
    )
    issues = tuple(
        IssuePair(
            issued.held,
            authority,
            issued.subject,
            why,
            bundle if issued.bundle is not None else None,
            _ends(issued, now),
        )
        for issued in world.pairs
        if (why := _reissue(world, issued, authority, trusted, is_handed_out=not late))
    )
    # A Secret that is written with its pair gets the bundle by the same write.
    written = {(SECRET, issued.held.key) for issued in issues}
    patches = tuple(
        PatchBundle(verifier, bundle, "its bundle is not the current one")
        for verifier in late
        if (verifier.resource, verifier.key) not in written
    )
    return Plan((*issues, *patches), _rest(world, authority, trusted), _waiting(authority, now))


def _waiting(authority: KeyPair, now: float) -> str:
    if not is_early(authority.certificate, now):
        return ""
    begins = datetime.fromtimestamp(validity(authority.certificate).begins, UTC)
    return f"the authority that somebody put there is not valid before {begins:%Y-%m-%dT%H:%M:%SZ}"


def _ends(one: Issued, now: float) -> float:
    """Return when the pair that takes this one's place ends at the soonest: whose clock is right is not known."""
    pair = one.held.pair
    return validity(pair.certificate).ends if is_usable(pair) and is_early(pair.certificate, now) else 0.0


def _reissue(world: World, one: Issued, authority: KeyPair, trusted: tuple[bytes, ...], *, is_handed_out: bool) -> str:
    """Say why a pair is to be issued now, "" when it is not."""
    pair, now = one.held.pair, world.now
    if not is_usable(pair):
        # Its holder goes on with the pair that it has loaded. If the bundles name another authority than this one, that
        # pair may be by it, and who is late with the new bundle still trusts it alone.
        is_by_this_one = set(_handed_out(world)) <= {authority.certificate}
        is_ready = is_by_this_one or (is_handed_out and world.bundles_for >= SETTLE_SECONDS)
        return "there is no usable pair" if is_ready else ""
    why = fault(pair, one.subject, trusted, now)
    if why or not is_handed_out or settles_in(authority, world.bundles_for, now) > 0:
        return why
    if is_early(pair.certificate, now):
        # Its holder goes on with the one before as long as that counts.
        return "the certificate has not begun" if one.used_for >= SETTLE_SECONDS else ""
    if now >= due_at(pair.certificate, PAIR_LIFE):
        return "the certificate is at two thirds of its life time"
    if not is_issued_by(pair.certificate, authority.certificate):
        return "the certificate is by the former authority"
    return ""


def _handed_out(world: World) -> tuple[bytes, ...]:
    """Return what is trusted by anybody at the moment, each certificate once."""
    bundles = dict.fromkeys(bundle for verifier in world.trusting for bundle in verifier.bundles)
    return tuple(dict.fromkeys(certificate for bundle in bundles for certificate in split_bundle(bundle)))


def _trusted(certificates: Iterable[bytes], now: float) -> tuple[bytes, ...]:
    """Return those of living authorities, each once, in order."""
    living = (
        certificate
        for certificate in dict.fromkeys(certificates)
        if not validity(certificate).is_over(now) and is_ca(certificate)
    )
    return tuple(living)[:MOST_KEPT]


def _rest(world: World, authority: KeyPair, trusted: tuple[bytes, ...]) -> float:
    """Return how long nothing falls due by time alone."""
    now = world.now
    moments = [_authority_due_at(authority.certificate, world.authority.key.namespace)]
    moments += [validity(certificate).ends for certificate in trusted]
    waits = [settles_in(authority, world.bundles_for, now)]
    for issued in world.pairs:
        pair = issued.held.pair
        if is_usable(pair):
            moments.append(due_at(pair.certificate, PAIR_LIFE))
            waits += (SETTLE_SECONDS - issued.used_for, settles_in(pair, issued.used_for, now))
        else:
            waits.append(SETTLE_SECONDS - world.bundles_for)
    ahead = [left for left in (*waits, *(moment - now for moment in moments)) if left > 0]
    return min([LONGEST_REST_SECONDS, *(max(1.0, left) for left in ahead)])

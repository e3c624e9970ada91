# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which certificates to write, from the observed state and the time. Pure. It raises for no content of a Secret.

faults checks a single certificate.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from controlplane.api.certificate_lifetimes import AUTHORITY, DEFAULTS, PAIR, Lifetime, Lifetimes
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

LONGEST_REST_SECONDS = 24 * 3600.0
MOST_KEPT = 16
"""Limit of certificates in a bundle, in case CAs are created again and again."""


@dataclass(frozen=True, slots=True)
class PairSecret:
    """A Secret with a key pair; empty bytes for missing data."""

    key: Key
    version: str
    """"" if the Secret does not exist."""
    pair: KeyPair


@dataclass(frozen=True, slots=True)
class Verifier:
    """An object whose caBundles decide whether the API server trusts our servers."""

    resource: Resource
    key: Key
    version: str
    bundles: tuple[bytes, ...]
    """PEM; one per hook of a webhook configuration."""


@dataclass(frozen=True, slots=True)
class Issued:
    """The Secret of a pair that our CA issues."""

    secret: PairSecret
    subject: Subject
    """The required subject of the pair."""
    bundle: bytes | None = None
    """PEM bundle that the pair's process trusts, in the same Secret; None if that process verifies no other process."""
    used_for: float = math.inf
    """Seconds since this process observed a change of the pair; inf without a change."""


@dataclass(frozen=True, slots=True)
class World:
    """The observed state."""

    authority: PairSecret
    pairs: tuple[Issued, ...]
    verifiers: tuple[Verifier, ...]
    """The existing webhook configurations and APIServices. Missing ones are not created."""
    now: float
    bundles_for: float = math.inf
    """Seconds since this process observed a change of a bundle; inf without a change."""
    authority_for: float = math.inf
    """The same for the CA."""
    lifetimes: Lifetimes = DEFAULTS

    @property
    def trusting(self) -> tuple[Verifier, ...]:
        """All verifiers of our certificates: the API servers, and the processes that hold a pair."""
        holders = (
            Verifier(SECRET, issued.secret.key, issued.secret.version, (issued.bundle,))
            for issued in self.pairs
            if issued.bundle is not None
        )
        return (*self.verifiers, *holders)


@dataclass(frozen=True, slots=True)
class MakeSecret:
    """Create a missing Secret, empty. A later pass fills it."""

    key: Key
    because: str


@dataclass(frozen=True, slots=True)
class MakeAuthority:
    """Create a new CA and keep these older ones in the bundle with it."""

    secret: PairSecret
    keep: tuple[bytes, ...]
    because: str
    is_loss: bool = False
    """It replaces unusable data that another client wrote into the Secret."""
    ends: float = 0.0
    """The earliest end of the new CA, even if its lifetime is then longer than usual."""
    lifetime: timedelta = AUTHORITY.duration


@dataclass(frozen=True, slots=True)
class IssuePair:
    """Issue a pair by the current CA."""

    secret: PairSecret
    authority: KeyPair
    subject: Subject
    because: str
    bundle: bytes | None = None
    """The bundle to write with the pair."""
    ends: float = 0.0
    """The earliest end of the new pair, unless its CA ends before."""
    lifetime: timedelta = PAIR.duration


@dataclass(frozen=True, slots=True)
class PatchBundle:
    """Write the whole bundle into a verifier."""

    verifier: Verifier
    bundle: bytes
    because: str


Action = MakeSecret | MakeAuthority | IssuePair | PatchBundle


@dataclass(frozen=True, slots=True)
class Plan:
    """The writes, and the seconds until the next pass if nothing changes before."""

    actions: tuple[Action, ...]
    requeue_after: float
    waiting: str = ""
    """Why a CA that an administrator wrote into the Secret is not used yet."""


def decide(world: World) -> Plan:
    """Choose the writes.

    A missing Secret is created only while a verifier exists: a removal deletes the verifiers first, and nothing may
    recreate the Secrets after it.
    """
    missing = [secret for secret in (world.authority, *(issued.secret for issued in world.pairs)) if not secret.version]
    if missing:
        actions = tuple(MakeSecret(secret.key, "it is missing") for secret in missing if world.verifiers)
        return Plan(actions, LONGEST_REST_SECONDS)
    ca = find_ca(world.authority.pair.certificate, world.authority.pair.key)
    if isinstance(ca, UnusableKey):
        is_loss = world.authority.pair.key != b""
        return _replace_authority(world, f"there is no usable CA: {ca.why}", is_loss=is_loss)
    namespace = world.authority.key.namespace
    if is_early(ca.certificate, world.now) and is_ours(ca.certificate, namespace):
        # A clock that jumps back and forth must not fill the bundle: at most one new CA per SETTLE_SECONDS.
        if (pause := SETTLE_SECONDS - world.authority_for) > 0:
            return Plan((), pause)
        return _replace_authority(world, "the CA is not valid yet", ends=validity(ca.certificate).ends)
    if world.now >= _authority_due_at(ca.certificate, namespace, world.lifetimes.authority):
        return _replace_authority(world, "the CA has reached the age at which it is replaced")
    return _keep(world, ca)


def _replace_authority(world: World, why: str, *, is_loss: bool = False, ends: float = 0.0) -> Plan:
    secret = world.authority
    keep = _trusted((*split_bundle(secret.pair.certificate), *_distributed(world)), world.now)
    lifetime = world.lifetimes.authority.duration
    return Plan((MakeAuthority(secret, keep, why, is_loss, ends, lifetime),), LONGEST_REST_SECONDS)


def _authority_due_at(certificate: bytes, namespace: str, usual: Lifetime) -> float:
    """Return when to replace a CA. A CA that an administrator wrote into the Secret keeps its own lifetime."""
    if is_ours(certificate, namespace):
        return due_at(certificate, usual)
    return validity(certificate).renew_at()


def _keep(world: World, authority: KeyPair) -> Plan:
    """Choose the writes while there is a CA: first distribute the bundle, then issue pairs."""
    now = world.now
    own = _trusted((authority.certificate, *split_bundle(world.authority.pair.certificate)), now)
    # An administrator may have replaced the CA, or it was lost. Then the former CA may have issued the pairs in use,
    # and only the verifiers' bundles still contain it.
    is_done = all(
        not fault(issued.secret.pair, issued.subject, own, now)
        and settles_in(issued.secret.pair, issued.used_for, now) <= 0
        for issued in world.pairs
    )
    trusted = own if is_done else _trusted((*own, *_distributed(world)), now)
    bundle = join_bundle(trusted, now)
    outdated = tuple(
        verifier for verifier in world.trusting if any(certificate != bundle for certificate in verifier.bundles)
    )
    issues = tuple(
        IssuePair(
            issued.secret,
            authority,
            issued.subject,
            why,
            bundle if issued.bundle is not None else None,
            _ends(issued, now),
            world.lifetimes.pair.duration,
        )
        for issued in world.pairs
        if (why := _reissue(world, issued, authority, trusted, is_distributed=not outdated))
    )
    # A Secret whose pair is written gets the bundle in the same write.
    written = {(SECRET, issued.secret.key) for issued in issues}
    patches = tuple(
        PatchBundle(verifier, bundle, "its bundle is not the current one")
        for verifier in outdated
        if (verifier.resource, verifier.key) not in written
    )
    return Plan((*issues, *patches), _rest(world, authority, trusted), _waiting(authority, now))


def _waiting(authority: KeyPair, now: float) -> str:
    if not is_early(authority.certificate, now):
        return ""
    begins = datetime.fromtimestamp(validity(authority.certificate).begins, UTC)
    return f"the CA in the Secret is not valid before {begins:%Y-%m-%dT%H:%M:%SZ}"


def _ends(issued: Issued, now: float) -> float:
    """Return the earliest end of the pair that replaces this one. It must be valid by both clocks (see faults)."""
    pair = issued.secret.pair
    return validity(pair.certificate).ends if is_usable(pair) and is_early(pair.certificate, now) else 0.0


def _reissue(
    world: World, issued: Issued, authority: KeyPair, trusted: tuple[bytes, ...], *, is_distributed: bool
) -> str:
    """Return why a pair has to be issued now; "" if it has not."""
    pair, now = issued.secret.pair, world.now
    if not is_usable(pair):
        # Its process keeps the pair that it has loaded. If the bundles contain another CA, that CA may have issued the
        # pair, and a verifier without the new bundle trusts only that CA.
        is_by_current_ca = set(_distributed(world)) <= {authority.certificate}
        is_ready = is_by_current_ca or (is_distributed and world.bundles_for >= SETTLE_SECONDS)
        return "there is no usable pair" if is_ready else ""
    why = fault(pair, issued.subject, trusted, now)
    if why or not is_distributed or settles_in(authority, world.bundles_for, now) > 0:
        return why
    if is_early(pair.certificate, now):
        # Its process keeps the former pair while that is valid. A clock that jumps must not cause a pair each time.
        return "the certificate is not valid yet" if issued.used_for >= SETTLE_SECONDS else ""
    if now >= due_at(pair.certificate, world.lifetimes.pair):
        return "the certificate has reached the age at which it is replaced"
    if not is_issued_by(pair.certificate, authority.certificate):
        return "the former CA issued the certificate"
    return ""


def _distributed(world: World) -> tuple[bytes, ...]:
    """Return all certificates that verifiers trust now, each once."""
    bundles = dict.fromkeys(bundle for verifier in world.trusting for bundle in verifier.bundles)
    return tuple(dict.fromkeys(certificate for bundle in bundles for certificate in split_bundle(bundle)))


def _trusted(certificates: Iterable[bytes], now: float) -> tuple[bytes, ...]:
    """Return the certificates of CAs that have not ended, each once, in order, at most MOST_KEPT."""
    current = (
        certificate
        for certificate in dict.fromkeys(certificates)
        if not validity(certificate).is_over(now) and is_ca(certificate)
    )
    return tuple(current)[:MOST_KEPT]


def _rest(world: World, authority: KeyPair, trusted: tuple[bytes, ...]) -> float:
    """Return the seconds until a certificate or a pause ends: no event reports that."""
    now = world.now
    due_times = [_authority_due_at(authority.certificate, world.authority.key.namespace, world.lifetimes.authority)]
    due_times += [validity(certificate).ends for certificate in trusted]
    waits = [settles_in(authority, world.bundles_for, now)]
    for issued in world.pairs:
        pair = issued.secret.pair
        if is_usable(pair):
            due_times.append(due_at(pair.certificate, world.lifetimes.pair))
            waits += (SETTLE_SECONDS - issued.used_for, settles_in(pair, issued.used_for, now))
        else:
            waits.append(SETTLE_SECONDS - world.bundles_for)
    pauses = [seconds for seconds in (*waits, *(due_time - now for due_time in due_times)) if seconds > 0]
    return min([LONGEST_REST_SECONDS, *(max(1.0, seconds) for seconds in pauses)])

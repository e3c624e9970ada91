# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is to be written about certificates, from what is there and the time. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from controlplane.api.objects.resources import Key, Resource
from controlplane.kube.certificates import (
    SKEW,
    KeyPair,
    belongs_together,
    dns_names,
    is_issued_by,
    join,
    life,
    split,
)

AUTHORITY_LIFE = timedelta(days=365)
SERVING_LIFE = timedelta(days=90)

# How long a bundle has been with everybody before something is served that needs it: API servers
# learn of a new one by watch, in seconds.
SETTLE_SECONDS = 60.0
LONGEST_REST_SECONDS = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class Held:
    """A Secret with a key pair; empty bytes where it holds nothing."""

    key: Key
    version: str
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
class World:
    """All that counts."""

    authority: Held | None
    serving: Held | None
    verifiers: tuple[Verifier, ...]
    """Those that exist; one that is missing is not ours to create."""
    names: tuple[str, ...]
    """DNS names that the serving pair must be for."""
    now: float


@dataclass(frozen=True, slots=True)
class MakeAuthority:
    """Make a new authority and keep these older ones beside it in the bundle."""

    held: Held
    keep: tuple[bytes, ...]
    because: str


@dataclass(frozen=True, slots=True)
class IssueServing:
    """Issue a serving pair by the current authority."""

    held: Held
    authority: KeyPair
    names: tuple[str, ...]
    because: str


@dataclass(frozen=True, slots=True)
class PatchBundle:
    """Let a verifier trust the whole bundle."""

    verifier: Verifier
    bundle: bytes
    because: str


Action = MakeAuthority | IssueServing | PatchBundle


@dataclass(frozen=True, slots=True)
class Plan:
    """Writes, and when to look again if nothing changes before."""

    actions: tuple[Action, ...]
    look_again_in: float


def decide(world: World) -> Plan:
    """Choose the writes. Without the Secrets there is nothing to do but wait for the role to make them."""
    held, now = world.authority, world.now
    if held is None:
        return Plan((), LONGEST_REST_SECONDS)
    known = split(held.pair.certificate)
    why = _authority_problem(held, known, now)
    if why:
        return Plan((MakeAuthority(held, _living(known, now), why),), LONGEST_REST_SECONDS)
    authority = KeyPair(known[0], held.pair.key)
    bundle = join(known, now)
    patches = tuple(
        PatchBundle(verifier, bundle, "its bundle is not the current one")
        for verifier in world.verifiers
        if any(one != bundle for one in verifier.bundles)
    )
    is_settled = not patches and now >= _settled_at(known[0])
    issue = _serving(world, authority, known, is_settled=is_settled)
    return Plan((*issue, *patches), _rest(world, known, is_settled=is_settled))


def _authority_problem(held: Held, known: list[bytes], now: float) -> str:
    if not known or not belongs_together(KeyPair(known[0], held.pair.key)):
        return "there is no usable authority"
    if now >= life(known[0]).renew_at():
        return "the authority is at four fifths of its life"
    return ""


def _serving(world: World, authority: KeyPair, known: list[bytes], *, is_settled: bool) -> tuple[IssueServing, ...]:
    held = world.serving
    if held is None:
        return ()
    why = _serving_fault(held.pair, world, _living(known, world.now))
    if not why and is_settled:
        why = _serving_due(held.pair, authority, world.now)
    return (IssueServing(held, authority, world.names, why),) if why else ()


def _serving_fault(pair: KeyPair, world: World, trusted: tuple[bytes, ...]) -> str:
    """Say why the pair cannot be served with now, "" when it can."""
    if not belongs_together(pair):
        return "there is no usable serving pair"
    if life(pair.certificate).is_over(world.now):
        return "the serving certificate has ended"
    if set(dns_names(pair.certificate)) != set(world.names):
        return "the serving certificate is for other names"
    if not any(is_issued_by(pair.certificate, one) for one in trusted):
        return "the serving certificate is by an authority that nobody trusts"
    return ""


def _serving_due(pair: KeyPair, authority: KeyPair, now: float) -> str:
    if now >= life(pair.certificate).renew_at():
        return "the serving certificate is at four fifths of its life"
    if not is_issued_by(pair.certificate, authority.certificate):
        return "the serving certificate is by the former authority"
    return ""


def _settled_at(authority: bytes) -> float:
    return life(authority).begins + SKEW.total_seconds() + SETTLE_SECONDS


def _living(known: list[bytes], now: float) -> tuple[bytes, ...]:
    return tuple(one for one in known if not life(one).is_over(now))


def _rest(world: World, known: list[bytes], *, is_settled: bool) -> float:
    """Return how long nothing falls due by time alone."""
    moments = [life(known[0]).renew_at(), *(life(one).ends for one in known[1:])]
    if world.serving is not None and belongs_together(world.serving.pair):
        moments.append(life(world.serving.pair.certificate).renew_at())
    if not is_settled:
        moments.append(_settled_at(known[0]))
    ahead = [moment - world.now for moment in moments if moment > world.now]
    return min([LONGEST_REST_SECONDS, *(max(1.0, left) for left in ahead)])

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates over years, as a table and in a toy world: peers trust what is served at every moment."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import NameOID

from controlplane.api.certificate_lifetimes import AUTHORITY, PAIR, Lifetime, Lifetimes
from controlplane.api.objects.resources import SECRET, Key, Resource
from controlplane.tls.certificates import (
    KeyPair,
    is_for_subject,
    is_issued_by,
    is_key_pair,
    issue,
    join_bundle,
    make_ca,
    split_bundle,
    validity,
)
from controlplane.virt_controller.certificates.apply import apply
from controlplane.virt_controller.certificates.decide import (
    MOST_KEPT,
    SETTLE_SECONDS,
    Issued,
    IssuePair,
    MakeAuthority,
    MakeSecret,
    PairSecret,
    PatchBundle,
    Plan,
    Verifier,
    World,
    decide,
)
from controlplane.virt_controller.certificates.observe import VERIFIERS, observe, secrets
from controlplane.virt_controller.certificates.observed_since import ObservedSince, with_ages
from controlplane.virt_controller.certificates.roles import ROLES, subject
from tests.controlplane.kube.virtual import MemoryApi

NOW = 1_750_000_000.0
DAY = 86400.0
SUBJECT = subject(ROLES[0], "kubevirt")
NAMES = SUBJECT.dns_names
EMPTY = KeyPair(b"", b"")
CA_KEY, SERVING_KEY, *PEER_KEYS = (key for _unused, key in secrets("kubevirt"))
RESOURCE, NAME = VERIFIERS[2]


def an_authority(age: float = 3600.0) -> KeyPair:
    return make_ca("ca", NOW - age, AUTHORITY.duration)


def a_serving(authority: KeyPair, age: float = 3600.0, names: tuple[str, ...] = NAMES) -> KeyPair:
    return issue(authority, replace(SUBJECT, dns_names=names), NOW - age, PAIR.duration)


def by_hand(key: Any = None, *, is_ca: bool | None = True, may_sign: bool = True) -> KeyPair:
    """An authority created by hand: any key, valid for some days already, with an arbitrary key identifier."""
    key = key or ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "by hand")])
    begins = datetime.fromtimestamp(NOW - 7 * DAY, UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 7, begins, begins + timedelta(days=3650))
    builder = builder.add_extension(x509.SubjectKeyIdentifier(b"mine"), critical=False)
    if is_ca is not None:
        builder = builder.add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
    if not may_sign:
        names = "content_commitment key_encipherment data_encipherment key_agreement key_cert_sign crl_sign"
        others = dict.fromkeys([*names.split(), "encipher_only", "decipher_only"], False)
        builder = builder.add_extension(x509.KeyUsage(digital_signature=True, **others), critical=True)
    edwards = isinstance(key, ed25519.Ed25519PrivateKey | ed448.Ed448PrivateKey)
    made = builder.sign(key, None if edwards else hashes.SHA256())
    return KeyPair(made.public_bytes(PEM), key.private_bytes(PEM, PrivateFormat.PKCS8, NoEncryption()))


PEM = Encoding.PEM
KINDS: dict[str, Callable[[], Any]] = {
    "RSA": lambda: rsa.generate_private_key(65537, 2048),
    "P-256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "P-521": lambda: ec.generate_private_key(ec.SECP521R1()),
    "Ed25519": ed25519.Ed25519PrivateKey.generate,
}


def encrypted(key: bytes) -> bytes:
    loaded = load_pem_private_key(key, None)
    return loaded.private_bytes(PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret"))


def a_world(authority: KeyPair, serving: KeyPair, *bundles: bytes) -> World:
    return World(
        PairSecret(CA_KEY, "1", authority),
        (Issued(PairSecret(SERVING_KEY, "2", serving), SUBJECT),),
        (Verifier(RESOURCE, NAME, "3", bundles),),
        NOW,
    )


def with_pair(world: World, **changed: Any) -> World:
    return replace(world, pairs=(replace(world.pairs[0], **changed),))


def test_a_healthy_state_needs_no_writes() -> None:
    authority = an_authority()

    plan = decide(a_world(authority, a_serving(authority), authority.certificate))

    assert plan.actions == ()
    assert plan.requeue_after > 3600


def test_a_shorter_lifetime_replaces_a_ca_and_a_pair_that_are_too_old_by_it() -> None:
    two_days, one_day = Lifetime(timedelta(days=2), 0.5), Lifetime(timedelta(days=1), 0.5)
    shorter = Lifetimes(authority=two_days, pair=one_day)
    for age, kind, lifetime in ((1.1, MakeAuthority, two_days), (0.6, IssuePair, one_day)):
        authority = make_ca("kubevirt-ca", NOW - age * DAY, AUTHORITY.duration)
        world = a_world(authority, a_serving(authority, age * DAY), authority.certificate)
        assert decide(world).actions == ()

        (action,) = decide(replace(world, lifetimes=shorter)).actions
        assert isinstance(action, kind)
        assert action.lifetime == lifetime.duration


def test_a_requeue_is_at_least_one_second_away() -> None:
    authority = an_authority()
    settling = replace(
        a_world(authority, a_serving(authority), authority.certificate), bundles_for=SETTLE_SECONDS - 0.01
    )

    assert decide(settling).requeue_after == 1.0


MISSING = (PairSecret(CA_KEY, "", EMPTY), PairSecret(SERVING_KEY, "", EMPTY))


def test_missing_secrets_are_created_empty_before_anything_else() -> None:
    world = a_world(EMPTY, EMPTY, an_authority().certificate)

    both = decide(with_pair(replace(world, authority=MISSING[0]), secret=MISSING[1]))
    partial = decide(with_pair(world, secret=MISSING[1]))

    assert [action.key for action in both.actions if isinstance(action, MakeSecret)] == [CA_KEY, SERVING_KEY]
    assert [action.key for action in partial.actions if isinstance(action, MakeSecret)] == [SERVING_KEY]
    assert len(partial.actions) == 1


def test_nothing_is_recreated_once_there_are_no_verifiers() -> None:
    """A removal deletes the verifiers first, then the Secrets."""
    assert decide(World(MISSING[0], (Issued(MISSING[1], SUBJECT),), (), NOW)).actions == ()


def test_a_lost_authority_is_replaced_and_the_bundles_name_the_one_to_keep() -> None:
    old = an_authority()

    (action,) = decide(a_world(EMPTY, a_serving(old), old.certificate, old.certificate)).actions

    assert isinstance(action, MakeAuthority)
    assert action.keep == (old.certificate,)
    assert not action.is_loss


@pytest.mark.parametrize(
    ("spoil", "because"),
    [
        pytest.param(lambda ca: KeyPair(b"garbage", b"garbage"), "cannot be read", id="garbage"),
        pytest.param(lambda ca: KeyPair(b"\xff\x00", ca.key), "no certificate can be read", id="bytes"),
        pytest.param(lambda ca: KeyPair(ca.certificate, ca.key[:90]), "cannot be read", id="half a key"),
        pytest.param(lambda ca: KeyPair(ca.certificate, ca.certificate), "cannot be read", id="certificate for a key"),
        pytest.param(lambda ca: KeyPair(ca.certificate[:-40], ca.key), "no certificate can be read", id="half of one"),
        pytest.param(lambda ca: KeyPair(ca.certificate, encrypted(ca.key)), "is encrypted", id="encrypted"),
        pytest.param(
            lambda ca: KeyPair(ca.certificate, an_authority().key), "for none of the certificates", id="other key"
        ),
        pytest.param(lambda ca: by_hand(rsa.generate_private_key(65537, 1024)), "do not verify", id="short RSA"),
        pytest.param(lambda ca: by_hand(ec.generate_private_key(ec.SECP256K1())), "do not verify", id="odd curve"),
        pytest.param(lambda ca: by_hand(ed448.Ed448PrivateKey.generate()), "do not verify", id="Ed448"),
        pytest.param(lambda ca: by_hand(is_ca=False), "not one of an authority", id="leaf"),
        pytest.param(lambda ca: by_hand(is_ca=None), "not one of an authority", id="says nothing"),
        pytest.param(lambda ca: by_hand(may_sign=False), "not one of an authority", id="may not sign"),
    ],
)
def test_an_unusable_authority_is_replaced_and_the_served_certificate_stays_trusted(
    spoil: Callable[[KeyPair], KeyPair], because: str
) -> None:
    """Each of these once ended the leader."""
    old = an_authority()

    (action,) = decide(a_world(spoil(old), a_serving(old), old.certificate)).actions

    assert isinstance(action, MakeAuthority)
    assert because in action.because
    assert action.keep == (old.certificate,)
    assert action.is_loss
    assert "BEGIN" not in action.because


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_an_authority_created_by_hand_is_used_once_the_bundle_has_settled(kind: Callable[[], Any]) -> None:
    old, new = an_authority(), by_hand(kind())
    world = a_world(new, a_serving(old), old.certificate)

    (action,) = decide(world).actions
    assert isinstance(action, PatchBundle)
    assert split_bundle(action.bundle) == [new.certificate, old.certificate]

    both = replace(world, verifiers=(replace(world.verifiers[0], bundles=(action.bundle,)),))
    assert decide(replace(both, bundles_for=0.0)).actions == ()
    assert decide(replace(both, bundles_for=0.0)).requeue_after <= SETTLE_SECONDS
    (action,) = decide(replace(both, bundles_for=SETTLE_SECONDS)).actions
    assert isinstance(action, IssuePair)
    issued = issue(action.authority, action.subject, NOW, PAIR.duration)

    served = with_pair(both, secret=PairSecret(SERVING_KEY, "4", issued))
    assert decide(with_pair(served, used_for=0.0)).actions == (), "virt-api may still serve the old pair"
    later = replace(served, now=NOW + SETTLE_SECONDS)
    assert decide(with_pair(later, used_for=0.0)).actions == ()
    (action,) = decide(with_pair(later, used_for=SETTLE_SECONDS)).actions
    assert isinstance(action, PatchBundle)
    assert split_bundle(action.bundle) == [new.certificate]


def test_a_chain_in_unusual_order_uses_the_certificate_that_matches_the_key() -> None:
    other, ours = an_authority(), an_authority()
    chain = KeyPair(other.certificate + b"\n# a comment\n" + ours.certificate, ours.key)

    (action,) = decide(a_world(chain, a_serving(ours), b"")).actions

    assert isinstance(action, PatchBundle)
    assert split_bundle(action.bundle) == [ours.certificate, other.certificate]


@pytest.mark.parametrize(
    ("bundles", "bundles_for", "expected"),
    [
        pytest.param(lambda ca, old: b"", 0.0, [IssuePair, PatchBundle], id="installation"),
        pytest.param(lambda ca, old: ca, 0.0, [IssuePair], id="installed just now"),
        pytest.param(lambda ca, old: old, math.inf, [PatchBundle], id="not distributed"),
        pytest.param(lambda ca, old: ca + old, 0.0, [], id="just distributed"),
        pytest.param(lambda ca, old: ca + old, SETTLE_SECONDS, [IssuePair], id="settled"),
        pytest.param(lambda ca, old: ca + old, math.inf, [IssuePair], id="no change observed"),
    ],
)
def test_a_lost_serving_pair_waits_for_the_bundle_while_a_verifier_trusts_the_served_one(
    bundles: Callable[[bytes, bytes], bytes], bundles_for: float, expected: list[type]
) -> None:
    old, new = an_authority(), an_authority()
    world = a_world(new, EMPTY, bundles(new.certificate, old.certificate))

    plan = decide(replace(world, bundles_for=bundles_for))

    assert [type(action) for action in plan.actions] == expected
    assert plan.requeue_after > 0


def test_a_bundle_has_a_limited_size() -> None:
    many = b"".join(an_authority().certificate for _unused in range(MOST_KEPT + 3))

    (action,) = decide(a_world(EMPTY, EMPTY, many)).actions

    assert isinstance(action, MakeAuthority)
    assert len(action.keep) == MOST_KEPT


def test_expired_authorities_displace_no_valid_ones_from_a_bundle() -> None:
    dead = [an_authority(age=AUTHORITY.duration.total_seconds() + 1).certificate for _unused in range(MOST_KEPT)]
    living = an_authority().certificate

    (action,) = decide(a_world(EMPTY, EMPTY, b"".join([*dead, living]))).actions

    assert isinstance(action, MakeAuthority)
    assert action.keep == (living,)


def test_an_authority_at_two_thirds_of_its_lifetime_is_joined_by_a_new_one() -> None:
    old = an_authority(age=0.81 * AUTHORITY.duration.total_seconds())

    (action,) = decide(a_world(old, a_serving(old, age=0), old.certificate)).actions

    assert isinstance(action, MakeAuthority)
    assert action.keep == (old.certificate,)


def test_a_serving_pair_of_the_old_authority_is_kept_until_the_bundle_has_settled() -> None:
    old = an_authority()
    new = an_authority(age=0)
    both = KeyPair(new.certificate + old.certificate, new.key)
    world = a_world(both, a_serving(old), join_bundle(split_bundle(both.certificate), NOW))

    plan = decide(world)
    assert plan.actions == ()
    assert plan.requeue_after <= SETTLE_SECONDS

    later = replace(world, now=NOW + SETTLE_SECONDS)
    (action,) = decide(later).actions
    assert isinstance(action, IssuePair)
    assert action.authority.certificate == new.certificate


@pytest.mark.parametrize(
    ("pair", "because"),
    [
        (lambda ca: EMPTY, "no usable"),
        (lambda ca: KeyPair(a_serving(ca).certificate, a_serving(ca).key), "no usable"),
        (lambda ca: a_serving(an_authority()), "untrusted"),
        (lambda ca: a_serving(ca, names=("other.svc",)), "other names"),
        (lambda ca: a_serving(ca, age=PAIR.duration.total_seconds() + 1), "has expired"),
        (lambda ca: a_serving(ca, age=0.81 * PAIR.duration.total_seconds()), "the age at which"),
    ],
    ids=["none", "wrong key", "foreign", "other names", "ended", "due"],
)
def test_an_unsuitable_serving_pair_is_reissued(pair: Any, because: str) -> None:
    authority = an_authority()

    (action,) = decide(a_world(authority, pair(authority), authority.certificate)).actions

    assert isinstance(action, IssuePair)
    assert because in action.because
    assert action.ends == 0.0, "it has the usual lifetime"


def test_an_expired_authority_leaves_the_bundle() -> None:
    new, dead = an_authority(), an_authority(age=AUTHORITY.duration.total_seconds() + 1)
    both = KeyPair(new.certificate + dead.certificate, new.key)

    (action,) = decide(a_world(both, a_serving(new), both.certificate)).actions

    assert isinstance(action, PatchBundle)
    assert split_bundle(action.bundle) == [new.certificate]


LATE_SECONDS = SETTLE_SECONDS - 5


def counts(certificate: bytes, now: float) -> bool:
    return validity(certificate).begins <= now < validity(certificate).ends


@dataclass
class Toy:
    """Objects in memory, caches on them, processes that use what they have loaded, and a clock."""

    api: MemoryApi = field(default_factory=MemoryApi)
    now: float = NOW
    ahead: float = 0.0
    """Seconds by which the leader's clock is ahead of all others."""
    observed_since: ObservedSince = field(default_factory=ObservedSince)
    used: dict[Key, bytes] = field(default_factory=dict)
    """For each Secret, the certificate that virt-api and the virt-handlers use: the last valid one by their clock."""
    recently_served: dict[bytes, float] = field(default_factory=dict)
    recently_trusted: dict[bytes, float] = field(default_factory=dict)
    """The time when each was last current."""

    async def create(self) -> None:
        for resource, key in secrets("kubevirt"):
            await self.api.create(resource, key.namespace, {"metadata": {"name": key.name, "namespace": key.namespace}})
        for resource, key in VERIFIERS:
            body: dict[str, Any] = {"metadata": {"name": key.name}}
            if resource.plural == "apiservices":
                body["spec"] = {"service": {"name": "virt-api"}}
            else:
                body["webhooks"] = [{"name": name, "clientConfig": {"service": {"name": "virt-api"}}} for name in "ab"]
            await self.api.create(resource, "", body)

    def caches(self) -> list[tuple[Resource, Key, Any]]:
        return [(resource, key, _Reader(self.api, resource)) for resource, key in (*secrets("kubevirt"), *VERIFIERS)]

    def plan(self) -> Plan:
        world = observe(self.caches(), "kubevirt", self.now + self.ahead)
        return decide(with_ages(world, self.observed_since, self.now))

    async def settle(self) -> int:
        """Apply plans until one is empty; return the number of writes."""
        writes = 0
        while (plan := self.plan()).actions:
            for action in plan.actions:
                await apply(self.api, action, self.now + self.ahead)
                writes += 1
                self.check()
            assert writes < 50
        return writes

    async def live(self, seconds: float) -> int:
        """Let time pass and run whatever is due; return the number of writes."""
        end, writes = self.now + seconds, await self.settle()
        while self.now < end:
            self.now = min(end, self.now + self.plan().requeue_after)
            self.check()
            writes += await self.settle()
        return writes

    def data(self, key: Key, name: str) -> bytes:
        return base64.b64decode(self.api.objects["secrets", key].get("data", {}).get(name, ""))

    def distributed(self) -> set[bytes]:
        world = observe(self.caches(), "kubevirt", self.now)
        return {
            certificate
            for verifier in world.trusting
            for bundle in verifier.bundles
            for certificate in split_bundle(bundle)
        }

    def check(self) -> None:
        """Every verifier trusts every served certificate, including verifiers that learn of changes LATE_SECONDS
        later.
        """
        world = observe(self.caches(), "kubevirt", self.now)
        for issued in world.pairs:
            new, used = issued.secret.pair.certificate, self.used.get(issued.secret.key)
            if is_key_pair(issued.secret.pair) and (
                used is None or counts(new, self.now) or not counts(used, self.now)
            ):
                self.used[issued.secret.key] = new
        self.recently_served |= dict.fromkeys(self.used.values(), self.now)
        for verifier in world.trusting:
            self.recently_trusted |= dict.fromkeys(filter(None, verifier.bundles), self.now)
        for recent in (self.recently_served, self.recently_trusted):
            for stale in [stale for stale, last in recent.items() if last < self.now - LATE_SECONDS]:
                del recent[stale]
        for bundle, served in product(self.recently_trusted, self.recently_served):
            assert counts(served, self.now)
            assert any(
                is_issued_by(served, certificate)
                for certificate in split_bundle(bundle)
                if counts(certificate, self.now)
            )


class _Reader:
    """A cache that is never stale."""

    def __init__(self, api: MemoryApi, resource: Resource) -> None:
        self._api = api
        self._resource = resource

    def get(self, key: Key) -> bytes | None:

        body = self._api.objects.get((self._resource.plural, key))
        return msgspec.json.encode(body) if body is not None else None


async def test_after_the_installation_every_verifier_trusts_the_serving_pair() -> None:
    toy = Toy()
    await toy.create()

    assert await toy.settle() == 1 + len(ROLES) + len(VERIFIERS)
    assert await toy.settle() == 0

    for role, key in zip(ROLES, (SERVING_KEY, *PEER_KEYS), strict=True):
        pair = KeyPair(toy.data(key, "tls.crt"), toy.data(key, "tls.key"))
        assert is_key_pair(pair)
        assert is_for_subject(pair.certificate, subject(role, "kubevirt"))
        assert toy.data(key, "ca.crt") == (toy.data(CA_KEY, "ca.crt") if role.trusts else b"")
    hooks = toy.api.objects["mutatingwebhookconfigurations", VERIFIERS[0][1]]["webhooks"]
    assert [hook["name"] for hook in hooks] == ["a", "b"]
    assert all(hook["clientConfig"]["service"] for hook in hooks)


async def test_two_years_pass_without_a_loss_of_trust() -> None:
    toy = Toy()
    await toy.create()
    writes, authorities, end = 0, set(), NOW + 2 * 365 * DAY

    while toy.now < end:
        writes += await toy.live(28 * DAY)
        authorities.add(split_bundle(toy.data(CA_KEY, "ca.crt"))[0])
        assert not any(validity(value).is_over(toy.now) for value in toy.used.values())

    assert 3 <= len(authorities) <= 4
    assert writes < 60 + 15 * len(PEER_KEYS)


SECRETS = {
    "the authority": (CA_KEY,),
    "the serving pair": (SERVING_KEY,),
    "both": (CA_KEY, SERVING_KEY),
    "a peer's": (PEER_KEYS[0],),
    "all": (CA_KEY, SERVING_KEY, *PEER_KEYS),
}


@pytest.mark.parametrize(
    ("lose", "which"),
    [
        *product(["deleted", "emptied", "garbage"], ["all", "the authority"]),
        *(("deleted", "a peer's"), ("emptied", "both"), ("garbage", "the serving pair")),
    ],
)
async def test_a_lost_secret_is_recreated_without_a_loss_of_trust(lose: str, which: str) -> None:
    keys = SECRETS[which]
    toy = Toy()
    await toy.create()
    await toy.live(30 * DAY)
    (old,) = split_bundle(toy.data(CA_KEY, "ca.crt"))

    for key in keys:
        match lose:
            case "deleted":
                await toy.api.delete(SECRET, key)
            case "emptied":
                await toy.api.patch(SECRET, key, {"data": None})
            case _:
                await toy.api.patch(SECRET, key, {"data": {"ca.key": "Z2FyYmFnZQ==", "tls.key": "Z2FyYmFnZQ=="}})
    await toy.live(3600)

    serving = KeyPair(toy.data(SERVING_KEY, "tls.crt"), toy.data(SERVING_KEY, "tls.key"))
    bundle = split_bundle(toy.data(CA_KEY, "ca.crt"))
    assert is_key_pair(serving)
    assert all(is_issued_by(value, bundle[0]) for value in toy.used.values())
    assert old in bundle
    assert (bundle[0] == old) == (CA_KEY not in keys)
    assert old in toy.distributed()


async def test_an_authority_replaced_by_hand_takes_over_without_a_loss_of_trust_and_displaces_the_old_one() -> None:
    toy = Toy()
    await toy.create()
    await toy.live(30 * DAY)

    mine = by_hand(rsa.generate_private_key(65537, 2048))
    data = {"ca.crt": base64.b64encode(mine.certificate).decode(), "ca.key": base64.b64encode(mine.key).decode()}
    await toy.api.patch(SECRET, CA_KEY, {"data": data})
    await toy.live(3600)

    assert all(is_issued_by(value, mine.certificate) for value in toy.used.values())
    assert toy.data(CA_KEY, "ca.key") == mine.key
    assert toy.distributed() == {mine.certificate}


async def test_a_configuration_without_hooks_stays_unchanged() -> None:
    toy = Toy()
    await toy.create()
    await toy.api.patch(VERIFIERS[0][0], VERIFIERS[0][1], {"webhooks": []})
    await toy.settle()

    assert await toy.settle() == 0


@pytest.mark.parametrize("bundles", [[0.0], [SETTLE_SECONDS]], ids=["just now", "settled"])
def test_a_pair_of_a_new_authority_is_issued_once_its_peers_have_the_bundle_too(bundles: list[float]) -> None:
    """API servers may have it while virt-handlers do not."""
    old, new = an_authority(), by_hand()
    both = join_bundle([new.certificate, old.certificate], NOW)
    world = a_world(new, a_serving(old), both)
    peer = replace(world.pairs[0], bundle=old.certificate)

    (action,) = decide(replace(world, pairs=(peer,), bundles_for=bundles[0])).actions

    assert isinstance(action, PatchBundle)
    assert (action.verifier.resource, action.bundle) == (SECRET, both)
    patched = decide(replace(world, pairs=(replace(peer, bundle=both),), bundles_for=bundles[0]))
    assert [type(step) for step in patched.actions] == ([IssuePair] if bundles[0] else [])


def test_a_pair_and_its_bundle_are_one_write() -> None:
    """Two writes would conflict with each other."""
    authority = an_authority()
    world = a_world(authority, EMPTY, authority.certificate)

    (action,) = decide(with_pair(world, bundle=b"")).actions

    assert isinstance(action, IssuePair)
    assert action.bundle == authority.certificate

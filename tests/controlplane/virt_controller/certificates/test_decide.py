# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stories over years, in a table and in a toy world: no moment at which somebody does not trust what is served."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from controlplane.api.objects.resources import SECRET, Key, Resource
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
from controlplane.virt_controller.certificates.apply import apply
from controlplane.virt_controller.certificates.decide import (
    AUTHORITY_LIFE,
    SERVING_LIFE,
    SETTLE_SECONDS,
    Held,
    IssueServing,
    MakeAuthority,
    PatchBundle,
    Plan,
    Verifier,
    World,
    decide,
)
from controlplane.virt_controller.certificates.observe import VERIFIERS, observe, secrets, serving_names
from tests.controlplane.kube.virtual import MemoryApi

NOW = 1_750_000_000.0
DAY = 86400.0
NAMES = serving_names("kubevirt")
EMPTY = KeyPair(b"", b"")
CA_KEY, SERVING_KEY = (key for _unused, key in secrets("kubevirt"))
RESOURCE, NAME = VERIFIERS[2]


def an_authority(age: float = 3600.0) -> KeyPair:
    return make_authority("ca", NOW - age, AUTHORITY_LIFE)


def a_serving(authority: KeyPair, age: float = 3600.0, names: tuple[str, ...] = NAMES) -> KeyPair:
    return issue_server(authority, names, NOW - age, SERVING_LIFE)


def a_world(authority: KeyPair, serving: KeyPair, *bundles: bytes) -> World:
    return World(
        Held(CA_KEY, "1", authority),
        Held(SERVING_KEY, "2", serving),
        (Verifier(RESOURCE, NAME, "3", bundles),),
        NAMES,
        NOW,
    )


def test_nothing_is_written_when_all_is_well() -> None:
    authority = an_authority()

    plan = decide(a_world(authority, a_serving(authority), authority.certificate))

    assert plan.actions == ()
    assert plan.look_again_in > 3600


def test_without_the_roles_secrets_there_is_nothing_to_do() -> None:
    assert decide(World(None, None, (), NAMES, NOW)).actions == ()


def test_an_empty_secret_is_filled() -> None:
    (action,) = decide(a_world(EMPTY, EMPTY, b"")).actions

    assert isinstance(action, MakeAuthority)
    assert action.keep == ()


def test_a_key_that_is_not_the_certificates_makes_a_new_authority_and_keeps_trust_in_the_old() -> None:
    old = an_authority()

    (action,) = decide(a_world(KeyPair(old.certificate, an_authority().key), a_serving(old), b"")).actions

    assert isinstance(action, MakeAuthority)
    assert action.keep == (old.certificate,)


def test_an_authority_at_four_fifths_of_its_life_is_joined_by_a_new_one() -> None:
    old = an_authority(age=0.81 * AUTHORITY_LIFE.total_seconds())

    (action,) = decide(a_world(old, a_serving(old, age=0), old.certificate)).actions

    assert isinstance(action, MakeAuthority)
    assert action.keep == (old.certificate,)


def test_a_new_bundle_is_handed_out_before_anything_is_served_by_it() -> None:
    new, old = an_authority(age=SETTLE_SECONDS * 10), an_authority()
    both = KeyPair(new.certificate + old.certificate, new.key)

    (action,) = decide(a_world(both, a_serving(old), old.certificate)).actions

    assert isinstance(action, PatchBundle)
    assert split(action.bundle) == [new.certificate, old.certificate]


def test_a_serving_pair_of_the_old_authority_is_kept_until_the_bundle_has_settled() -> None:
    old = an_authority()
    new = an_authority(age=0)
    both = KeyPair(new.certificate + old.certificate, new.key)
    world = a_world(both, a_serving(old), join(split(both.certificate), NOW))

    plan = decide(world)
    assert plan.actions == ()
    assert plan.look_again_in <= SETTLE_SECONDS

    later = World(world.authority, world.serving, world.verifiers, NAMES, NOW + SETTLE_SECONDS)
    (action,) = decide(later).actions
    assert isinstance(action, IssueServing)
    assert action.authority.certificate == new.certificate


@pytest.mark.parametrize(
    ("pair", "because"),
    [
        (lambda ca: EMPTY, "no usable"),
        (lambda ca: KeyPair(a_serving(ca).certificate, a_serving(ca).key), "no usable"),
        (lambda ca: a_serving(an_authority()), "nobody trusts"),
        (lambda ca: a_serving(ca, names=("other.svc",)), "other names"),
        (lambda ca: a_serving(ca, age=SERVING_LIFE.total_seconds() + 1), "has ended"),
        (lambda ca: a_serving(ca, age=0.81 * SERVING_LIFE.total_seconds()), "four fifths"),
    ],
    ids=["none", "wrong key", "foreign", "other names", "ended", "due"],
)
def test_a_serving_pair_that_will_not_do_is_issued_anew(pair: Any, because: str) -> None:
    authority = an_authority()

    (action,) = decide(a_world(authority, pair(authority), authority.certificate)).actions

    assert isinstance(action, IssueServing)
    assert because in action.because


def test_an_ended_authority_leaves_the_bundle() -> None:
    new, dead = an_authority(), an_authority(age=AUTHORITY_LIFE.total_seconds() + 1)
    both = KeyPair(new.certificate + dead.certificate, new.key)

    (action,) = decide(a_world(both, a_serving(new), both.certificate)).actions

    assert isinstance(action, PatchBundle)
    assert split(action.bundle) == [new.certificate]


@dataclass
class Toy:
    """Objects in memory, caches on them, and a clock; each step applies one plan."""

    api: MemoryApi = field(default_factory=MemoryApi)
    now: float = NOW

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
        return decide(observe(self.caches(), "kubevirt", self.now))

    async def settle(self) -> int:
        """Apply plans until one is empty; return the number of writes."""
        writes = 0
        while (plan := self.plan()).actions:
            for action in plan.actions:
                await apply(self.api, action, self.now)
                writes += 1
                self.check()
            assert writes < 50
        return writes

    def data(self, key: Key, name: str) -> bytes:
        return base64.b64decode(self.api.objects["secrets", key].get("data", {}).get(name, ""))

    def check(self) -> None:
        """Whoever verifies us trusts what is served, from the moment on that both exist."""
        serving = self.data(SERVING_KEY, "tls.crt")
        world = observe(self.caches(), "kubevirt", self.now)
        bundles = [bundle for verifier in world.verifiers for bundle in verifier.bundles if bundle]
        for bundle in bundles:
            if serving:
                living = [one for one in split(bundle) if not life(one).is_over(self.now)]
                assert any(is_issued_by(serving, one) for one in living)


class _Reader:
    """A cache that is never stale."""

    def __init__(self, api: MemoryApi, resource: Resource) -> None:
        self._api = api
        self._resource = resource

    def get(self, key: Key) -> bytes | None:

        found = self._api.objects.get((self._resource.plural, key))
        return msgspec.json.encode(found) if found is not None else None


async def test_an_installation_ends_with_everybody_trusting_the_serving_pair() -> None:
    toy = Toy()
    await toy.create()

    assert await toy.settle() == 6
    assert await toy.settle() == 0

    pair = KeyPair(toy.data(SERVING_KEY, "tls.crt"), toy.data(SERVING_KEY, "tls.key"))
    assert belongs_together(pair)
    assert dns_names(pair.certificate) == NAMES
    hooks = toy.api.objects["mutatingwebhookconfigurations", VERIFIERS[0][1]]["webhooks"]
    assert [hook["name"] for hook in hooks] == ["a", "b"]
    assert all(hook["clientConfig"]["service"] for hook in hooks)


async def test_four_years_pass_without_a_moment_of_mistrust() -> None:
    toy = Toy()
    await toy.create()
    await toy.settle()
    authorities, writes, end = set(), 0, NOW + 4 * 365 * DAY

    while toy.now < end:
        toy.now += min(7 * DAY, max(1.0, toy.plan().look_again_in))
        toy.check()
        writes += await toy.settle()
        authorities.add(split(toy.data(CA_KEY, "ca.crt"))[0])
        serving = KeyPair(toy.data(SERVING_KEY, "tls.crt"), toy.data(SERVING_KEY, "tls.key"))
        assert not life(serving.certificate).is_over(toy.now)

    assert 4 <= len(authorities) <= 6
    assert writes < 120


async def test_a_lost_secret_is_made_again_and_trust_follows() -> None:
    toy = Toy()
    await toy.create()
    await toy.settle()

    for key in (CA_KEY, SERVING_KEY):
        await toy.api.patch(SECRET, key, {"data": None})
    while (plan := toy.plan()).actions:
        for action in plan.actions:
            await apply(toy.api, action, toy.now)

    toy.check()
    assert toy.data(SERVING_KEY, "tls.crt")

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The certificate loop survives failed passes."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import pytest

from controlplane.api.certificate_lifetimes import AUTHORITY, PAIR
from controlplane.api.objects.resources import SECRET, Key
from controlplane.engine.errors import Conflict, Forbidden
from controlplane.tls.certificates import KeyPair, Subject, issue, join_bundle, make_ca
from controlplane.virt_controller.certificates.apply import apply
from controlplane.virt_controller.certificates.decide import (
    Action,
    IssuePair,
    MakeAuthority,
    PairSecret,
    PatchBundle,
    Verifier,
)
from controlplane.virt_controller.certificates.observe import API_SERVICE, VERIFIERS, ca_bundles, secrets
from controlplane.virt_controller.certificates.roles import ROLES, subject
from controlplane.virt_controller.certificates.run import (
    LONGEST_BACK_OFF_SECONDS,
    LOOK_SECONDS,
    RETRY_SECONDS,
    STALE_SECONDS,
    Keeper,
)
from tests.controlplane.kube.virtual import MemoryApi
from tests.support.clock import SimulatedClock

PLACES = (*secrets("kubevirt"), *VERIFIERS)
BROKEN = b'{"metadata": 7}'


class Slot:
    """A cache of one object."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw

    def get(self, key: Key) -> bytes | None:
        del key
        return self.raw


def a_keeper(api: MemoryApi, raw: bytes) -> tuple[Keeper, list[Slot], list[float]]:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        await asyncio.sleep(0)
        slept.append(seconds)

    slots = [Slot(raw) for _unused in PLACES]
    caches: list[Any] = [(resource, key, slot) for (resource, key), slot in zip(PLACES, slots, strict=True)]
    return Keeper(api, caches, "kubevirt", SimulatedClock(), sleep=sleep, chance=lambda: 1.0), slots, slept  # type: ignore[arg-type]


async def test_a_bug_in_a_pass_causes_a_back_off_and_keeps_the_leadership(caplog: pytest.LogCaptureFixture) -> None:
    """An exception here once ended the leader's task group."""
    keeper, slots, slept = a_keeper(MemoryApi(), BROKEN)

    for _unused in range(9):
        assert await keeper.step() == 0.0

    assert slept[:3] == [RETRY_SECONDS, 2 * RETRY_SECONDS, 4 * RETRY_SECONDS]
    assert slept[-1] == LONGEST_BACK_OFF_SECONDS
    assert caplog.text.count("bug while maintaining the certificates") == 9

    for slot in slots:
        slot.raw = b'{"metadata": {"resourceVersion": "1"}}'
    await keeper.step()
    for slot in slots:
        slot.raw = BROKEN
    await keeper.step()
    assert slept[-1] == RETRY_SECONDS


@pytest.mark.parametrize(
    ("error", "rests"),
    [(Forbidden("no"), [5.0, 10.0, 20.0, 40.0, 60.0, 60.0]), (Conflict("no"), [0.5, 1.0, 2.0, 4.0, 5.0, 5.0])],
)
async def test_a_refused_write_is_retried_with_growing_back_off(error: Exception, rests: list[float]) -> None:
    api = MemoryApi()
    for resource, key in secrets("kubevirt"):
        await api.create(resource, key.namespace, {"metadata": {"name": key.name}})
    keeper, _slots, slept = a_keeper(api, b'{"metadata": {"resourceVersion": "1"}}')
    api.failing = error

    assert [await keeper.step() for _unused in rests] == rests
    assert slept == []


async def test_a_pass_that_wrote_is_followed_by_another_soon() -> None:
    api = MemoryApi()
    key = secrets("kubevirt")[0][1]
    made = await api.create(SECRET, key.namespace, {"metadata": {"name": key.name}})
    keeper, slots, _slept = a_keeper(api, b'{"metadata": {"resourceVersion": "1"}}')
    slots[0].raw = b'{"metadata": {"resourceVersion": "%s"}}' % made["metadata"]["resourceVersion"].encode()

    for error in (Forbidden("no"), Conflict("no")):
        api.failing = error
        assert await keeper.step() in (RETRY_SECONDS, STALE_SECONDS)
    api.failing = None
    assert await keeper.step() == RETRY_SECONDS
    assert api.objects["secrets", key]["data"]["ca.crt"]
    for error, rest in ((Forbidden("no"), RETRY_SECONDS), (Conflict("no"), STALE_SECONDS)):
        api.failing = error
        assert await keeper.step() == rest, "what went well in between is remembered"


def a_secret(version: int, **data: bytes) -> bytes:
    encoded = {name.replace("_", "."): base64.b64encode(value).decode() for name, value in data.items()}
    return json.dumps({"metadata": {"resourceVersion": str(version)}, "data": encoded}).encode()


def hold(slots: list[Slot], authority: KeyPair, used: KeyPair, now: float) -> None:
    """Set up a healthy state: pairs of the authority in use, trusted on both sides."""
    both = join_bundle([authority.certificate, used.certificate], now)
    slots[0].raw = a_secret(1, ca_crt=both, ca_key=authority.key)
    for role, slot in zip(ROLES, slots[1:], strict=False):
        pair = issue(used, subject(role, "kubevirt"), now - 3600, PAIR.duration)
        slot.raw = a_secret(1, tls_crt=pair.certificate, tls_key=pair.key, ca_crt=both)
    trusting = {"caBundle": base64.b64encode(both).decode()}
    for (resource, _unused), slot in zip(VERIFIERS, slots[1 + len(ROLES) :], strict=True):
        of_its_kind = {"spec": trusting} if resource == API_SERVICE else {"webhooks": [{"clientConfig": trusting}]}
        slot.raw = json.dumps({"metadata": {"resourceVersion": "1"}, **of_its_kind}).encode()


async def test_it_runs_periodically_because_nothing_reports_a_changed_clock() -> None:
    keeper, slots, _slept = a_keeper(MemoryApi(), b"")
    now = SimulatedClock().now()
    authority = make_ca("kubevirt-ca", now - 3600, AUTHORITY.duration)
    hold(slots, authority, authority, now)

    assert await keeper.step() == LOOK_SECONDS


async def test_a_waiting_authority_created_by_hand_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    keeper, slots, _slept = a_keeper(MemoryApi(), b"")
    now = SimulatedClock().now()
    used, late = (make_ca(name, now + when, AUTHORITY.duration) for name, when in (("a", -3600), ("b", 7200)))

    hold(slots, late, used, now)
    await keeper.step()
    await keeper.step()
    assert caplog.text.count("the CA in the Secret is not valid yet") == 1

    hold(slots, used, used, now)
    await keeper.step()
    hold(slots, late, used, now)
    await keeper.step()
    assert caplog.text.count("the CA in the Secret is not valid yet") == 2


NOW = 1_750_000_000.0
PLACE = Key("kubevirt", "x")
SEEN = PairSecret(PLACE, "1", KeyPair(b"", b""))
WRITES: dict[str, Action] = {
    "authority": MakeAuthority(SEEN, (), "test"),
    "pair": IssuePair(SEEN, make_ca("x", NOW, AUTHORITY.duration), Subject("x", "server", ("x",)), "test"),
    "bundle": PatchBundle(Verifier(API_SERVICE, PLACE, "1", ()), b"", "test"),
    "bundle of a peer": PatchBundle(Verifier(SECRET, PLACE, "1", ()), b"", "test"),
}


@pytest.mark.parametrize("action", WRITES.values(), ids=WRITES.keys())
async def test_a_concurrent_change_is_not_overwritten(action: Action) -> None:
    """Two leaders must not create two authorities, nor restore a bundle that another leader has replaced."""
    api = MemoryApi()
    resource = action.verifier.resource if isinstance(action, PatchBundle) else SECRET
    await api.create(resource, "kubevirt", {"metadata": {"name": "x"}})
    await apply(api, action, NOW)
    with pytest.raises(Conflict):
        await apply(api, action, NOW)


async def test_concurrently_replaced_hooks_are_not_overwritten() -> None:
    """A merge patch replaces the whole list of hooks."""
    api, (resource, key) = MemoryApi(), VERIFIERS[0]
    made = await api.create(resource, "", {"metadata": {"name": key.name}, "webhooks": [{"name": "a"}]})
    seen = Verifier(resource, key, made["metadata"]["resourceVersion"], (b"",))
    await api.patch(resource, key, {"webhooks": [{"name": "a"}, {"name": "b"}]})
    with pytest.raises(Conflict):
        await apply(api, PatchBundle(seen, b"new", "test"), NOW)
    assert api.objects[resource.plural, key]["webhooks"] == [{"name": "a"}, {"name": "b"}]


def test_each_hook_has_its_own_bundle() -> None:
    """A bundle that is missing in the second hook alone is noticed, too."""
    hooks = [{"clientConfig": {"caBundle": "b25l"}}, {"clientConfig": {}}]
    assert ca_bundles({"webhooks": hooks}, is_webhooks=True) == (b"one", b"")


@pytest.mark.parametrize("text", ["%%%", "b25%l", "b25", 7, None], ids=str)
def test_invalid_base64_is_an_empty_bundle(text: Any) -> None:
    """A lenient decoder would trust another text than the API server does."""
    assert ca_bundles({"spec": {"caBundle": text}}, is_webhooks=False) == (b"",)

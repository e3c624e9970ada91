# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reviews under a flood: what a Pod that reaches the port can take from the API server's own."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack

import pytest

from controlplane.api.admission.verdict import Settings
from controlplane.engine.clock import SystemClock
from controlplane.virt_api import concurrency as module
from controlplane.virt_api.admission.reviews import THREADS, Charge, Read, Reviews
from controlplane.virt_api.admission.webhook import Admission
from controlplane.virt_api.concurrency import BusyError
from controlplane.virt_api.http.response import Answer
from controlplane.virt_api.http.routes import ToHook

ROUTE = ToHook("validate")


class Slow(Admission):
    """Judges nothing until it is let."""

    def __init__(self) -> None:
        super().__init__(Settings)
        self.let = threading.Semaphore(0)
        self.judged: list[bytes] = []
        self.threads: set[int] = set()
        self.says = Answer()

    def answer(self, route: ToHook, body: bytes) -> Answer:
        assert self.let.acquire(timeout=20)
        self.judged.append(body)
        self.threads.add(threading.get_ident())
        return self.says


@pytest.fixture
async def slow() -> AsyncIterator[Slow]:
    made = Slow()
    yield made
    made.let.release(1000)


def sends(body: bytes) -> Read:
    async def read(charge: Charge) -> bytes:
        charge(len(body))
        return body

    return read


async def answered(reviews: Reviews, peer: str, read: Read) -> Answer:
    """Have the answer written at once."""
    with ExitStack() as until_written:
        return await reviews.answer(peer, ROUTE, read, until_written)


def ask(reviews: Reviews, peer: str, body: bytes) -> asyncio.Task[Answer]:
    return asyncio.create_task(answered(reviews, peer, sends(body)))


async def settled() -> None:
    """Let every task run until it waits for something outside."""
    for _unused in range(5):
        await asyncio.sleep(0)


def a_large_review() -> bytes:
    """450 KB of a machine that asks for very many labels of nodes, all good but the last: each is looked at."""
    values = ["a"] * 1000
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": values}]} for _unused in range(120)]
    terms.append({"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a b"]}]})
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    body = {"runStrategy": "Halted", "template": {"spec": {"domain": {"devices": {}}, "affinity": affinity}}}
    vm = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "web"}, "spec": body}
    kind = {"group": "kubevirt.io", "version": "v1", "kind": "VirtualMachine"}
    request = {"uid": "u", "kind": kind, "operation": "CREATE", "userInfo": {"username": "a"}, "object": vm}
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return json.dumps(review, separators=(",", ":")).encode()


async def test_a_machine_of_very_many_values_does_not_hold_the_loop() -> None:
    """It takes a thread a while, which is measured here too; the loop goes on meanwhile."""
    body, admission = a_large_review(), Admission(Settings)
    assert 450_000 <= len(body) < 600_000
    reviews, stalls = Reviews(admission, SystemClock()), []
    began = time.perf_counter()
    assert admission.answer(ROUTE, body).code == 200
    whole = time.perf_counter() - began
    asked = ask(reviews, "api-server", body)
    while not asked.done():
        began = time.perf_counter()
        await asyncio.sleep(0.001)
        stalls.append(time.perf_counter() - began)

    verdict = json.loads((await asked).body)
    assert verdict["response"]["allowed"] is False
    assert "nodeSelectorTerms[120]" in json.dumps(verdict)
    assert len(stalls) > 10, "judged on the loop it would be one"
    assert max(stalls) < whole / 2, "nor is there a step in it that keeps the interpreter"
    reviews.close()


async def test_a_flood_of_one_peer_does_not_keep_another_waiting(slow: Slow) -> None:
    """Whatever was there before: two are being judged, and then it is the other's turn."""
    reviews = Reviews(slow, SystemClock())
    flood = [ask(reviews, "pod", b"flood") for _unused in range(50)]
    await settled()
    slow.let.release(1)  # which of the threads takes it is nobody's to say
    await asyncio.wait(flood, return_when=asyncio.FIRST_COMPLETED)

    theirs = ask(reviews, "api-server", b"theirs")
    await settled()
    slow.let.release(THREADS + 1)
    await theirs

    assert len(slow.judged) <= 2 * THREADS + 1
    assert threading.get_ident() not in slow.threads
    slow.let.release(50)
    await asyncio.gather(*flood)
    reviews.close()


def a_review(namespace: str, number: int = 0) -> bytes:
    """As an API server writes it: the namespace comes before the user and the object."""
    names = {"uid": f"u-{number}", "name": "web", "namespace": namespace}
    return json.dumps({"kind": "AdmissionReview", "request": {**names, "object": {"metadata": {}}}}).encode()


async def test_a_flood_of_one_tenant_does_not_keep_another_waiting(slow: Slow) -> None:
    """Both come by the one API server."""
    reviews = Reviews(slow, SystemClock())
    flood = [ask(reviews, "api-server", a_review("greedy", number)) for number in range(50)]
    await settled()
    slow.let.release(1)
    await asyncio.wait(flood, return_when=asyncio.FIRST_COMPLETED)

    theirs = ask(reviews, "api-server", a_review("modest"))
    await settled()
    slow.let.release(THREADS + 1)
    await theirs

    assert len(slow.judged) <= 2 * THREADS + 1
    slow.let.release(50)
    await asyncio.gather(*flood)
    reviews.close()


async def test_bodies_of_one_tenant_leave_room_for_others(slow: Slow) -> None:
    body = a_review("greedy")
    reviews = Reviews(slow, SystemClock(), tenant_bytes=2 * len(body))
    held = [ask(reviews, "api-server", body) for _unused in range(2)]
    await settled()

    with pytest.raises(BusyError, match="of this namespace"):
        await ask(reviews, "api-server", body)
    theirs = ask(reviews, "api-server", a_review("modest"))
    slow.let.release(3)
    assert {one.code for one in await asyncio.gather(*held, theirs)} == {200}

    slow.let.release(1)
    assert (await ask(reviews, "api-server", body)).code == 200, "what was held is given back"
    reviews.close()


async def test_bodies_that_wait_are_bounded_and_another_peer_has_its_share(slow: Slow) -> None:
    reviews = Reviews(slow, SystemClock(), room_bytes=10)
    held = ask(reviews, "pod", b"0123456789")
    await settled()

    with pytest.raises(BusyError):
        await ask(reviews, "pod", b"x")
    theirs = ask(reviews, "api-server", b"01234")
    slow.let.release(2)

    assert {(await held).code, (await theirs).code} == {200}
    slow.let.release(1)
    assert (await ask(reviews, "pod", b"0123456789")).code == 200, "what was held is given back"
    reviews.close()


async def test_what_is_answered_is_held_until_it_is_written(slow: Slow) -> None:
    """Whoever read no answer had all of them held, and asked for more."""
    reviews = Reviews(slow, SystemClock(), room_bytes=10)
    slow.let.release(10)
    with ExitStack() as until_written:
        await reviews.answer("pod", ROUTE, sends(b"0123456789"), until_written)
        with pytest.raises(BusyError):
            await ask(reviews, "pod", b"x")
    assert (await ask(reviews, "pod", b"0123456789")).code == 200
    reviews.close()


async def test_an_answer_that_is_larger_than_its_review_is_charged_what_it_has(slow: Slow) -> None:
    reviews = Reviews(slow, SystemClock(), room_bytes=10)
    slow.let.release(10)
    slow.says = Answer(body=b"an answer")
    with ExitStack() as until_written:
        await reviews.answer("pod", ROUTE, sends(b"x"), until_written)
        with pytest.raises(BusyError):
            await ask(reviews, "pod", b"xy")
    slow.says = Answer(body=b"a long answer")
    with pytest.raises(BusyError):
        await ask(reviews, "pod", b"x")
    slow.says = Answer()
    assert (await ask(reviews, "pod", b"0123456789")).code == 200
    reviews.close()


async def test_a_body_is_held_as_a_whole_however_it_arrives(slow: Slow) -> None:
    reviews = Reviews(slow, SystemClock(), room_bytes=10)

    async def in_pieces(charge: Charge) -> bytes:
        for _unused in range(5):
            charge(2)
        return b"0123456789"

    slow.let.release(2)
    for _unused in range(2):
        assert (await answered(reviews, "pod", in_pieces)).code == 200
    reviews.close()


async def test_who_has_waited_too_long_is_told_and_takes_nobodys_turn(
    slow: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TURN_SECONDS", 0.0)
    reviews = Reviews(slow, SystemClock())
    judged = [ask(reviews, "pod", b"judged") for _unused in range(THREADS)]
    await settled()

    with pytest.raises(BusyError, match="no turn"):
        await ask(reviews, "pod", b"late")

    slow.let.release(THREADS)
    await asyncio.gather(*judged)
    slow.let.release(1)
    await ask(reviews, "pod", b"next")
    assert b"late" not in slow.judged
    reviews.close()


async def test_a_review_that_is_given_up_gives_its_turn_back(slow: Slow) -> None:
    reviews = Reviews(slow, SystemClock())
    tasks = [ask(reviews, "pod", b"given up") for _unused in range(THREADS + 3)]
    await settled()
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)

    slow.let.release(THREADS + 1)
    assert (await ask(reviews, "pod", b"next")).code == 200
    reviews.close()


async def test_what_cannot_be_read_holds_nothing(slow: Slow) -> None:
    reviews = Reviews(slow, SystemClock(), room_bytes=10)

    async def broken(charge: Charge) -> bytes:
        charge(10)
        raise TimeoutError

    with pytest.raises(TimeoutError):
        await answered(reviews, "pod", broken)
    slow.let.release(1)
    assert (await ask(reviews, "pod", b"0123456789")).code == 200
    reviews.close()

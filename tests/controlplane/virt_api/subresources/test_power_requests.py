# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""User requests from virt-api to a node's virt-handler and back, over real TLS, on a fake API server."""

from __future__ import annotations

import asyncio
import json
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from controlplane.links import handler as link
from controlplane.links.handler import Answer, Guest, NotDone, Power
from controlplane.virt_handler.api_endpoint.serving_certificate import SelfSignedPair, make_self_signed_pair
from tests.controlplane.virt_api.served import (
    Json,
    an_authority,
    serving,
)
from tests.controlplane.virt_api.subresources.stage import NODE, VMI, Speak, Stage, a_vmi, captured, leave, saying

VERBS = ("pause", "unpause", "reset", "softreboot", "unfreeze")


@pytest.mark.parametrize("verb", VERBS)
async def test_a_verb_reaches_the_guest(stage: Stage, verb: Any) -> None:
    uid = stage.served.api.put(VMI, a_vmi())["metadata"]["uid"]

    assert await stage.call(verb, b"") == (200, "")

    assert stage.questions == [Power(Guest("node-1", uid, "pod-1"), verb)]
    assert [review["resourceAttributes"]["subresource"] for review in stage.served.reviews] == [verb]


@pytest.mark.parametrize(
    ("answer", "code", "text"),
    [
        (NotDone("refused", "VMI is already paused"), 409, '"web": VMI is already paused'),
        (NotDone("absent", "not here"), 404, "cannot pause virtualmachineinstance ns/web: not here"),
        (NotDone("busy", "a start"), 503, "cannot pause virtualmachineinstance ns/web: a start"),
        (NotDone("lost", "it broke"), 503, "it broke; whether it happened is not known"),
        (NotDone("overdue", "20 s"), 504, "cannot pause virtualmachineinstance ns/web: 20 s"),
        (NotDone("refused", ""), 409, "its virt-handler gives no reason"),
    ],
)
async def test_virt_handlers_answer_is_the_response(stage: Stage, answer: Answer, code: int, text: str) -> None:
    stage.served.api.put(VMI, a_vmi())
    stage.response = answer

    answered, status = await stage.call("pause")

    assert (answered, status["kind"], status["status"], status["code"]) == (code, "Status", "Failure", code)
    assert text in status["message"]


async def test_a_freeze_has_a_time_limit(stage: Stage) -> None:
    stage.served.api.put(VMI, a_vmi())
    assert await stage.call("freeze", b'{"unfreezeTimeout": "1m30s"}') == (200, "")
    assert [(question.verb, question.thaw_after_seconds) for question in stage.questions] == [("freeze", 90)]


async def test_only_an_untried_request_has_retry_after(stage: Stage) -> None:
    """Clients retry automatically after a response with Retry-After."""
    stage.served.api.put(VMI, a_vmi())
    again = {}
    for kind in ("busy", "lost", "overdue"):
        stage.response = NotDone(kind, "x")  # type: ignore[arg-type]
        again[kind] = await stage.is_to_be_repeated("reset")
    stage.served.api.put(NODE, {"metadata": {"name": "node-1"}})
    again["not asked"] = await stage.is_to_be_repeated("reset")
    async with captured(stage, saying(b"no json")):
        again["no answer"] = await stage.is_to_be_repeated("reset")

    assert again == {"busy": True, "lost": False, "overdue": False, "not asked": True, "no answer": False}


@pytest.mark.parametrize(
    ("verb", "phase", "code"),
    [
        ("pause", "Scheduled", 409),
        ("freeze", "Succeeded", 409),
        ("reset", "Scheduling", 400),
        ("reset", "Failed", 400),
        ("reset", "Scheduled", 200),
    ],
)
async def test_a_stopped_vmi_is_refused_with_upstreams_code(stage: Stage, verb: str, phase: str, code: int) -> None:
    stage.served.api.put(VMI, a_vmi(phase))

    answered, status = await stage.call(verb)

    assert answered == code
    assert len(stage.questions) == (code == 200)
    if code != 200:
        assert "VMI is not running" in status["message"]


HTTP = {"httpGet": {"port": 80}}


@pytest.mark.parametrize(
    ("verb", "probe", "code"),
    [("pause", HTTP, 403), ("pause", {"guestAgentPing": {}}, 200), ("unpause", HTTP, 200), ("reset", HTTP, 200)],
)
async def test_a_guest_with_a_liveness_probe_is_not_paused(stage: Stage, verb: str, probe: Json, code: int) -> None:
    stage.served.api.put(VMI, a_vmi() | {"spec": {"domain": {"devices": {}}, "livenessProbe": probe}})
    assert (await stage.call(verb))[0] == code
    assert len(stage.questions) == (code == 200)


@pytest.mark.parametrize(
    "status",
    [
        {"nodeName": ""},
        {"activePods": {}},
        {"activePods": {"a": "node-2"}},
        {"activePods": {"a": "node-1", "b": "node-1"}},
    ],
    ids=str,
)
async def test_a_vmi_without_one_active_pod_is_refused(stage: Stage, status: Json) -> None:
    stage.served.api.put(VMI, a_vmi(**status))
    assert (await stage.call("pause"))[0] == 409
    assert stage.questions == []


async def test_a_missing_vmi_is_404_and_an_unreadable_one_422(stage: Stage) -> None:
    assert (await stage.call("pause"))[0] == 404
    stage.served.api.put(VMI, a_vmi() | {"spec": 7})
    assert (await stage.call("pause"))[0] == 422


@pytest.mark.parametrize(
    ("verb", "paused", "code"),
    [
        ("pause", "", 200),
        ("pause", "PausedIOError", 200),
        ("pause", "PausedByUser", 409),
        ("unpause", "", 409),
        ("unpause", "PausedIOError", 409),
        ("unpause", "PausedByUser", 200),
    ],
)
async def test_a_dry_run_is_checked_and_not_executed(stage: Stage, verb: str, paused: str, code: int) -> None:
    stage.served.api.put(VMI, a_vmi(paused=paused))
    assert (await stage.call(verb, b'{"dryRun": ["All"]}'))[0] == code
    assert stage.questions == []


async def test_unknown_options_are_refused_before_a_question_is_sent(stage: Stage) -> None:
    stage.served.api.put(VMI, a_vmi())
    code, status = await stage.call("reset", b'{"hard": true}')
    assert (code, stage.questions) == (400, [])
    assert "'hard': unknown option" in status["message"]


async def unused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


async def test_a_virt_handler_that_cannot_be_reached_is_503(stage: Stage) -> None:
    stage.served.api.put(VMI, a_vmi())
    stage.announce(await unused_port())

    code, status = await stage.call("reset")

    assert code == 503
    assert "virt-handler of node node-1 cannot be reached at 127.0.0.1:" in status["message"]

    stage.served.api.drop(NODE)
    code, status = await stage.call("reset")
    assert (code, "there is no node node-1" in status["message"]) == (503, True)

    stage.served.api.put(NODE, {"metadata": {"name": "node-1"}})
    code, status = await stage.call("reset")
    assert (code, "has not published where it listens" in status["message"]) == (503, True)


async def test_without_a_client_pair_no_question_is_sent(tmp_path: Path, pair: SelfSignedPair) -> None:
    async with serving(tmp_path) as served:
        stage = Stage(served, pair)
        served.api.put(VMI, a_vmi())
        served.cluster.take_client_pair(None, None, None)  # type: ignore[arg-type]
        code, status = await stage.call("pause")
    assert (code, "has no client pair for virt-handlers yet" in status["message"]) == (503, True)


async def test_no_question_is_sent_to_a_virt_handler_with_another_certificate(stage: Stage) -> None:
    """A compromised node may listen at the address of another node's virt-handler."""
    stage.served.api.put(VMI, a_vmi())
    stage.announce(stage.port, (await make_self_signed_pair("node-1")).der)

    assert (await stage.call("reset"))[0] == 503
    assert stage.questions == []


async def test_a_virt_handler_that_refuses_our_certificate_is_503(stage: Stage) -> None:
    stage.served.api.put(VMI, a_vmi())
    stage.give_client_pair(an_authority("another"))
    assert (await stage.call("reset"))[0] == 503
    assert stage.questions == []


@pytest.mark.parametrize(
    "speak",
    [
        saying(b"no json"),
        saying(b'{"type": "NotDone", "kind": "odd", "text": ""}'),
        saying(b'{"type": "NotDone", "kind": "refused", "text": "' + b"x" * 2000 + b'"}'),
        saying(b" " * (link.ANSWER_LIMIT_BYTES + 1)),
        saying(b'{"type": "Done"}', b"HTTP/1.1 500 Oops\r\nContent-Length: %d\r\n\r\n"),
        saying(b"x", b"HTTP/1.1 200 OK\r\n" + b"A: " + b"b" * 200_000 + b"\r\n\r\n"),
        saying(b'{"type": "Done"', b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n"),
    ],
)
async def test_an_invalid_answer_is_503(stage: Stage, speak: Speak) -> None:
    async with captured(stage, speak):
        code, status = await stage.call("reset")

    assert (code, status["reason"]) == (503, "ServiceUnavailable")
    assert "virt-handler of node node-1" in status["message"]
    assert len(status["message"]) < 400


async def test_a_redirect_is_not_followed(stage: Stage) -> None:
    head = b"HTTP/1.1 307 Go on\r\nLocation: https://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"
    async with captured(stage, saying(b"", head)):
        _unused, status = await stage.call("reset")
    assert "did not take the question (HTTP 307)" in status["message"]


async def test_an_endless_answer_is_503(stage: Stage) -> None:
    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b'"reset"}')
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        with suppress(OSError):
            while not writer.is_closing():
                writer.write(b" " * 4096)
                await writer.drain()
                await asyncio.sleep(0)
        await leave(writer)

    async with captured(stage, speak):
        code, status = await stage.call("reset")
    assert (code, "sent an invalid answer" in status["message"]) == (503, True)


async def test_a_compromised_node_cannot_inject_text(stage: Stage) -> None:
    words = 'gone\x1b[2J\r\n{"kind":"Status","status":"Success"}\u202e'
    body = json.dumps({"type": "NotDone", "kind": "refused", "text": words, "metadata": {"x": 1}, "code": 200})
    async with captured(stage, saying(body.encode())):
        code, status = await stage.call("reset")

    assert (code, status["status"], status["kind"], status["metadata"]) == (409, "Failure", "Status", {})
    assert status["message"].isprintable()
    assert status.keys() == {"kind", "apiVersion", "metadata", "status", "message", "reason", "code", "details"}

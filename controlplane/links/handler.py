# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What virt-api and virt-handler say to each other about a guest: typed, bounded, JSON. Values only; who carries it is
virt_api.subresources.handler_client and virt_handler.door.

One question, one answer, one connection. A new question is a struct of `Question` and, if it answers with more than
that it is done, a struct of `Answer`; virt-handler's part is a row of `Door`'s table. Each end takes the other for
captured: what does not decode, or is too long, is no message. Text in an answer is for people; it is bounded once more
by whoever hands it on, for a node may have written anything.
"""

from __future__ import annotations

import hashlib
from typing import Annotated, Literal

import msgspec

from controlplane.api.objects.guest_info import GuestAgentInfo

PORT = 8186
"""Where virt-handler listens, as upstream's does."""
PATH = "/v1/ask"
QUESTION_LIMIT_BYTES = 4 * 1024
ANSWER_LIMIT_BYTES = 64 * 1024
DETAILS_LIMIT_BYTES = 60 * 1024
"""Of what a guest has told, in an answer."""
CARRY_OUT_SECONDS = 20.0
"""Within which virt-handler answers, if only that it is not done yet."""
ANSWER_SECONDS = 25.0
"""How long virt-api waits for that."""
THAW_LIMIT_SECONDS = 86400
USUAL_THAW_SECONDS = 300
"""Of a freeze whose end nobody names, or knows any more; upstream's clients ask for as much."""
_TEXT_LIMIT = 1024

ADDRESS = "kubevirt.io/handler-address"
"""Annotation of a Node: where its virt-handler listens, e.g. 10.244.0.7:8186."""
CERTIFICATE = "kubevirt.io/handler-certificate"
"""Annotation of a Node: what its virt-handler serves with (DER, base64). No other is taken for it."""

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=253)]
Uid = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
Verb = Literal["pause", "unpause", "reset", "softreboot", "freeze", "unfreeze"]
About = Literal["guestosinfo", "userlist", "filesystemlist"]


class LinkError(Exception):
    """The other end said something that is no message, or not one for this end."""


class Guest(msgspec.Struct, frozen=True):
    """Which guest is meant: the one of this VMI in this Pod on this node, and no other."""

    node: Name
    vmi_uid: Uid
    pod_uid: Uid


class Power(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """Carry out a verb that a person asked for."""

    guest: Guest
    verb: Verb
    thaw_after_seconds: Annotated[int, msgspec.Meta(ge=0, le=THAW_LIMIT_SECONDS)] = 0
    """Of freeze: when the file systems are thawed again if nobody asks for it. 0: not by itself."""


class Inquire(msgspec.Struct, frozen=True, tag=True):
    """Ask the guest's agent what a person wants to know."""

    guest: Guest
    about: About


class Details(msgspec.Struct, frozen=True, tag=True):
    """What the agent has told; of another subject than was asked about, nothing."""

    told: GuestAgentInfo


class Done(msgspec.Struct, frozen=True, tag=True):
    """It is carried out."""


class NotDone(msgspec.Struct, frozen=True, tag=True):
    """It is not, or nobody knows.

    absent: there is no such guest here. refused: its state does not allow it. busy: nothing was tried, later it may be.
    lost: contact broke while it was tried. overdue: it is being tried yet.
    """

    kind: Literal["absent", "refused", "busy", "lost", "overdue"]
    text: Annotated[str, msgspec.Meta(max_length=_TEXT_LIMIT)]


Question = Power | Inquire
Answer = Done | NotDone | Details

_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_encoder = msgspec.json.Encoder()
_question: msgspec.json.Decoder[Question] = msgspec.json.Decoder(Question)
_answer: msgspec.json.Decoder[Answer] = msgspec.json.Decoder(Answer)


def encode(message: Question | Answer) -> bytes:
    """Render a message."""
    return _encoder.encode(message)


def read_question(data: bytes) -> Question:
    """Read what virt-api sent. LinkError."""
    try:
        return _question.decode(data)
    except _UNREADABLE as error:
        raise LinkError(f"no question: {error}") from error


def read_answer(data: bytes) -> Answer:
    """Read what a virt-handler sent. LinkError."""
    if len(data) > ANSWER_LIMIT_BYTES:
        raise LinkError(f"an answer of more than {ANSWER_LIMIT_BYTES} bytes")
    try:
        return _answer.decode(data)
    except _UNREADABLE as error:
        raise LinkError("what it sent is no answer") from error


def server_name(node: str) -> str:
    """Return the host name in the certificate of a node's virt-handler.

    A digest: a node's name may be longer than a host name's room, or look like an address.
    """
    return f"{hashlib.sha256(node.encode()).hexdigest()[:40]}.virt-handler.invalid"


def bounded_text(text: str) -> str:
    """Cut a text to what an answer may carry."""
    return text if len(text) <= _TEXT_LIMIT else text[: _TEXT_LIMIT - 3] + "..."

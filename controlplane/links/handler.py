# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests of virt-api to virt-handler about a guest: typed, bounded, JSON. Values only, no transport.

One request, one response, one connection. A new kind of request is a struct in `Question` and, if its response has
content, a struct in `Document`; virt-handler handles it by a row of its API endpoint's table. A picture is no JSON: the
body of that response is the PNG, and its content type says so. Neither end trusts the other: what does not decode, or
is too long, is refused. Text in a response is for people. virt-api bounds it again, because a compromised node may send
anything.

The class names are the messages' tags: renaming one changes the protocol.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec

from controlplane.api.objects.guest_info import GuestAgentInfo
from controlplane.domain.screenshot import PNG_LIMIT_BYTES, PNG_SIGNATURE

PORT = 8186
"""The port of virt-handler, the same as upstream's."""
PATH = "/v1/ask"
QUESTION_LIMIT_BYTES = 4 * 1024
ANSWER_LIMIT_BYTES = 64 * 1024
JSON_TYPE, PNG_TYPE = "application/json", "image/png"
"""Content types of answers."""
DETAILS_LIMIT_BYTES = 60 * 1024
"""Limit of the agent's details in a response."""
CARRY_OUT_SECONDS = 20.0
"""Within this time virt-handler responds, if only that the request is still running."""
ANSWER_SECONDS = 25.0
"""How long virt-api waits for the response."""
THAW_LIMIT_SECONDS = 86400
USUAL_THAW_SECONDS = 300
"""For a freeze without a time, or whose time is lost; the default of upstream's clients."""
_TEXT_LIMIT = 1024

ADDRESS = "kubevirt.io/handler-address"
"""Annotation of a Node: where its virt-handler listens, e.g. 10.244.0.7:8186."""
CERTIFICATE = "kubevirt.io/handler-certificate"
"""Annotation of a Node: the serving certificate of its virt-handler (DER, base64). virt-api accepts no other."""

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=253)]
Uid = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
Verb = Literal["pause", "unpause", "reset", "softreboot", "freeze", "unfreeze"]
About = Literal["guestosinfo", "userlist", "filesystemlist"]


class LinkError(Exception):
    """The peer sent something that is not a message, or not a message for this end."""


class Guest(msgspec.Struct, frozen=True):
    """A guest: the one of this VMI, in this Pod, on this node."""

    node: Name
    vmi_uid: Uid
    pod_uid: Uid


class Power(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """Carry out a user request."""

    guest: Guest
    verb: Verb
    thaw_after_seconds: Annotated[int, msgspec.Meta(ge=0, le=THAW_LIMIT_SECONDS)] = 0
    """For freeze: seconds until the file systems are thawed automatically; 0 for never."""


class Inquire(msgspec.Struct, frozen=True, tag=True):
    """Ask the guest's agent for details."""

    guest: Guest
    about: About


class Details(msgspec.Struct, frozen=True, tag=True):
    """The agent's details; only those that were asked for."""

    info: GuestAgentInfo


class TakeScreenshot(msgspec.Struct, frozen=True, tag=True):
    """Take a picture of the guest's screen."""

    guest: Guest


@dataclass(frozen=True, slots=True)
class Picture:
    """The guest's screen."""

    png: bytes


class Done(msgspec.Struct, frozen=True, tag=True):
    """The request was carried out."""


class NotDone(msgspec.Struct, frozen=True, tag=True):
    """The request was not carried out, or that is unknown.

    absent: no such guest here. refused: the guest's state does not allow it. busy: not tried; it may be retried. lost:
    the connection to the guest broke during it. overdue: it is still running.
    """

    kind: Literal["absent", "refused", "busy", "lost", "overdue"]
    text: Annotated[str, msgspec.Meta(max_length=_TEXT_LIMIT)]


Question = Power | Inquire | TakeScreenshot
Document = Done | NotDone | Details
Answer = Document | Picture

_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_encoder = msgspec.json.Encoder()
_question: msgspec.json.Decoder[Question] = msgspec.json.Decoder(Question)
_answer: msgspec.json.Decoder[Document] = msgspec.json.Decoder(Document)


def encode(message: Question | Document) -> bytes:
    """Encode a message."""
    return _encoder.encode(message)


def read_question(data: bytes) -> Question:
    """Decode a request of virt-api. LinkError."""
    try:
        return _question.decode(data)
    except _UNREADABLE as error:
        raise LinkError(f"not a request: {error}") from error


def read_answer(data: bytes) -> Document:
    """Decode a response of virt-handler that is JSON. LinkError."""
    if len(data) > ANSWER_LIMIT_BYTES:
        raise LinkError(f"a response of more than {ANSWER_LIMIT_BYTES} bytes")
    try:
        return _answer.decode(data)
    except _UNREADABLE as error:
        raise LinkError("not a response") from error


def read_picture(data: bytes) -> Picture:
    """Accept a response of virt-handler that is a picture. LinkError."""
    if len(data) > PNG_LIMIT_BYTES or not data.startswith(PNG_SIGNATURE):
        raise LinkError(f"not a PNG of at most {PNG_LIMIT_BYTES} bytes")
    return Picture(data)


def server_name(node: str) -> str:
    """Return the host name in the certificate of a node's virt-handler.

    It has a digest, because a node's name may be too long for a host name, or look like an IP address.
    """
    return f"{hashlib.sha256(node.encode()).hexdigest()[:40]}.virt-handler.invalid"


def bounded_text(text: str) -> str:
    """Cut a text to the length that a response may carry."""
    return text if len(text) <= _TEXT_LIMIT else text[: _TEXT_LIMIT - 3] + "..."

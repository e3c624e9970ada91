# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Power verbs: reads the VMI, asks its virt-handler to carry out the verb, and responds with the outcome.

Retry-After is sent only when nothing was tried: clients repeat such a request by themselves, and they must not repeat a
reset with an unknown outcome.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import assert_never

from controlplane.api.objects.decode import DecodeError, decode_vmi
from controlplane.api.objects.pod import sanitize
from controlplane.api.objects.resources import VIRTUAL_MACHINE_INSTANCE, Key
from controlplane.engine.errors import NotFound
from controlplane.kube.access_review import User
from controlplane.kube.client import Client
from controlplane.links.handler import Details, Done, NotDone, Picture, Power, Verb
from controlplane.virt_api.http.response import Response, conflict, failure, not_found
from controlplane.virt_api.subresources.handler_client import (
    HandlerClient,
    NoAnswerInTimeError,
    NotSentError,
    OutcomeUnknownError,
)
from controlplane.virt_api.subresources.options import PowerOptions
from controlplane.virt_api.subresources.power import PowerRefusedError, check_dry_run, guest_for

log = logging.getLogger(__name__)

KIND = VIRTUAL_MACHINE_INSTANCE.kind.lower()
_RETRY = {"Retry-After": "1"}


@dataclass(frozen=True, slots=True)
class PowerRequests:
    """Executes power verbs for authorized callers."""

    client: Client
    handlers: HandlerClient

    async def execute(self, key: Key, verb: Verb, options: PowerOptions, user: User) -> Response:
        """Execute a verb. Raises ApiError."""
        try:
            vmi = decode_vmi(await self.client.get(VIRTUAL_MACHINE_INSTANCE, key))
            guest = guest_for(vmi, verb)
            if options.dry_run:
                check_dry_run(vmi, verb)
                return Response()
            answer = await self.handlers.call(key.namespace, Power(guest, verb, options.thaw_after))
            if isinstance(answer, Details | Picture):
                raise OutcomeUnknownError(f"virt-handler of node {guest.node} answered another question")
        except NotFound:
            return not_found(KIND, key.name)
        except DecodeError as error:
            return failure(422, f"{KIND} {key} cannot be read: {error}")
        except PowerRefusedError as error:
            return conflict(KIND, key.name, str(error)) if error.code == 409 else failure(error.code, str(error))
        except (NotSentError, OutcomeUnknownError) as error:
            log.warning("cannot carry out", extra={"key": key, "action": verb, "because": error})
            return _no_answer(f"cannot {verb} {KIND} {key}: {error}", error)
        outcome = type(answer).__name__
        log.info("virt-handler answered", extra={"key": key, "action": verb, "user": user.name, "outcome": outcome})
        return _render(key, verb, answer)


def _no_answer(message: str, error: NotSentError | OutcomeUnknownError) -> Response:
    if isinstance(error, NoAnswerInTimeError):
        return failure(504, f"{message}; it may still happen")
    if isinstance(error, OutcomeUnknownError):
        return failure(503, f"{message}; whether it happened is not known")
    return failure(503, message, headers=_RETRY)


def _render(key: Key, verb: Verb, answer: Done | NotDone) -> Response:
    """Respond with virt-handler's answer. Its text is bounded: a compromised node may have written it."""
    match answer:
        case Done():
            return Response()
        case NotDone(kind=kind, text=text):
            why = sanitize(text) or "its virt-handler gives no reason"
        case _:
            assert_never(answer)
    message = f"cannot {verb} {KIND} {key}: {why}"
    match kind:
        case "refused":
            return conflict(KIND, key.name, why)
        case "absent":
            return failure(404, message)
        case "busy":
            return failure(503, message, headers=_RETRY)
        case "lost":
            return failure(503, f"{message}; whether it happened is not known")
        case "overdue":
            return failure(504, message)
        case _:
            assert_never(kind)

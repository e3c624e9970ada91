# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Subresources that a guest's node has to answer: reads the instance, asks its virt-handler, and says what came of it.

Retry-After goes with an answer only where nothing was tried: clients repeat such a request by themselves, and a reset
of which nobody knows whether it was carried out must not be repeated.
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
from controlplane.links.handler import Details, Done, NotDone, Power, Verb
from controlplane.virt_api.http.response import Answer, conflict, failure, not_found
from controlplane.virt_api.subresources.handler_client import Handlers, NotAnsweredError, NotAskedError, OverdueError
from controlplane.virt_api.subresources.options import PowerOptions
from controlplane.virt_api.subresources.power import PowerRefusedError, find_guest, judge_dry

log = logging.getLogger(__name__)

KIND = VIRTUAL_MACHINE_INSTANCE.kind.lower()
_LATER = {"Retry-After": "1"}


@dataclass(frozen=True, slots=True)
class Guests:
    """Answers for guests, once the caller's rights are known."""

    client: Client
    handlers: Handlers

    async def carry_out(self, key: Key, verb: Verb, options: PowerOptions, user: User) -> Answer:
        """Carry out a power verb. ApiError."""
        try:
            vmi = decode_vmi(await self.client.get(VIRTUAL_MACHINE_INSTANCE, key))
            guest = find_guest(vmi, verb)
            if options.dry_run:
                judge_dry(vmi, verb)
                return Answer()
            said = await self.handlers.ask(key.namespace, Power(guest, verb, options.thaw_after))
            if isinstance(said, Details):
                raise NotAnsweredError(f"virt-handler of node {guest.node} answered another question")
        except NotFound:
            return not_found(KIND, key.name)
        except DecodeError as error:
            return failure(422, f"{KIND} {key} cannot be read: {error}")
        except PowerRefusedError as error:
            return conflict(KIND, key.name, str(error)) if error.code == 409 else failure(error.code, str(error))
        except (NotAskedError, NotAnsweredError) as error:
            log.warning("cannot carry out", extra={"key": key, "action": verb, "because": error})
            return _unanswered(f"cannot {verb} {KIND} {key}: {error}", error)
        log.info("asked", extra={"key": key, "action": verb, "user": user.name, "said": type(said).__name__})
        return _render(key, verb, said)


def _unanswered(message: str, error: NotAskedError | NotAnsweredError) -> Answer:
    if isinstance(error, OverdueError):
        return failure(504, f"{message}; it may yet happen")
    if isinstance(error, NotAnsweredError):
        return failure(503, f"{message}; whether it happened is not known")
    return failure(503, message, headers=_LATER)


def _render(key: Key, verb: Verb, said: Done | NotDone) -> Answer:
    """Answer with what virt-handler said; its words are a node's, which may be anybody's."""
    match said:
        case Done():
            return Answer()
        case NotDone(kind=kind, text=text):
            why = sanitize(text) or "its virt-handler does not say why"
        case _:
            assert_never(said)
    message = f"cannot {verb} {KIND} {key}: {why}"
    match kind:
        case "refused":
            return conflict(KIND, key.name, why)
        case "absent":
            return failure(404, message)
        case "busy":
            return failure(503, message, headers=_LATER)
        case "lost":
            return failure(503, f"{message}; whether it happened is not known")
        case "overdue":
            return failure(504, message)
        case _:
            assert_never(kind)

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""vnc/screenshot: a PNG of a guest's screen, by way of virt-handler.

Every failure but a full quota is a 500 of plain text, as upstream: clients know no other. The parameter moveCursor is
accepted and changes nothing, as upstream.
"""

from __future__ import annotations

import logging
from contextlib import ExitStack
from dataclasses import dataclass, field

from controlplane.api.objects.decode import DecodeError, decode_vmi
from controlplane.api.objects.phase import RUNNING
from controlplane.api.objects.pod import sanitize
from controlplane.api.objects.resources import VIRTUAL_MACHINE_INSTANCE, Key
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.engine.errors import ApiError
from controlplane.http_server.quotas import Quota
from controlplane.kube.access_review import User
from controlplane.kube.client import Client
from controlplane.links.handler import PNG_TYPE, Guest, NotDone, Picture, TakeScreenshot
from controlplane.virt_api.http.response import Response, plain_failure
from controlplane.virt_api.subresources.handler_client import HandlerClient, NotSentError, OutcomeUnknownError
from controlplane.virt_api.subresources.power import NOT_RUNNING, PowerRefusedError, guest_of

log = logging.getLogger(__name__)

AT_ONCE, AT_ONCE_OF_NAMESPACE = 8, 4
"""Screenshots that are in the memory of a virt-api; the largest has 16 MiB."""


@dataclass(frozen=True, slots=True)
class Screenshots:
    """The screenshots of this virt-api."""

    client: Client
    handlers: HandlerClient
    quota: Quota = field(default_factory=lambda: Quota(AT_ONCE, AT_ONCE_OF_NAMESPACE))

    async def get(self, key: Key, user: User, until_written: ExitStack) -> Response:
        """Take a screenshot of a VMI for an authorized caller. Never raises ApiError. BusyError.

        until_written: is closed when the response is written; until then its memory counts.
        """
        busy = f"virt-api holds {AT_ONCE_OF_NAMESPACE} screenshots of a namespace at once; try again"
        until_written.enter_context(self.quota.reserve(key.namespace, 1, busy))
        attempt = f"cannot take a screenshot of virtualmachineinstance {key}"
        try:
            vmi = decode_vmi(await self.client.get(VIRTUAL_MACHINE_INSTANCE, key))
            answer = await self.handlers.call(key.namespace, TakeScreenshot(guest_with_screen(vmi)))
        except (ApiError, DecodeError, PowerRefusedError, NotSentError, OutcomeUnknownError) as error:
            return plain_failure(f"{attempt}: {error}")
        match answer:
            case Picture(png=png):
                log.info("screenshot taken", extra={"key": key, "user": user.name, "bytes": len(png)})
                return Response(body=png, content_type=PNG_TYPE)
            case NotDone(text=why):
                return plain_failure(f"{attempt}: {sanitize(why) or 'its virt-handler gives no reason'}")
            case _:
                return plain_failure(f"{attempt}: its virt-handler answered another question")


def guest_with_screen(vmi: VirtualMachineInstance) -> Guest:
    """Return the guest of a VMI that runs and has a screen. PowerRefusedError."""
    if vmi.spec.domain.devices.autoattach_graphics_device is False:
        text = "it has no graphics device; remove autoattachGraphicsDevice: false from its spec and restart it"
        raise PowerRefusedError(text)
    if vmi.status.phase != RUNNING:
        phase = vmi.status.phase or "not set"
        raise PowerRefusedError(f"{NOT_RUNNING}: its phase is {phase}; start it, or wait until it is Running")
    return guest_of(vmi)

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A picture of a guest's screen, which libvirt sends as a stream after its reply.

Only during this call stream messages reach libvirt's client (message_filter.py). Their number is bounded by the
connection's quotas, which are raised for the call, and what is kept of them by LIMIT_BYTES.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from controlplane.domain.screenshot import PPM_LIMIT_BYTES
from controlplane.hypervisor.errors import FAILURES
from controlplane.hypervisor.transport import Transport

LIMIT_BYTES = PPM_LIMIT_BYTES
_RECEIVED_BYTES = LIMIT_BYTES + (1 << 20)
"""With the headers of messages, and one message beyond the limit, by which it is noticed."""
_PROCESSOR_SECONDS = 0.5
"""To copy and to receive LIMIT_BYTES takes a fifth of it."""
_PART_BYTES = 256 << 10
"""libvirtd sends at most this much in one message."""


@contextmanager
def quotas_extended(transport: Transport) -> Iterator[None]:
    """Raise the connection's quotas by what the largest picture takes."""
    with (
        transport.receive_quota.extended(_RECEIVED_BYTES),
        transport.cpu_quota.extended(_PROCESSOR_SECONDS),
    ):
        yield


def receive(domain: Any, transport: Transport) -> bytearray | None:
    """Take a picture of a domain's first screen; None when it is longer than the limit. Blocks; raises FAILURES."""
    stream = domain.connect().newStream(0)
    try:
        with transport.streams_allowed():
            domain.screenshot(stream, 0, 0)
            return _read(stream)
    finally:
        # No traceback may keep it: to free it may drop the connection's last reference, and only here a call is
        # counted as a user of the transport.
        del stream


def _read(stream: Any) -> bytearray | None:
    picture = bytearray()
    while part := stream.recv(_PART_BYTES):
        picture += part
        if len(picture) > LIMIT_BYTES:
            with suppress(*FAILURES):  # the connection is cut
                stream.abort()
            return None
    stream.finish()
    return picture

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The device by which a running guest gets memory: libvirt changes it only by its complete XML.

The device is cut out of the domain's XML, which comes from a tenant's side and goes back there. So it is searched as
text, and not parsed.
"""

from __future__ import annotations

from controlplane.domain.observed import LIMIT_BYTES
from controlplane.hypervisor.errors import HypervisorError

_BEGIN, _END = "<memory model='virtio-mem'", "</memory>"
_REQUESTED, _REQUESTED_END = "<requested unit='KiB'>", "</requested>"


def with_requested(xml: str, requested_bytes: int) -> str:
    """Return the device of a domain's XML with a new requested size. HypervisorError: the domain has none."""
    start = xml.find(_BEGIN, 0, LIMIT_BYTES)
    end = xml.find(_END, start, LIMIT_BYTES)
    at = xml.find(_REQUESTED, start, max(end, 0))
    until = xml.find(_REQUESTED_END, at, max(end, 0))
    if min(start, end, at, until) < 0:
        raise HypervisorError("the domain has no device for memory changes")
    kept, rest = xml[start : at + len(_REQUESTED)], xml[until : end + len(_END)]
    return f"{kept}{requested_bytes >> 10}{rest}"

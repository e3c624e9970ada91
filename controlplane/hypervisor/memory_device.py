# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The device by which a running guest gets memory, as libvirt wants to be told of a change of it: whole, as it is.

It is cut out of the domain's description, which comes from a tenant's side and goes back there: it is only searched.
"""

from __future__ import annotations

from controlplane.domain.observed import LIMIT_BYTES
from controlplane.hypervisor.errors import HypervisorError

_BEGIN, _END = "<memory model='virtio-mem'", "</memory>"
_REQUESTED, _SAID = "<requested unit='KiB'>", "</requested>"


def requesting(description: str, requested_bytes: int) -> str:
    """Return the device of a domain's description, with so much of it asked for. HypervisorError: there is none."""
    start = description.find(_BEGIN, 0, LIMIT_BYTES)
    end = description.find(_END, start, LIMIT_BYTES)
    at = description.find(_REQUESTED, start, max(end, 0))
    until = description.find(_SAID, at, max(end, 0))
    if min(start, end, at, until) < 0:
        raise HypervisorError("the domain has no device by which it gets memory")
    kept, rest = description[start : at + len(_REQUESTED)], description[until : end + len(_END)]
    return f"{kept}{requested_bytes >> 10}{rest}"

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a stream requires of a VMI, with upstream's codes. Pure.

Upstream's clients repeat a request for a console that was answered 400 until their own time-out, and no other.
"""

from __future__ import annotations

from controlplane.api.objects.phase import FAILED, RUNNING
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.links.handler import Guest
from controlplane.links.node.messages import GuestDevice
from controlplane.virt_api.subresources.power import PowerRefusedError, guest_of

_DEVICES = "spec.domain.devices"


class StreamRefusedError(Exception):
    """The VMI's state or spec does not allow the stream. The text says why.

    field: the field of the spec that the user has to change, "" if there is none. Clients do not retry then.
    """

    def __init__(self, code: int, why: str, *, field: str = "") -> None:
        super().__init__(why)
        self.code = code
        self.field = field


def guest_with(device: GuestDevice, vmi: VirtualMachineInstance) -> Guest:
    """Return the guest of a VMI that has this device and runs. StreamRefusedError."""
    devices = vmi.spec.domain.devices
    if device == "serial" and devices.autoattach_serial_console is False:
        text = "it has no serial console: remove autoattachSerialConsole: false from its spec and restart it"
        raise StreamRefusedError(400, text, field=f"{_DEVICES}.autoattachSerialConsole")
    if device == "vnc" and devices.autoattach_graphics_device is False:
        text = "it has no graphics device: remove autoattachGraphicsDevice: false from its spec and restart it"
        raise StreamRefusedError(400, text, field=f"{_DEVICES}.autoattachGraphicsDevice")
    if device == "serial" and vmi.status.phase == FAILED:
        raise StreamRefusedError(409, "it has failed; see its conditions and Events")
    return _running_guest(vmi)


def guest_with_network(vmi: VirtualMachineInstance) -> Guest:
    """Return the guest of a VMI whose ports can be reached. StreamRefusedError."""
    if not vmi.spec.domain.devices.interfaces:  # admission adds the Pod network unless the spec declines it
        text = "it has no network: add an interface to its spec and restart it"
        raise StreamRefusedError(400, text, field=f"{_DEVICES}.interfaces")
    guest = _running_guest(vmi)
    if vmi.is_user_pause_reported:
        raise StreamRefusedError(409, "it is paused; unpause it first")
    if not vmi.status.interfaces:
        raise StreamRefusedError(400, "it has no network interface in its status (yet)")
    return guest


def _running_guest(vmi: VirtualMachineInstance) -> Guest:
    phase = vmi.status.phase
    if phase != RUNNING:
        raise StreamRefusedError(400, f"it is not running (yet): its phase is {phase or 'not set'}")
    try:
        return guest_of(vmi)
    except PowerRefusedError as error:
        raise StreamRefusedError(400, "it is not running (yet)") from error

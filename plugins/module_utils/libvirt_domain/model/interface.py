# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Network interfaces on an existing tap device."""

from __future__ import annotations

from typing import ClassVar

from ..codec import attribute, child, element
from .disk import Alias, Boot


@element
class Mac:
    """The guest's MAC address."""

    TAG: ClassVar[str] = "mac"
    address: str = attribute()


@element
class TapTarget:
    """The tap device. managed=no: libvirt neither creates nor deletes it."""

    TAG: ClassVar[str] = "target"
    device: str = attribute("dev")
    managed: bool = attribute()


@element
class InterfaceModel:
    """The card model that the guest sees."""

    TAG: ClassVar[str] = "model"
    type: str = attribute()


@element
class Mtu:
    """The link's MTU in bytes."""

    TAG: ClassVar[str] = "mtu"
    size: int = attribute()


@element
class Rom:
    """The card's boot ROM."""

    TAG: ClassVar[str] = "rom"
    enabled: bool = attribute()


@element
class Interface:
    """A network card of the guest."""

    TAG: ClassVar[str] = "interface"
    type: str = attribute()
    mac: Mac = child()
    target: TapTarget = child()
    model: InterfaceModel = child()
    mtu: Mtu = child()
    rom: Rom | None = child(default=None)
    boot: Boot | None = child(default=None)
    alias: Alias = child()

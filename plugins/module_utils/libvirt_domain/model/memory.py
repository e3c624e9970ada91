# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The virtio-mem device, which gives a running guest more memory."""

from __future__ import annotations

from typing import ClassVar

from ..codec import attribute, child, element, leaf, text


@element
class Block:
    """The unit of memory that the device adds and removes."""

    TAG: ClassVar[str] = "block"
    unit: str = attribute()
    size: int = text()


@element
class Size:
    """Maximum size of the device."""

    TAG: ClassVar[str] = "size"
    unit: str = attribute()
    size: int = text()


@element
class Requested:
    """The requested size of the device."""

    TAG: ClassVar[str] = "requested"
    unit: str = attribute()
    size: int = text()


@element
class Target:
    """Sizes and NUMA node of the device."""

    TAG: ClassVar[str] = "target"
    size: Size = child()
    node: int = leaf()
    block: Block = child()
    requested: Requested = child()


@element
class MemoryDevice:
    """A memory device whose size can change while the guest runs."""

    TAG: ClassVar[str] = "memory"
    model: str = attribute()
    target: Target = child()

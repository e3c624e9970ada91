# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The device by which a guest gets memory while it runs."""

from __future__ import annotations

from typing import ClassVar

from ..codec import attribute, child, element, leaf, text


@element
class Block:
    """What is taken and given back at once."""

    TAG: ClassVar[str] = "block"
    unit: str = attribute()
    size: int = text()


@element
class Size:
    """Most that it can come to have."""

    TAG: ClassVar[str] = "size"
    unit: str = attribute()
    size: int = text()


@element
class Requested:
    """How much of it the guest is to have."""

    TAG: ClassVar[str] = "requested"
    unit: str = attribute()
    size: int = text()


@element
class Target:
    """What the guest sees of it."""

    TAG: ClassVar[str] = "target"
    size: Size = child()
    node: int = leaf()
    block: Block = child()
    requested: Requested = child()


@element
class MemoryDevice:
    """Memory of which the guest has as much as it is asked to have."""

    TAG: ClassVar[str] = "memory"
    model: str = attribute()
    target: Target = child()

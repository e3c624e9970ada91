# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Processors and memory."""

from __future__ import annotations

from typing import ClassVar

from ..codec import attribute, child, children, element, leaf, text


@element
class Memory:
    """Size of the guest's memory."""

    TAG: ClassVar[str] = "memory"
    unit: str = attribute()
    size: int = text()


@element
class MaxMemory:
    """Most memory that the guest can come to have. slots: for modules of memory, of which there are none."""

    TAG: ClassVar[str] = "maxMemory"
    slots: int = attribute()
    unit: str = attribute()
    size: int = text()


@element
class VcpuCount:
    """How many processors the guest has. current: all if None."""

    TAG: ClassVar[str] = "vcpu"
    placement: str = attribute()
    current: int | None = attribute(default=None)
    most: int = text()


@element
class Topology:
    """How all the processors are arranged that it can come to have."""

    TAG: ClassVar[str] = "topology"
    sockets: int = attribute()
    cores: int = attribute()
    threads: int = attribute()


@element
class Cell:
    """Processors and memory that are near each other."""

    TAG: ClassVar[str] = "cell"
    id: int = attribute()
    cpus: str = attribute()
    memory: int = attribute()
    unit: str = attribute()


@element
class Numa:
    """The cells."""

    TAG: ClassVar[str] = "numa"
    cells: tuple[Cell, ...] = children()


@element
class Cpu:
    """What processor the guest sees."""

    TAG: ClassVar[str] = "cpu"
    mode: str = attribute()
    match: str | None = attribute(default=None)
    check: str | None = attribute(default=None)
    model: str | None = leaf(default=None)
    topology: Topology = child()
    numa: Numa | None = child(default=None)

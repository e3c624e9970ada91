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
    """Maximum memory of the guest. slots: for memory modules, which are not used."""

    TAG: ClassVar[str] = "maxMemory"
    slots: int = attribute()
    unit: str = attribute()
    size: int = text()


@element
class VcpuCount:
    """Maximum number of processors. current: how many the guest has now; all if None."""

    TAG: ClassVar[str] = "vcpu"
    placement: str = attribute()
    current: int | None = attribute(default=None)
    most: int = text()


@element
class Topology:
    """The topology of the maximum number of processors."""

    TAG: ClassVar[str] = "topology"
    sockets: int = attribute()
    cores: int = attribute()
    threads: int = attribute()


@element
class Cell:
    """A NUMA node: processors and their memory."""

    TAG: ClassVar[str] = "cell"
    id: int = attribute()
    cpus: str = attribute()
    memory: int = attribute()
    unit: str = attribute()


@element
class Numa:
    """The NUMA nodes of the guest."""

    TAG: ClassVar[str] = "numa"
    cells: tuple[Cell, ...] = children()


@element
class Cpu:
    """The processor model that the guest sees."""

    TAG: ClassVar[str] = "cpu"
    mode: str = attribute()
    match: str | None = attribute(default=None)
    check: str | None = attribute(default=None)
    model: str | None = leaf(default=None)
    topology: Topology = child()
    numa: Numa | None = child(default=None)

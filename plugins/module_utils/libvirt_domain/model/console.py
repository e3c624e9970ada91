# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Serial console, channels and graphics."""

from __future__ import annotations

from typing import ClassVar

from ..codec import attribute, child, element

AGENT_CHANNEL = "org.qemu.guest_agent.0"
"""The channel of the guest's agent."""


@element
class Log:
    """The file to which QEMU copies all output."""

    TAG: ClassVar[str] = "log"
    file: str = attribute()
    append: bool = attribute(words=("on", "off"))


@element
class SerialTarget:
    """The port as the guest sees it."""

    TAG: ClassVar[str] = "target"
    type: str = attribute()
    port: int = attribute()


@element
class SerialSource:
    """The socket on which QEMU listens."""

    TAG: ClassVar[str] = "source"
    mode: str = attribute()
    path: str = attribute()


@element
class Serial:
    """A serial port."""

    TAG: ClassVar[str] = "serial"
    type: str = attribute()
    source: SerialSource = child()
    log: Log | None = child(default=None)
    target: SerialTarget = child()


@element
class Console:
    """The serial port as the guest's console."""

    TAG: ClassVar[str] = "console"
    type: str = attribute()
    target: SerialTarget = child()


@element
class ChannelTarget:
    """The channel's name in the guest."""

    TAG: ClassVar[str] = "target"
    type: str = attribute()
    name: str = attribute()


@element
class Channel:
    """A byte stream between guest and host."""

    TAG: ClassVar[str] = "channel"
    type: str = attribute()
    target: ChannelTarget = child()


@element
class Listen:
    """Where a graphics server listens."""

    TAG: ClassVar[str] = "listen"
    type: str = attribute()
    socket: str = attribute()


@element
class Graphics:
    """A graphics server."""

    TAG: ClassVar[str] = "graphics"
    type: str = attribute()
    listen: Listen = child()


@element
class VideoModel:
    """A graphics card's kind; vram in KiB."""

    TAG: ClassVar[str] = "model"
    type: str = attribute()
    vram: int | None = attribute(default=None)
    heads: int | None = attribute(default=None)


@element
class Video:
    """A graphics card."""

    TAG: ClassVar[str] = "video"
    model: VideoModel = child()

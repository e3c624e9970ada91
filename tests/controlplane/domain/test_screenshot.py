# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A picture of a screen: what becomes a PNG, and what is refused before anything is encoded."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

import pytest

from controlplane.domain import screenshot
from controlplane.domain.screenshot import PNG_LIMIT_BYTES, PNG_SIGNATURE, UnreadableScreenshot, to_png

RED, GREEN, BLUE = b"\xff\0\0", b"\0\xff\0", b"\0\0\xff"


def chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Read a PNG, and check the sums."""
    assert png.startswith(PNG_SIGNATURE)
    at = len(PNG_SIGNATURE)
    while at < len(png):
        length, kind = struct.unpack_from(">I4s", png, at)
        data = png[at + 8 : at + 8 + length]
        assert struct.unpack_from(">I", png, at + 8 + length) == (zlib.crc32(kind + data),)
        yield kind, data
        at += 12 + length


@pytest.mark.parametrize("separator", [b"\n", b" ", b"\r\n"])
def test_a_picture_becomes_a_png_of_the_same_pixels(separator: bytes) -> None:
    ppm = separator.join((b"P6", b"2", b"3", b"255")) + b"\n" + RED + GREEN + BLUE + RED + GREEN * 2

    parts = dict(chunks(to_png(bytearray(ppm))))

    assert list(parts) == [b"IHDR", b"IDAT", b"IEND"]
    assert parts[b"IHDR"] == struct.pack(">IIBBBBB", 2, 3, 8, 2, 0, 0, 0)
    rows = (RED + GREEN, BLUE + RED, GREEN * 2)
    assert zlib.decompress(parts[b"IDAT"]) == b"".join(b"\0" + row for row in rows)


@pytest.mark.parametrize(
    ("ppm", "text"),
    [
        (b"", "neither a PNG nor a binary PPM"),
        (b"P5\n1 1\n255\n" + RED, "neither a PNG nor a binary PPM"),
        (b"P6\n1 1\n65535\n" + RED * 2, "neither a PNG nor a binary PPM"),
        (b"P6\n# a comment\n1 1\n255\n" + RED, "neither a PNG nor a binary PPM"),
        (b"P6\n" + b" " * 100 + b"1 1\n255\n" + RED, "neither a PNG nor a binary PPM"),
        (b"P6\n-1 1\n255\n" + RED, "neither a PNG nor a binary PPM"),
        (b"P6\n100000 1\n255\n", "neither a PNG nor a binary PPM"),
        (b"P6\n\xd9\xa1 1\n255\n" + RED, "neither a PNG nor a binary PPM"),
        (b"P6\n0 5\n255\n", "0x5 pixels"),
        (b"P6\n1 8193\n255\n" + RED * 8193, "1x8193 pixels"),
        (b"P6\n8192 8192\n255\n" + RED, "3 bytes for 8192x8192 pixels"),
        (b"P6\n1 1\n255\n" + RED * 2, "6 bytes for 1x1 pixels"),
        (b"P6\n1 1\n255\n" + RED[:2], "2 bytes for 1x1 pixels"),
    ],
    ids=[
        "empty",
        "grey",
        "16 bits",
        "a comment",
        "a long gap",
        "a negative side",
        "too many digits",
        "digits of another script",
        "no pixels",
        "too high",
        "a few bytes of many pixels",
        "more bytes",
        "fewer bytes",
    ],
)
def test_what_is_not_a_whole_picture_is_refused(ppm: bytes, text: str) -> None:
    with pytest.raises(UnreadableScreenshot, match=text):
        to_png(ppm)


def a_chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def a_png(rows: bytes, *, header: bytes = b"", width: int = 2, height: int = 1, more: bytes = b"") -> bytes:
    header = header or struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    compressed = zlib.compress(rows)
    halves = a_chunk(b"IDAT", compressed[:5]) + a_chunk(b"IDAT", compressed[5:])
    return PNG_SIGNATURE + a_chunk(b"IHDR", header) + more + halves + a_chunk(b"IEND", b"")


def test_of_a_png_only_its_pixels_are_kept() -> None:
    """QEMU's own. Its filters stay: to undo them takes long in Python."""
    rows = b"\x01" + RED + GREEN

    parts = list(chunks(to_png(a_png(rows, more=a_chunk(b"tEXt", b"Comment\0<script>") + a_chunk(b"iCCP", b"x")))))

    assert [kind for kind, _unused in parts] == [b"IHDR", b"IDAT", b"IEND"]
    assert zlib.decompress(parts[1][1]) == rows


ROW = b"\0" + RED + GREEN


@pytest.mark.parametrize(
    ("png", "text"),
    [
        (PNG_SIGNATURE, "8 bits for each of three colours"),
        (a_png(ROW)[:-6], "ends within a chunk"),
        (a_png(ROW)[:-13], "not whole"),
        (a_png(ROW)[:-9], "ends within a chunk"),
        (a_png(ROW).replace(b"IHDR", b"IHDX"), "not whole"),
        (a_png(ROW, header=struct.pack(">IIBBBBB", 2, 1, 16, 2, 0, 0, 0)), "8 bits"),
        (a_png(ROW, header=struct.pack(">IIBBBBB", 2, 1, 8, 2, 0, 0, 1)), "8 bits"),
        (a_png(ROW, width=0), "0x1 pixels"),
        (a_png(ROW, height=8193), "2x8193 pixels"),
        (a_png(ROW, width=8192, height=8192), "more than"),
        (a_png(ROW * 2), "not 2x1"),
        (a_png(ROW[:-1]), "not 2x1"),
        (a_png(b"\x05" + ROW[1:]), "not 2x1"),
        (a_png(bytes(10_000_000)), "not 2x1"),
        (PNG_SIGNATURE + a_chunk(b"IHDR", a_png(ROW)[16:29]) + a_chunk(b"IDAT", b"garbage"), "decompressed"),
    ],
    ids=[
        "nothing but a signature",
        "cut within the last checksum",
        "without its end",
        "cut within the last header",
        "a wrong checksum",
        "16 bits",
        "interlaced",
        "no pixels",
        "too high",
        "too many bytes",
        "a row more",
        "a byte less",
        "an unknown filter",
        "a thousandfold expansion",
        "garbage",
    ],
)
def test_a_png_that_does_not_show_what_it_says_is_refused(png: bytes, text: str) -> None:
    with pytest.raises(UnreadableScreenshot, match=text):
        to_png(png)


@pytest.mark.parametrize(("width", "height"), [(682, 8192), (8192, 682)])
def test_no_picture_becomes_larger_than_the_limit(width: int, height: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pixels without any pattern are stored; the most rows cost the most."""
    stored = zlib.compressobj
    monkeypatch.setattr(screenshot.zlib, "compressobj", lambda: stored(0))

    png = to_png(b"P6\n%d %d\n255\n" % (width, height) + bytes(3 * width * height))

    assert 3 * width * height < len(png) <= PNG_LIMIT_BYTES

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest's screen: libvirt's picture becomes a PNG of known structure. Pure.

QEMU makes a PNG, or a PPM if it is older. The bytes are a tenant's: width and height are bounded, and have to fit the
number of bytes, of a PNG after decompression. So work and result are bounded. Of a PNG only the chunks that show pixels
are kept.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator

PPM_LIMIT_BYTES = 16 << 20
"""Bytes of a picture that are read: more than 2560x2048 pixels."""
SIDE_LIMIT = 8192
"""Pixels of its width and of its height."""
PNG_LIMIT_BYTES = PPM_LIMIT_BYTES + (64 << 10)
"""What the largest picture can become: a PNG adds a byte for each row, and a thousandth where nothing is compressed."""
PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"

_HEADER = re.compile(rb"P6\s{1,4}([0-9]{1,5})\s{1,4}([0-9]{1,5})\s{1,4}255\s", re.ASCII)
_HEADER_LIMIT_BYTES = 64
_TRUECOLOUR_8_BITS = bytes((8, 2, 0, 0, 0))
"""Of a PNG's header: 8 bits of red, green and blue; the only compression and filter method; no interlacing."""
_UNFILTERED, _LAST_FILTER = b"\0", 4
"""The byte before each row of a PNG: no filter, and the highest one."""
_CHUNK = struct.Struct(">I4s")


class UnreadableScreenshot(Exception):
    """The bytes are not a picture as QEMU makes it. The text says why."""


def to_png(picture: bytes | bytearray) -> bytes:
    """Make a PNG of libvirt's picture, a PNG or a binary PPM with 8 bits for each colour. UnreadableScreenshot."""
    if picture[: len(PNG_SIGNATURE)] == PNG_SIGNATURE:
        return _checked_png(bytes(picture))
    header = _HEADER.match(picture[:_HEADER_LIMIT_BYTES])
    if header is None:
        raise UnreadableScreenshot("it is neither a PNG nor a binary PPM with 8 bits for each colour")
    width, height = int(header[1]), int(header[2])
    _check_size(width, height)
    pixels = memoryview(picture)[header.end() :]
    if len(pixels) != 3 * width * height:
        raise UnreadableScreenshot(f"it has {len(pixels)} bytes for {width}x{height} pixels of 3 bytes")
    return _png(width, height, _compress(pixels, 3 * width))


def _checked_png(png: bytes) -> bytes:
    header, compressed = b"", bytearray()
    for kind, data in _chunks(png):
        if kind == b"IHDR":
            header = data
        elif kind == b"IDAT":
            compressed += data
    if len(header) != 13 or header[8:] != _TRUECOLOUR_8_BITS:
        raise UnreadableScreenshot("it is not a PNG with 8 bits for each of three colours")
    width, height = struct.unpack_from(">II", header)
    _check_size(width, height)
    row_bytes = 1 + 3 * width
    if row_bytes * height > PNG_LIMIT_BYTES:
        raise UnreadableScreenshot(f"its {width}x{height} pixels have more than {PPM_LIMIT_BYTES} bytes")
    decompressor = zlib.decompressobj()
    try:
        rows = decompressor.decompress(compressed, row_bytes * height + 1)
    except zlib.error as error:
        raise UnreadableScreenshot("its pixels cannot be decompressed") from error
    if len(rows) != row_bytes * height or not decompressor.eof or max(rows[::row_bytes]) > _LAST_FILTER:
        raise UnreadableScreenshot(f"its pixels are not {width}x{height}")
    return _png(width, height, bytes(compressed[: len(compressed) - len(decompressor.unused_data)]))


def _chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield kind and data of each chunk of a PNG. UnreadableScreenshot."""
    at = len(PNG_SIGNATURE)
    while at < len(png):
        if len(png) - at < _CHUNK.size:
            raise UnreadableScreenshot("it ends within a chunk")
        length, kind = _CHUNK.unpack_from(png, at)
        end = at + _CHUNK.size + length
        if len(png) < end + 4 or png[end : end + 4] != struct.pack(">I", zlib.crc32(png[at + 4 : end])):
            raise UnreadableScreenshot("it has a chunk that is not whole")
        yield kind, png[at + _CHUNK.size : end]
        at = end + 4


def _check_size(width: int, height: int) -> None:
    if not (1 <= width <= SIDE_LIMIT and 1 <= height <= SIDE_LIMIT):
        raise UnreadableScreenshot(f"it has {width}x{height} pixels; each side can have 1 to {SIDE_LIMIT}")


def _png(width: int, height: int, compressed: bytes) -> bytes:
    size = struct.pack(">II", width, height)
    return b"".join(
        (
            PNG_SIGNATURE,
            *_chunk(b"IHDR", size + _TRUECOLOUR_8_BITS),
            *_chunk(b"IDAT", compressed),
            *_chunk(b"IEND", b""),
        )
    )


def _compress(pixels: memoryview, row_bytes: int) -> bytes:
    compressor = zlib.compressobj()
    compressed = bytearray()
    for start in range(0, len(pixels), row_bytes):
        compressed += compressor.compress(_UNFILTERED)
        compressed += compressor.compress(pixels[start : start + row_bytes])
    return bytes(compressed + compressor.flush())


def _chunk(kind: bytes, data: bytes) -> tuple[bytes, bytes, bytes, bytes]:
    return struct.pack(">I", len(data)), kind, data, struct.pack(">I", zlib.crc32(data, zlib.crc32(kind)))

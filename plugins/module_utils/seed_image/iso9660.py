# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write a small ISO 9660 image with Joliet names, the format of a NoCloud seed. Pure.

The structures are ECMA-119's. Joliet is a second directory tree with UCS-2 names, which Linux and Windows prefer and
cloud-init needs ("meta-data" is not a valid ISO 9660 name). There is one directory with a few files. Numbers that ISO
9660 stores twice are little-endian, then big-endian. Dates are zero, so equal content gives equal bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

SECTOR = 2048
_SYSTEM_SECTORS = 16
_FILE_LIMIT = 16
_PADDING_SECTORS = 150
"""The same padding as mkisofs. BusyBox's blkid reads 68 KiB ahead and does not recognise a smaller disk."""

_ALIGNMENT = 65536
"""With direct I/O, QEMU only opens files whose size is a multiple of the storage's block size: mostly 512, 4096 on
newer disks and on tmpfs, a page of up to 64 KiB elsewhere."""


def write_iso(label: str, files: Mapping[str, bytes]) -> bytes:
    """Return an image with these files in its root. Raises ValueError for unsupported names and sizes."""
    if not files or len(files) > _FILE_LIMIT or not (label.isascii() and 0 < len(label) <= 16):
        raise ValueError(f"an ISO has 1 to {_FILE_LIMIT} files and a label of 1 to 16 ASCII characters")
    primary_root, joliet_root = _SYSTEM_SECTORS + 7, _SYSTEM_SECTORS + 8
    first = _SYSTEM_SECTORS + 9
    extents: list[tuple[str, int, int]] = []
    body = bytearray()
    for name, data in sorted(files.items()):
        if not name.isascii() or not 0 < len(name) <= 60:
            raise ValueError(f"{name!r} is not a name for a file on an ISO")
        extents.append((name, first + len(body) // SECTOR, len(data)))
        body += data + bytes(-len(data) % SECTOR)
    body += bytes(_PADDING_SECTORS * SECTOR)
    body += bytes(-(first * SECTOR + len(body)) % _ALIGNMENT)
    total = first + len(body) // SECTOR
    plain = [(f"FILE{number:04}.;1".encode(), at, size) for number, (_unused, at, size) in enumerate(extents)]
    long = sorted((f"{name};1".encode("utf-16-be"), at, size) for name, at, size in extents)
    tables = _SYSTEM_SECTORS + 3
    sectors = [
        _volume(1, label, total=total, table=tables, root=primary_root),
        _volume(2, label, total=total, table=tables + 2, root=joliet_root),
        _sector(b"\xffCD001\x01"),
        _sector(_path_table("<", primary_root)),
        _sector(_path_table(">", primary_root)),
        _sector(_path_table("<", joliet_root)),
        _sector(_path_table(">", joliet_root)),
        _directory(primary_root, plain),
        _directory(joliet_root, long),
    ]
    return bytes(_SYSTEM_SECTORS * SECTOR) + b"".join(sectors) + bytes(body)


def _volume(kind: int, label: str, *, total: int, table: int, root: int) -> bytes:
    """Return a volume descriptor: primary (1), or Joliet's supplementary (2)."""
    is_joliet = kind == 2

    def text(value: str, size: int) -> bytes:
        if is_joliet:
            return value.ljust(size // 2).encode("utf-16-be").ljust(size, b"\0")
        return value.encode().ljust(size, b" ")

    record = bytes([kind]) + b"CD001\x01\0" + text("", 32) + text(label, 32) + bytes(8) + _both32(total)
    record += b"%/E".ljust(32, b"\0") if is_joliet else bytes(32)  # the escape sequence of UCS-2 level 3
    record += _both16(1) + _both16(1) + _both16(SECTOR) + _both32(10)
    record += struct.pack("<II", table, 0) + struct.pack(">II", table + 1, 0)
    record += _record(b"\0", root, SECTOR, is_directory=True)
    record += text("", 128) * 4 + text("", 37) * 3
    record += (b"0" * 16 + b"\0") * 4 + b"\x01\0"
    return _sector(record)


def _path_table(order: str, root: int) -> bytes:
    return struct.pack(f"{order}BBIH", 1, 0, root, 1) + b"\0\0"


def _directory(at: int, entries: list[tuple[bytes, int, int]]) -> bytes:
    own = _record(b"\0", at, SECTOR, is_directory=True) + _record(b"\1", at, SECTOR, is_directory=True)
    return _sector(own + b"".join(_record(name, extent, size) for name, extent, size in entries))


def _record(name: bytes, extent: int, size: int, *, is_directory: bool = False) -> bytes:
    length = 33 + len(name)
    length += length % 2
    record = struct.pack("BB", length, 0) + _both32(extent) + _both32(size) + bytes(7)
    record += struct.pack("BBB", 2 if is_directory else 0, 0, 0) + _both16(1) + bytes([len(name)]) + name
    return record.ljust(length, b"\0")


def _both16(number: int) -> bytes:
    return struct.pack("<H", number) + struct.pack(">H", number)


def _both32(number: int) -> bytes:
    return struct.pack("<I", number) + struct.pack(">I", number)


def _sector(data: bytes) -> bytes:
    if len(data) > SECTOR:
        raise ValueError("a structure of the ISO does not fit into its sector")
    return data.ljust(SECTOR, b"\0")

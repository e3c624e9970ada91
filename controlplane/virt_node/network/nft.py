# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""libnftables in this process, in the network namespace of the calling thread. It renders no rules."""

from __future__ import annotations

import ctypes
import hashlib
from functools import cache

_LIBRARY = "libnftables.so.1"
_MAX_DIGESTS = 1024
_read_back: dict[bytes, bytes] = {}
"""Digest of the table that was read after a transaction, by the transaction's digest."""


class NftError(Exception):
    """The kernel or libnftables refused a transaction, and applied no part of it."""


@cache
def _library() -> ctypes.CDLL:
    try:
        library = ctypes.CDLL(_LIBRARY)
    except OSError as error:
        raise NftError(f"cannot load {_LIBRARY}: install libnftables1 in the image of virt-node") from error
    library.nft_ctx_new.restype = ctypes.c_void_p
    library.nft_ctx_new.argtypes = [ctypes.c_uint32]
    library.nft_ctx_free.argtypes = [ctypes.c_void_p]
    library.nft_ctx_buffer_output.argtypes = [ctypes.c_void_p]
    library.nft_ctx_buffer_error.argtypes = [ctypes.c_void_p]
    library.nft_run_cmd_from_buffer.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    for name in ("nft_ctx_get_output_buffer", "nft_ctx_get_error_buffer"):
        getattr(library, name).restype = ctypes.c_char_p
        getattr(library, name).argtypes = [ctypes.c_void_p]
    return library


def keep(table: str, commands: str) -> bool:
    """Run the commands that replace a table, unless the table already has that content. Return whether they ran.

    NftError. Reading takes 0.1 ms; a transaction waits for the kernel's other processors, some 10 ms. libnftables
    prints a table in its own spelling, so this compares the table with what this process read after it wrote the table.
    """
    wanted = _digest(commands)
    if wanted in _read_back and _read(table) == _read_back[wanted]:
        return False
    run(commands)
    if len(_read_back) >= _MAX_DIGESTS:
        _read_back.clear()
    _read_back[wanted] = _read(table)
    return True


def _read(table: str) -> bytes:
    try:
        return _digest(run(f"list table {table}"))
    except NftError:  # most likely, the table does not exist
        return b""


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def run(commands: str) -> str:
    """Run commands as one transaction and return their output. NftError with libnftables' message."""
    library = _library()
    context = library.nft_ctx_new(0)
    if not context:
        raise NftError("cannot create a libnftables context")
    try:
        library.nft_ctx_buffer_output(context)
        library.nft_ctx_buffer_error(context)
        if library.nft_run_cmd_from_buffer(context, commands.encode()) != 0:
            message = library.nft_ctx_get_error_buffer(context) or b""
            raise NftError(f"nftables refused the rules: {message.decode(errors='replace').strip()}")
        return str((library.nft_ctx_get_output_buffer(context) or b"").decode())
    finally:
        library.nft_ctx_free(context)

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""libnftables in this process, in the network namespace of the calling thread. No rule text is made here."""

from __future__ import annotations

import ctypes
from functools import cache

_LIBRARY = "libnftables.so.1"


class NftError(Exception):
    """The kernel or libnftables refused a transaction; nothing of it was applied."""


@cache
def _library() -> ctypes.CDLL:
    try:
        library = ctypes.CDLL(_LIBRARY)
    except OSError as error:
        raise NftError(f"cannot load {_LIBRARY}: install libnftables1 in the image of virt-handler") from error
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


def run(commands: str) -> str:
    """Run commands as one transaction and return what they print; NftError with libnftables' words."""
    library = _library()
    context = library.nft_ctx_new(0)
    if not context:
        raise NftError("cannot make a libnftables context")
    try:
        library.nft_ctx_buffer_output(context)
        library.nft_ctx_buffer_error(context)
        if library.nft_run_cmd_from_buffer(context, commands.encode()) != 0:
            said = library.nft_ctx_get_error_buffer(context) or b""
            raise NftError(f"nftables refused the rules: {said.decode(errors='replace').strip()}")
        return str((library.nft_ctx_get_output_buffer(context) or b"").decode())
    finally:
        library.nft_ctx_free(context)

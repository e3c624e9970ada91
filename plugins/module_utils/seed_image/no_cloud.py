# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of a NoCloud seed, and their size limit."""

from __future__ import annotations

from .iso9660 import write_iso

LABEL = "cidata"
PART_LIMIT_BYTES = 64 * 1024


class PartTooLargeError(ValueError):
    """A part of a seed has more than PART_LIMIT_BYTES bytes. part: e.g. user data."""

    def __init__(self, part: str) -> None:
        super().__init__(f"the {part} has over {PART_LIMIT_BYTES} bytes, more than a seed carries")
        self.part = part


def write_seed(meta_data: bytes, user_data: bytes | None = None, network_data: bytes | None = None) -> bytes:
    """Return the ISO image of a seed. Raises PartTooLargeError.

    cloud-init ignores a seed without a user-data file, so that file always exists. Empty network data is written too:
    without the file cloud-init generates a network configuration.
    """
    for part, data in (("user data", user_data), ("network data", network_data)):
        if data is not None and len(data) > PART_LIMIT_BYTES:
            raise PartTooLargeError(part)
    files = {"meta-data": meta_data, "user-data": user_data or b""}
    if network_data is not None:
        files["network-config"] = network_data
    return write_iso(LABEL, files)

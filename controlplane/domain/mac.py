# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The MAC address of a guest's interface when the user names none. Nothing about addresses of other layers.

virt-controller derives it, from a UID that the machine keeps over its runs, and puts it into the launch plan. The other
processes read it there.
"""

from __future__ import annotations

import hashlib
import re

_FORM = re.compile(r"[0-9a-f]{2}([:-][0-9a-f]{2}){5}")


def guest_mac(uid: str, interface: str, given: str | None = None) -> str:
    """Return the address of an interface: the one given in the spec, spelled as libvirt does, else a derived one.

    uid: of the machine. A derived address is a locally administered unicast one; ValueError when the given address is
    not a unicast MAC address. 40 bits are derived, so two of 10,000 guests on one network share an address once in
    20,000 such networks.
    """
    if given:
        return _unicast(given)
    digest = hashlib.sha256(f"{uid}/{interface}".encode()).digest()
    return ":".join(f"{byte:02x}" for byte in (0x02, *digest[:5]))


def is_guest_mac(text: str) -> bool:
    """Tell whether a text is an address that guest_mac can have returned."""
    try:
        return _unicast(text) == text
    except ValueError:
        return False


def _unicast(given: str) -> str:
    spelled = given.strip().lower()
    if not _FORM.fullmatch(spelled):
        raise ValueError(f"{given!r} is not a MAC address; write six hexadecimal pairs, e.g. 02:12:34:56:78:9a")
    octets = spelled.replace("-", ":")
    if int(octets[:2], 16) & 1 or octets == "00:00:00:00:00:00":
        raise ValueError(f"{given!r} is not the address of one interface (multicast or zero)")
    return octets

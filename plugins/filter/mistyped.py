# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter mistyped: names that nobody knows, each with the nearest that somebody does. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping

DOCUMENTATION = r"""
name: mistyped
short_description: Choose names that nobody knows, and say which known one is nearest
version_added: 0.1.0
author:
  - virtops (@virtops)
description:
  - Takes names and the known ones, and returns a text for each that is not known.
  - Role P(virtops.kubevirt.control_plane#role) refuses mistyped variables with it.
options:
  _input:
    description: The names.
    type: list
    elements: str
    required: true
  known:
    description: The known names.
    type: list
    elements: str
    required: true
  alike:
    description:
      - How much an unknown name must be like a known one to be taken for it, from V(0) to V(1). By default any unknown
        one is mistyped; where others have names of the kind, only one that is near.
      - It is the share of letters that are as in the known name, of the longer of both. Case, C(-) and C(_) do not
        count, and two letters in the wrong order are one.
      - A name that has a known one among its words, such as C(kubevirt_client_ip) or C(my_kubevirt_client), is then
        somebody else's, and so is one that begins with C(_) or has other digits.
    type: float
    default: 0.0
positional: known
"""

EXAMPLES = r"""
- name: Say what is mistyped
  ansible.builtin.debug:
    msg: "{{ ['node_kvm_require'] | virtops.kubevirt.mistyped(['node_kvm_required', 'node_kvm_python']) }}"
    # ["node_kvm_require (is node_kvm_required meant?)"]

- name: Leave alone what is not like a known name
  ansible.builtin.debug:
    msg: "{{ ['kubevirt_node', 'kubevirt_version'] | virtops.kubevirt.mistyped(['kubevirt_nodes'], alike=0.9) }}"
    # ["kubevirt_node (is kubevirt_nodes meant?)"]
"""

RETURN = r"""
_value:
  description: A text for each name that is not known, in their order.
  type: list
  elements: str
"""


_BREAKS = re.compile("[-_]+")
_DIGITS = re.compile("[0-9]")
_TOUCHED = 4
"""How many groups of three letters one edit changes at most, two letters in the wrong order."""


def mistyped(names: Iterable[str], known: Iterable[str], alike: float = 0.0) -> list[str]:
    """Return a text for each name that is not known; with `alike` (0 to 1) only where a known one is so near."""
    valid = list(known)
    taken = set(valid)
    unknown = list(dict.fromkeys(str(name) for name in names if name not in taken))
    nearest = _nearly(unknown, valid, alike) if alike else {name: _nearest(name, valid) for name in unknown}
    return [f"{name} (is {meant} meant?)" if meant else name for name, meant in nearest.items()]


def _nearest(name: str, known: list[str]) -> str:
    found = difflib.get_close_matches(name, known, n=1, cutoff=0.0)
    return found[0] if found else ""


def _nearly(names: list[str], known: list[str], alike: float) -> dict[str, str]:
    """Return those names that are nearly a known one, and which."""
    plain = {_plain(one): one for one in known}
    groups = {one: _groups(one) for one in plain}
    every = frozenset().union(*groups.values())
    found = {}
    for name in names:
        near = "" if name.startswith("_") else _nearest_plain(_plain(name), groups, every, alike)
        if near and not _is_among_words(near, name):
            found[name] = plain[near]
    return found


def _plain(name: str) -> str:
    return _BREAKS.sub("", name).lower()


def _groups(plain: str) -> frozenset[str]:
    """Return each three letters in a row: that few edits change few of these is fast to see."""
    return frozenset(map("".join, zip(plain, plain[1:], plain[2:], strict=False)))


def _nearest_plain(name: str, known: Mapping[str, frozenset[str]], every: frozenset[str], alike: float) -> str:
    if name in known:
        return name
    groups, nearest, fewest = _groups(name), "", len(name)
    if len(groups - every) > _TOUCHED * _most(len(name) / alike, alike):
        return ""  # most of thousands end here
    for one, others in known.items():
        most = min(_most(max(len(name), len(one)), alike), fewest - 1)
        if abs(len(name) - len(one)) > most or len(groups - others) > _TOUCHED * most:
            continue
        edits = _edits(name, one)
        if edits <= most and _DIGITS.findall(name) == _DIGITS.findall(one):
            nearest, fewest = one, edits
    return nearest


def _most(length: float, alike: float) -> int:
    """Return how many edits leave a name of this length alike."""
    return int((1 - alike) * length + 1e-9)


def _edits(name: str, other: str) -> int:
    """Return how many letters to put in, take out, replace or exchange with the next make one of the other."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(name):
        above, before, row = before, row, [i + 1]
        for j, target in enumerate(other):
            edits = min(before[j] + (letter != target), before[j + 1] + 1, row[j] + 1)
            if i and j and letter == other[j - 1] and name[i - 1] == target:
                edits = min(edits, above[j - 1] + 1)
            row.append(edits)
    return row[-1]


def _is_among_words(plain: str, name: str) -> bool:
    """Return whether a name is a known one with further words before or after it."""
    words = [word for word in _BREAKS.split(name.lower()) if word]
    joined = ["".join(words[:end]) for end in range(1, len(words))] + [
        "".join(words[start:]) for start in range(1, len(words))
    ]
    return plain in joined


class FilterModule:
    """What Ansible looks for."""

    def filters(self) -> dict[str, Callable[..., list[str]]]:
        """Return the filter."""
        return {"mistyped": mistyped}

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The private filter _mistyped: unknown names, each with the most similar known name. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from difflib import SequenceMatcher, get_close_matches

DOCUMENTATION = r"""
name: _mistyped
short_description: Internal, list unknown names with the nearest known name
author:
  - virtops (@virtops)
description:
  - For the roles and playbooks of this collection only. It may change in any release.
  - Takes names and the known names, and returns a text for each name that is not known.
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
      - How similar an unknown name must be to a known one to be listed, from V(0) to V(1). By default every unknown
        name is listed. Use it where other software has names of the same kind.
      - Similarity is the share of letters that both names have in the same order, of the longer name. Case, C(-) and
        C(_) do not count.
      - Names that contain a known name as words, such as C(kubevirt_client_ip) or C(my_kubevirt_client), are not listed
        then, nor are names that begin with C(_) or C(ansible_), or that differ in digits.
    type: float
    default: 0.0
positional: known
"""

EXAMPLES = r"""
- name: List mistyped names
  ansible.builtin.debug:
    msg: "{{ ['node_kvm_require'] | virtops.kubevirt._mistyped(['node_kvm_required', 'node_kvm_python']) }}"
    # ["node_kvm_require (is node_kvm_required meant?)"]

- name: Ignore names that do not resemble a known one
  ansible.builtin.debug:
    msg: "{{ ['kubevirt_node', 'kubevirt_version'] | virtops.kubevirt._mistyped(['kubevirt_nodes'], alike=0.9) }}"
    # ["kubevirt_node (is kubevirt_nodes meant?)"]
"""

RETURN = r"""
_value:
  description: A text for each unknown name, in their order.
  type: list
  elements: str
"""


def mistyped(names: Iterable[str], known: Iterable[str], alike: float = 0.0) -> list[str]:
    """Return a text for each unknown name. alike: from 0 to 1, the similarity to a known name that a name must have."""
    valid = dict.fromkeys(known)
    plain = {_plain(name): name for name in valid}
    trigrams = frozenset().union(*map(_trigrams, plain))
    texts = []
    for name in dict.fromkeys(map(str, names)):
        if name in valid:
            continue
        if not alike:
            similar = get_close_matches(_plain(name), plain, n=1, cutoff=0.0)
        elif len(_trigrams(_plain(name)) & trigrams) < len(_plain(name)) / 2:
            continue  # skips most of thousands of names: comparing them all in full would take seconds
        else:
            similar = _similar(name, plain, alike)
        if similar or not alike:
            texts.append(f"{name} (is {plain[similar[0]]} meant?)" if similar else name)
    return texts


def _similar(name: str, known: Iterable[str], alike: float) -> list[str]:
    """Return the known names that are similar enough, the most similar first. Case and underscores do not count."""
    if name.startswith(("_", "ansible_")):
        return []
    plain, words = _plain(name), [word for word in re.split("[-_]+", name.lower()) if word]
    parts = {"".join(words[:end]) for end in range(1, len(words))}
    parts |= {"".join(words[start:]) for start in range(1, len(words))}
    candidates = [other for other in known if min(len(plain), len(other)) >= alike * max(len(plain), len(other))]
    return [
        other
        for other in get_close_matches(plain, candidates, cutoff=alike)
        if _matched(plain, other) >= alike * max(len(plain), len(other))
        and re.findall("[0-9]", plain) == re.findall("[0-9]", other)
        and other not in parts
    ]


def _matched(name: str, other: str) -> int:
    """Return how many letters both names share in the same order."""
    return sum(block.size for block in SequenceMatcher(None, name, other).get_matching_blocks())


def _trigrams(plain: str) -> frozenset[str]:
    return frozenset(plain[start : start + 3] for start in range(len(plain) - 2))


def _plain(name: str) -> str:
    return re.sub("[-_]", "", name).lower()


class FilterModule:
    """The class that Ansible looks for."""

    def filters(self) -> dict[str, Callable[..., list[str]]]:
        """Return the filter."""
        return {"_mistyped": mistyped}

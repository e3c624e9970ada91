# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter mistyped: names that nobody knows, each with the nearest that somebody does. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable

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
        one is mistyped; where others have names of the kind, only one that is near. One that goes on from a known name
        with C(_) and more is then somebody else's.
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


def mistyped(names: Iterable[str], known: Iterable[str], alike: float = 0.0) -> list[str]:
    """Return a text for each name that is not known; with `alike` (0 to 1) only where a known one is so near."""
    valid = list(known)
    unknown = [str(name) for name in names if name not in valid and not (alike and _goes_on(str(name), valid))]
    nearest = {name: _nearest(name, valid, alike) for name in unknown}
    return [name + meant for name, meant in nearest.items() if meant or not alike]


def _goes_on(name: str, known: list[str]) -> bool:
    return any(name.startswith(f"{one}_") and name != f"{one}_" for one in known)


def _nearest(name: str, known: list[str], alike: float) -> str:
    found = difflib.get_close_matches(name, known, n=1, cutoff=alike)
    return f" (is {found[0]} meant?)" if found else ""


class FilterModule:
    """What Ansible looks for."""

    def filters(self) -> dict[str, Callable[..., list[str]]]:
        """Return the filter."""
        return {"mistyped": mistyped}

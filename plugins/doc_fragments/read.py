# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the options that say which objects to read, and what to wait for."""

from __future__ import annotations


class ModuleDocFragment:
    """Shared by the modules that read."""

    DOCUMENTATION = r"""
options:
  label_selectors:
    description:
      - Label selectors that must all match, such as V(app=web).
    type: list
    elements: str
    default: []
  field_selectors:
    description:
      - Field selectors that must all match, such as V(metadata.name=web).
    type: list
    elements: str
    default: []
  wait_condition:
    description:
      - With O(wait=true), wait for this condition instead of the default.
    type: dict
    suboptions:
      type:
        description: Its type, such as V(Ready).
        type: str
        required: true
      status:
        description: Its status. A missing condition counts as V("False").
        type: str
        choices: ['True', 'False', Unknown]
        default: 'True'
      reason:
        description: Its reason; any by default.
        type: str
"""

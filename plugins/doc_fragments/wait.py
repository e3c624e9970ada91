# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the options that say how to wait and what not to show."""

from __future__ import annotations


class ModuleDocFragment:
    """Shared by the VM modules."""

    DOCUMENTATION = r"""
options:
  api_version:
    description:
      - API version of the objects.
    type: str
    default: kubevirt.io/v1
  wait_sleep:
    description:
      - Accepted so that tasks written for C(kubevirt.core) run unchanged, and without effect.
        Waiting is a watch here, which hears of every change at once.
    type: int
  wait_timeout:
    description:
      - How many seconds to wait. Where the server answers badly or not at all, it may be a few seconds more.
      - Only used with O(wait=true).
    type: int
    default: 120
  hidden_fields:
    description:
      - Fields to leave out of the result, of the diff and of the decision whether something changed.
      - Written as a path, V(metadata.managedFields); keys that hold dots go into brackets.
    type: list
    elements: str
    default:
      - metadata.annotations[kubemacpool.io/transaction-timestamp]
      - metadata.managedFields
"""

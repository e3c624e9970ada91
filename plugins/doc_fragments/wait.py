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
      - Has no effect; accepted for tasks written for C(kubevirt.core). The module watches the objects instead of
        polling.
    type: int
  wait_timeout:
    description:
      - How many seconds to wait. If the server does not respond properly, it may take a few seconds longer.
      - Only used with O(wait=true).
    type: int
    default: 120
  hidden_fields:
    description:
      - Fields that result and diff omit, and that do not count as a change.
      - A path such as V(metadata.managedFields); keys with dots are in brackets.
    type: list
    elements: str
    default:
      - metadata.annotations[kubemacpool.io/transaction-timestamp]
      - metadata.managedFields
"""

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
      - Used with O(wait=true), and without it while an object of the same name is being deleted, which has to be gone
        before another is created.
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

    FAIL_FAST = r"""
options:
  fail_fast:
    description:
      - End the wait for a machine before O(wait_timeout) when it has been for 15 seconds in a state that does not end
        by itself. For a member of a set or pool, and for the target of a migration, that takes up to a minute. The
        message has the cause, and the requested amount or labels.
      - These states are a missing PersistentVolumeClaim, an image that cannot be pulled, and a machine that no node can
        take because of its memory, its CPUs or its node selector. A node counts with all that it has, also if other
        machines use it, and if it is cordoned, tainted or not ready.
      - Somebody else may still add a claim or a node, or bring a registry back. Set V(false) to wait for that.
      - For nodes it needs the right to list them. Without it the task waits.
    type: bool
    default: true
"""

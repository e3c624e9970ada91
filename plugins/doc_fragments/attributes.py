# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of what the modules can do: check mode, diff, action group."""

from __future__ import annotations


class ModuleDocFragment:
    """Attributes of modules; each module adds its details."""

    DOCUMENTATION = r"""
attributes:
  check_mode:
    description: Supports check mode, which reports the changes without making them.
  diff_mode:
    description: Reports the changes with C(--diff).
  idempotent:
    description: A second run with the same arguments changes nothing.
"""

    ACTIONGROUP = r"""
attributes:
  action_group:
    description: Takes defaults from C(module_defaults) of this group.
    support: full
    membership:
      - virtops.kubevirt.kubevirt
"""

    INFO = r"""
attributes:
  check_mode:
    description: Supports check mode, which reports the changes without making them.
    support: full
    details:
      - This module only reads. In check mode it does not wait, because an earlier task of the playbook may create or
        start what it would wait for.
  diff_mode:
    description: Reports the changes with C(--diff).
    support: N/A
    details:
      - This module only reads.
  idempotent:
    description: A second run with the same arguments changes nothing.
    support: full
"""

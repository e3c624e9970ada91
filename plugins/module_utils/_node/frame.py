# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the work of a module that needs no API server: arguments in, result or one error out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from .._client.errors import VirtError


def run(module: AnsibleModule, work: Callable[..., dict[str, Any]]) -> None:
    """Call work(params, check_mode=) and exit the module with what it returns or raises."""
    try:
        result = work(dict(module.params), check_mode=module.check_mode)
    except VirtError as error:
        module.fail_json(msg=error.message, **error.facts)
    module.exit_json(**result)

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the work of a module: arguments in, result or one error out. Like _node/frame.py it uses AnsibleModule."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Mapping
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from . import redact
from .api import Api
from .endpoint import resolve
from .errors import VirtError
from .shapes import misshapen

_FROM_ENVIRONMENT = ("kubeconfig", "host", "proxy", "proxy_headers")
"""Options that may come from the environment and contain secrets. Options that are secrets as a whole are no_log."""


class VirtModule(AnsibleModule):
    """An AnsibleModule that collects the secrets before it checks its arguments, because the check may print them.

    entries: the option that takes several objects. Its suboptions are options of the task, which the documentation
    describes once. Ansible compares the documentation with the constructor's argument_spec, so that lacks them; the
    arguments are checked against all.
    """

    def __init__(self, *, argument_spec: dict[str, Any], entries: str = "", **rules: Any) -> None:
        self._whole_spec = argument_spec
        super().__init__(argument_spec=documented(argument_spec, entries), **rules)

    def _load_params(self) -> None:
        super()._load_params()
        self.argument_spec = {**self.argument_spec, **self._whole_spec}  # Ansible may have added options for files
        self.no_log_values.update(redact.secrets_in_arguments(self.params, self.argument_spec))
        wrong = misshapen(self.argument_spec, self.params)
        if wrong:  # Ansible's own check would end in a TypeError that names no option
            self.fail_json(msg=wrong)


def documented(spec: Mapping[str, Any], entries: str) -> dict[str, Any]:
    """Return the options as they are documented: that for several objects without its suboptions."""
    return {
        name: {key: value for key, value in option.items() if key in ("type", "elements")}
        if name == entries
        else option
        for name, option in spec.items()
    }


def run(module: VirtModule, work: Callable[..., dict[str, Any]]) -> None:
    """Call work(params, api, check_mode=, diff=) and exit the module with what it returns or raises."""
    gc.freeze()  # loaded modules stay in memory; collecting garbage among them would cost 3 % of a short task
    # plain values: ansible-core 2.19 tags strings, and the tags must not reach requests and comparisons
    params = {name: _plain(value) for name, value in module.params.items()}
    config = {
        name: params[name] for name in _FROM_ENVIRONMENT if name in params
    }  # options from the environment are missing until the check
    module.no_log_values.update(redact.secrets_in_arguments(config, module.argument_spec))
    try:
        endpoint = resolve(params, os.environ)
        module.no_log_values.update(text for text in endpoint.secrets() if len(text) >= redact.SHORTEST)
        for text in endpoint.warnings:
            module.warn(text)
        result = work(params, Api.connect(endpoint), check_mode=module.check_mode, diff=module._diff)
    except VirtError as error:
        facts = _warned(module, error.facts)
        module.fail_json(msg=error.message, **{key: value for key, value in facts.items() if key != "msg"})
    module.exit_json(**_warned(module, result))


def _warned(module: AnsibleModule, result: Mapping[str, Any]) -> dict[str, Any]:
    """Pass the warnings of a result to Ansible, and return the rest of the result."""
    for text in result.get("warnings", ()):
        module.warn(text)
    return {key: value for key, value in result.items() if key != "warnings"}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    return str(value) if isinstance(value, str) else value

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run tasks of roles and playbooks in this process: Ansible's own templates, functions in place of modules.

Ansible itself runs the playbooks in playbooks/test_ends.py and the roles' first tasks in roles/test_variables.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ansible.parsing.dataloader import DataLoader
from ansible.plugins.loader import init_plugin_loader
from ansible.template import Templar, trust_as_template
from ansible.utils.collection_loader import AnsibleCollectionConfig

from . import conftest

ROOT = Path(__file__).resolve().parents[2]
ROLES, PLAYBOOKS = ROOT / "roles", ROOT / "playbooks"
KEYWORDS = frozenset({
    "name", "when", "vars", "loop", "loop_control", "register", "until", "retries", "delay", "failed_when",
    "changed_when", "check_mode", "diff", "no_log", "run_once", "delegate_to", "delegate_facts", "tags", "become",
    "block", "rescue", "always",
})  # fmt: skip
Module = Callable[[dict[str, Any]], dict[str, Any]]

# Ansible's importer asks the package that conftest has made for the collection's meta/runtime.yml.
conftest.COLLECTION.__dict__.setdefault("_collection_meta", {})
if AnsibleCollectionConfig.collection_finder is None:  # set where tests/integration has imported this file before
    init_plugin_loader([])


class Failed(Exception):
    """A task failed; the text is its message."""

    def __init__(self, task: str, result: Mapping[str, Any]) -> None:
        super().__init__(result.get("msg", ""))
        self.scope = {"ansible_failed_task": {"name": task}, "ansible_failed_result": result}


def load(path: Path) -> Any:
    """Return the content of a YAML file; its texts are templates."""
    return DataLoader().load_from_file(str(path), trusted_as_template=True)


def role_variables(role: str) -> dict[str, Any]:
    """Return the defaults and variables of a role."""
    files = [ROLES / role / folder / "main.yml" for folder in ("defaults", "vars")]
    variables: dict[str, Any] = {"role_path": str(ROLES / role)}
    for path in files:
        variables |= load(path) if path.exists() else {}
    return variables


class Host:
    """A host that tasks run on.

    folder: where included files and templates are. modules: functions by the names of modules; they take the arguments
    and return the result. Afterwards `variables` has the facts, `messages` the texts of debug. `extra`: variables of
    -e, which have precedence over those of tasks.
    """

    def __init__(self, folder: Path, variables: Mapping[str, Any], **modules: Module) -> None:
        self.folder, self.variables, self.messages = folder, dict(variables), list[str]()
        self.extra: dict[str, Any] = {}
        self._modules: dict[str, Module] = modules
        self._loader = DataLoader()
        self._loader.set_basedir(str(folder))

    def value(self, template: Any, scope: Mapping[str, Any] | None = None) -> Any:
        """Return a template's value."""
        if not isinstance(template, (str, list, dict)):
            return template
        trusted = trust_as_template(template) if isinstance(template, str) else template
        return self._templar(scope).template(trusted)

    def holds(self, conditions: Any, scope: Mapping[str, Any] | None = None) -> bool:
        """Return whether all conditions hold, as of `when` or `that`."""
        if isinstance(conditions, bool):
            return conditions
        templar = self._templar(scope)
        each = conditions if isinstance(conditions, list) else [conditions]
        return all(templar.evaluate_conditional(item) for item in each)

    def refusal(self, tasks: Path | list[dict[str, Any]]) -> str:
        """Run tasks; return the message of the one that fails, "" when none does."""
        try:
            self.run(tasks)
        except Failed as failure:
            return str(failure)
        return ""

    def run(self, tasks: Path | list[dict[str, Any]], scope: Mapping[str, Any] | None = None) -> None:
        """Run tasks in their order. Raises Failed."""
        for task in load(tasks) if isinstance(tasks, Path) else tasks:
            self._run_task(task, {**(scope or {}), **task.get("vars", {})})

    def _run_task(self, task: dict[str, Any], scope: dict[str, Any]) -> None:
        if "block" in task:
            if self.holds(task.get("when", True), scope):
                self._run_block(task, scope)
            return
        results = [self._run_item(task, scope | item) for item in self._items(task, scope)]
        if "register" in task:
            self.variables[task["register"]] = {"results": results} if "loop" in task else results[0]

    def _run_block(self, task: dict[str, Any], scope: dict[str, Any]) -> None:
        try:
            self.run(task["block"], scope)
        except Failed as failure:
            if "rescue" not in task:
                raise
            self.run(task["rescue"], scope | failure.scope)

    def _items(self, task: dict[str, Any], scope: dict[str, Any]) -> list[dict[str, Any]]:
        if "loop" not in task:
            return [{}]
        name = task.get("loop_control", {}).get("loop_var", "item")
        return [{name: item} for item in self.value(task["loop"], scope)]

    def _run_item(self, task: dict[str, Any], scope: dict[str, Any]) -> dict[str, Any]:
        if not self.holds(task.get("when", True), scope):
            return {"changed": False, "skipped": True}
        (module,) = task.keys() - KEYWORDS
        for _attempt in range(self.value(task.get("retries", 0), scope) + 1):
            result = self._call(module, task, scope)
            self.variables[task.get("register", "_unused")] = result
            if self.holds(task.get("until", True), scope):
                break
        else:
            result = {**result, "failed": True}
        if self.holds(task.get("failed_when", result.get("failed", False)), scope):
            raise Failed(task["name"], result)
        return {**result, **{key: scope[key] for key in ("item",) if key in scope}}

    def _call(self, module: str, task: dict[str, Any], scope: dict[str, Any]) -> dict[str, Any]:
        arguments, short = task[module] or {}, module.rpartition(".")[2]
        if short in ("include_tasks", "import_tasks"):
            self.run(self.folder / self.value(arguments, scope), scope)
        elif short == "assert":
            if not self.holds(arguments["that"], scope):
                return {"failed": True, "msg": self.value(arguments["fail_msg"], scope)}
            if not self.value(arguments["quiet"], scope):
                self.messages.append(self.value(arguments["success_msg"], scope))
        elif short == "fail":
            return {"failed": True, "msg": self.value(arguments["msg"], scope)}
        elif short == "debug":
            self.messages.append(self.value(arguments["msg"], scope))
        elif short == "set_fact":
            self._set(task, self.value(arguments, scope))
        else:
            return self._modules[short](self.value(arguments, scope))
        return {"changed": False}

    def _set(self, task: dict[str, Any], facts: dict[str, Any]) -> None:
        """Set facts, of this host or of the one that they are delegated to."""
        host = self.value(task.get("delegate_to", ""))
        (self.variables["hostvars"][host] if host else self.variables).update(facts)

    def _templar(self, scope: Mapping[str, Any] | None) -> Templar:
        return Templar(loader=self._loader, variables={**self.variables, **(scope or {}), **self.extra})

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module kubevirt_console: runs a dialogue on the serial console of an instance, or reads what it printed before.

The console is opened like `virtctl console`: a machine that does not run yet (HTTP 400) is asked again every second.
"""

from __future__ import annotations

import re
import time
from typing import Any

from .._client import paths, redact
from .._client.api import Api, Resource
from .._client.argspec import auth_argument_spec
from .._client.errors import ApiError, BadArgument, NotFound, TimedOut, VirtError
from .._client.websocket import WebSocket, opened
from .._client.websocket_messages import Messages
from .._vm import console_log, guest_access, kinds
from ..kubevirt_api import condition_types, names
from ..kubevirt_api.predicates import is_condition_true
from .dialogue import Dialogue, Step

RETRY_SECONDS = 1.0
_ADD_CONSOLE = "remove autoattachSerialConsole: false from its spec and restart it"
_CONTROLS = re.compile(r"[\x00-\x1f\x7f]+")


def argument_spec() -> dict[str, Any]:
    """Return the options of kubevirt_console."""
    step = {
        "send": {"type": "str"},
        "send_secret": {"type": "str", "no_log": True},
        "enter": {"type": "bool", "default": True},
        "expect": {"type": "str"},
        "timeout": {"type": "int", "default": 60},
    }
    rules = {"mutually_exclusive": [("send", "send_secret")]}
    return {
        **auth_argument_spec(),
        "name": {"type": "str", "required": True},
        "namespace": {"type": "str", "required": True},
        "backlog": {"type": "bool", "default": True},
        "steps": {"type": "list", "elements": "dict", "options": step, **rules},
        "log_lines": {"type": "int"},
        "log_since": {"type": "int"},
        "timeout": {"type": "int", "default": 120},
    }


def secret_parts(params: dict[str, Any]) -> set[str]:
    """Return the lines of what is sent in secret: a guest that echoes several shows prompts between them."""
    secrets = (step.get("send_secret") or "" for step in params.get("steps") or ())
    return {part for secret in secrets for part in _CONTROLS.split(secret) if len(part) >= redact.SHORTEST}


def run(params: dict[str, Any], api: Api, *, check_mode: bool, diff: bool) -> dict[str, Any]:
    """Run the steps, or read the log. Sending changes something; reading does not."""
    del diff
    paths.check_name("name", params["name"])
    paths.check_namespace("namespace", params["namespace"])
    for option in ("log_lines", "log_since", "timeout"):
        if params.get(option) is not None and params[option] < 1:
            raise BadArgument(f"{option} is {params[option]}; give 1 or more")
    steps = [Step(number, options) for number, options in enumerate(params.get("steps") or ())]
    instances = kinds.instances(params["namespace"])
    result: dict[str, Any] = {"changed": any(step.sent is not None for step in steps)}
    if params.get("log_lines") or params.get("log_since"):
        result["log"] = _read_log(api, instances, params)
    if not steps or check_mode:
        return {**result, "transcript": "", "steps": []}
    consoles = kinds.operations(kinds.VMI, params["namespace"])
    # What a machine printed before is no response to what is sent.
    with_backlog = params.get("backlog", True) and steps[0].sent is None
    messages = Messages(_open(api, consoles, params["name"], params["timeout"], with_backlog=with_backlog))
    try:
        dialogue = Dialogue(
            messages, instances.title(params["name"]), find_reason=lambda: _find_reason(api, instances, params["name"])
        )
        matches = dialogue.run(steps)
    finally:
        messages.close()
    return {**result, "transcript": dialogue.text, "steps": matches}


def _open(api: Api, consoles: Resource, name: str, seconds: int, *, with_backlog: bool) -> WebSocket:
    """Open the console. with_backlog: upstream's KubeVirt ignores that parameter, and has no backlog."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            query = {"backlog": with_backlog or None}
            return opened(api, consoles, name, "console", names.STREAM_PROTOCOL, query=query)
        except ApiError as error:
            refusal = guest_access.explained(error)
            if error.status != 400 or guest_access.is_lasting(error):
                raise refusal from error
            if time.monotonic() + RETRY_SECONDS > deadline:
                raise TimedOut(f"{refusal.message}; waited for {seconds} s", **refusal.facts) from error
        time.sleep(RETRY_SECONDS)


def _find_reason(api: Api, instances: Resource, name: str) -> str:
    """Say why a guest prints nothing, "" if that is not known. Never raises the API's errors: the timeout counts."""
    try:
        instance = api.get(instances, name) or {}
    except VirtError:
        return ""
    return f"it is paused; {guest_access.UNPAUSE}" if is_condition_true(instance, condition_types.PAUSED) else ""


def _read_log(api: Api, instances: Resource, params: dict[str, Any]) -> list[str]:
    instance = api.get(instances, params["name"])
    if instance is None:
        text = f"there is no {instances.title(params['name'])}: its log is kept with its Pod; {guest_access.START}"
        raise NotFound(text, status=404)
    if not _has_console(instance):
        text = f"{instances.title(params['name'])} has no serial console, so there is no log of it; {_ADD_CONSOLE}"
        raise VirtError(text)
    launchers = api.list(kinds.pods(params["namespace"]), labels=kinds.launchers(instance))
    lines, since_seconds = params.get("log_lines"), params.get("log_since")
    return console_log.read(api, instance, launchers, lines=lines, since_seconds=since_seconds)


def _has_console(instance: dict[str, Any]) -> bool:
    """Tell whether the machine has a serial console; without one its log is empty for ever. Pure."""
    devices = ((instance.get("spec") or {}).get("domain") or {}).get("devices") or {}
    return devices.get("autoattachSerialConsole") is not False

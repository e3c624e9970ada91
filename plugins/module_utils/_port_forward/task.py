# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module kubevirt_port_forward: waits until the guest listens, then forwards a local port for some time."""

from __future__ import annotations

import time
from contextlib import closing, suppress
from typing import Any

from .._client import paths, websocket_frames
from .._client.api import Api, Resource
from .._client.argspec import auth_argument_spec
from .._client.errors import ApiError, BadArgument, NotFound, TimedOut, VirtError
from .._vm import guest_access, kinds
from .forward import Forward
from .open_port import open_port

RETRY_SECONDS = 1.0
_NOT_YET = (400, 500, 503)
"""Refusals of a machine that starts: it does not run yet, or its program does not listen yet."""


def argument_spec() -> dict[str, Any]:
    """Return the options of kubevirt_port_forward."""
    return {
        **auth_argument_spec(),
        "name": {"type": "str", "required": True},
        "namespace": {"type": "str", "required": True},
        "port": {"type": "int", "required": True},
        "local_port": {"type": "int"},
        "timeout": {"type": "int", "default": 120},
        "lifetime": {"type": "int", "default": 600},
        "idle_timeout": {"type": "int", "default": 60},
    }


def run(params: dict[str, Any], api: Api, *, check_mode: bool, diff: bool) -> dict[str, Any]:
    """Forward the port until nobody uses it, or the lifetime is over. Fails if the newest connection has failed."""
    del diff
    _check(params)
    local_port = params.get("local_port") or params["port"]
    result: dict[str, Any] = {"changed": False, "local_port": local_port, "connections": 0, "errors": []}
    if check_mode:
        return result
    guests = kinds.operations(kinds.VMI, params["namespace"])
    with closing(Forward(api, guests, params["name"], params["port"], local_port=local_port)) as forward:
        _wait_until_open(api, guests, params)
        forward.start()
        is_idle = forward.wait(params["lifetime"], params["idle_timeout"])
    result.update(
        connections=forward.connections,
        bytes_to_guest=forward.to_guest,
        bytes_from_guest=forward.from_guest,
        ended_by="idle_timeout" if is_idle else "lifetime",
        errors=forward.errors,
    )
    if forward.has_failed_last:
        raise VirtError(forward.errors[-1], **result)
    return result


def _check(params: dict[str, Any]) -> None:
    paths.check_name("name", params["name"])
    paths.check_namespace("namespace", params["namespace"])
    for option in ("port", "local_port"):
        value = params.get(option)
        if value is not None and not 0 < value < 65536:
            raise BadArgument(f"{option} is {value}; give a number from 1 to 65535")
    for option in ("timeout", "lifetime", "idle_timeout"):
        if params[option] < 1:
            raise BadArgument(f"{option} is {params[option]}; give 1 or more seconds")


def _wait_until_open(api: Api, guests: Resource, params: dict[str, Any]) -> None:
    """Wait until a connection to the port can be opened, and close it. The API's errors, TimedOut."""
    deadline = time.monotonic() + params["timeout"]
    while True:
        try:
            stream = open_port(api, guests, params["name"], params["port"])
        except ApiError as error:
            if isinstance(error, NotFound) or error.status not in _NOT_YET or guest_access.is_lasting(error):
                raise
            if time.monotonic() + RETRY_SECONDS > deadline:
                text = f"{error.message}; waited for {params['timeout']} s"
                raise TimedOut(text, **error.facts) from error
        else:
            with suppress(OSError):  # the guest has ended it already
                stream.socket.sendall(websocket_frames.close())
            stream.close()
            return
        time.sleep(RETRY_SECONDS)

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module kubevirt_screenshot: reads a PNG of an instance's screen, and gives it to what writes the file."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from .._client import paths
from .._client.api import Api, Resource
from .._client.argspec import auth_argument_spec
from .._client.errors import ApiError, NotFound, Unavailable, VirtError
from .._vm import guest_access, kinds
from ..kubevirt_api.predicates import is_running, phase

CONTENT_TYPE = "image/png"
_PNG = b"\x89PNG\r\n\x1a\n", b"IHDR"
_HEADER = struct.Struct(">8s4x4sII")
"""The beginning of a PNG: signature, the first chunk's length and kind, width, height."""

Write = Callable[[bytes], bool]
"""Brings the file up to date, except in check mode; returns whether it differed. VirtError."""


def argument_spec() -> dict[str, Any]:
    """Return the options of kubevirt_screenshot, without Ansible's own for files."""
    return {
        **auth_argument_spec(),
        "name": {"type": "str", "required": True},
        "namespace": {"type": "str", "required": True},
        "dest": {"type": "path", "required": True},
    }


def run(params: dict[str, Any], api: Api, *, write: Write) -> dict[str, Any]:
    """Take a screenshot and write it. It is also taken in check mode: only so it is known whether the file changes."""
    paths.check_name("name", params["name"])
    paths.check_namespace("namespace", params["namespace"])
    machines = kinds.operations(kinds.VMI, params["namespace"])
    try:
        png = api.download(machines, params["name"], "vnc/screenshot", CONTENT_TYPE)
    except ApiError as error:
        raise _explained(error, api, kinds.instances(params["namespace"]), params["name"]) from error
    width, height = _read_size(png, machines.title(params["name"]))
    return {"changed": write(png), "path": params["dest"], "width": width, "height": height, "size": len(png)}


def _explained(error: ApiError, api: Api, instances: Resource, name: str) -> ApiError:
    """Return a refusal with what to do. Every failure is 500 (docs/api.md), so the instance tells what it is."""
    refusal = guest_access.explained(error)
    if error.status != 500:
        return refusal
    try:
        instance = api.get(instances, name)
    except VirtError:
        return refusal
    attempt = f"cannot take a screenshot of {instances.title(name)}"
    if instance is None:
        return NotFound(f"{attempt}: it does not exist, or is stopped; {guest_access.START}", status=404)
    if is_running(instance):
        return refusal
    text = f"{attempt}: it is not running (yet): its phase is {phase(instance) or 'not set'}; {guest_access.START}"
    return ApiError(text, **refusal.facts)


def _read_size(png: bytes, title: str) -> tuple[int, int]:
    """Return width and height of a PNG in pixels. Unavailable if it is none."""
    if len(png) >= _HEADER.size:
        signature, kind, width, height = _HEADER.unpack_from(png)
        if (signature, kind) == _PNG:
            return width, height
    raise Unavailable(f"cannot take a screenshot of {title}: unexpected response, {len(png)} bytes that are no PNG")

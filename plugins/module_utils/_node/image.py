# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Load, pull or remove an image on this node: decide whether anything is to be done, and let the runtime do it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from .._client.errors import BadArgument, VirtError
from .containerd import Containerd
from .crio import SOCKET, Crio
from .records import Record, digests_of, names_of, repository_of

CONTAINERD, CRIO = "containerd", "cri-o"


class Runtime(Protocol):
    """A container runtime."""

    def records(self) -> list[Record]:
        """Return every name of every image."""

    def load(self, name: str, archive: str) -> None:
        """Import an archive."""

    def pull(self, name: str, username: str = "", password: str = "") -> None:
        """Pull from a registry."""

    def remove(self, repository: str) -> list[str]:
        """Remove a repository with its content; return the removed names."""


def runtime_spec() -> dict[str, Any]:
    """Return the options that choose a runtime and its programs."""
    return {
        "runtime": {"type": "str", "choices": ["auto", CONTAINERD, CRIO], "default": "auto"},
        "ctr": {"type": "str", "default": Containerd.client},
        "crictl": {"type": "str", "default": Crio.client},
        "importer": {"type": "str", "default": ""},
        "registry_hosts": {"type": "path", "default": Containerd.hosts_directory},
    }


def image_spec() -> dict[str, Any]:
    """Return the options of the module that changes images."""
    return {
        **runtime_spec(),
        "name": {"type": "str", "required": True},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "archive": {"type": "path"},
        "digest": {"type": "str"},
        "pull": {"type": "str", "choices": ["missing", "always"], "default": "missing"},
        "username": {"type": "str"},
        "password": {"type": "str", "no_log": True},
    }


def kind_of_runtime(option: str, has_socket: Callable[[str], bool] = lambda path: Path(path).exists()) -> str:
    """Return the node's runtime: the option's, else CRI-O if its socket exists, else containerd."""
    if option != "auto":
        return option
    return CRIO if has_socket(SOCKET) else CONTAINERD


def runtime_of(params: dict[str, Any]) -> Runtime:
    """Return the node's runtime, as the options describe it."""
    if kind_of_runtime(params["runtime"]) == CRIO:
        return Crio(params["crictl"], params["importer"])
    return Containerd(params["ctr"], params["registry_hosts"])


def describe(params: dict[str, Any], *, check_mode: bool) -> dict[str, Any]:
    """Return the runtime and its images."""
    del check_mode  # it only reads
    images: dict[str, list[str]] = {}
    for record in _records(runtime_of(params), params):
        images.setdefault(record.name, []).append(record.digest)
    return {"changed": False, "runtime": kind_of_runtime(params["runtime"]), "images": images}


def ensure(params: dict[str, Any], *, check_mode: bool) -> dict[str, Any]:
    """Load, pull or remove an image."""
    runtime = runtime_of(params)
    records = _records(runtime, params)
    if params["state"] == "absent":
        names = names_of(repository_of(params["name"]), records)
        if names and not check_mode:
            names = runtime.remove(repository_of(params["name"]))
        return {"changed": bool(names), "removed": names}
    _check(params)
    name, before = params["name"], digests_of(params["name"], records)
    if not _is_wanted(params, before):
        return {"changed": False, "digest": _digest(params, before)}
    if check_mode:
        return {"changed": True, "digest": params["digest"] or ""}
    if params["archive"]:
        runtime.load(name, params["archive"])
    else:
        runtime.pull(name, params["username"] or "", params["password"] or "")
    after = digests_of(name, runtime.records())
    if not after or (params["archive"] and params["digest"] and params["digest"] not in after):
        raise VirtError(
            f"{name} was loaded and is missing: the node has {', '.join(after) or 'nothing'} under this name"
        )
    return {"changed": after != before, "digest": _digest(params, after)}


def _is_wanted(params: dict[str, Any], present: list[str]) -> bool:
    """Tell whether to load or pull. An archive is compared by its digest; `pull` says when to ask a registry."""
    if params["archive"]:
        return params["digest"] not in present
    return not present or params["pull"] == "always"


def _digest(params: dict[str, Any], present: list[str]) -> str:
    return params["digest"] if params["digest"] in present else present[0]


def _check(params: dict[str, Any]) -> None:
    if params["archive"] and params["digest"] is None:
        raise BadArgument("archive needs digest: the digest of the archive, to tell whether the node has it")
    if bool(params["username"]) != bool(params["password"]):
        raise BadArgument("username and password go together")
    if ":" in (params["username"] or ""):
        raise BadArgument("username has a colon, which ends the name in a registry's credentials")


def _records(runtime: Runtime, params: dict[str, Any]) -> list[Record]:
    try:
        return runtime.records()
    except VirtError as error:
        kind = kind_of_runtime(params["runtime"])
        option = "crictl" if kind == CRIO else "ctr"
        raise VirtError(
            f"{kind} on this node cannot list images: {error.message}. Name its client, with arguments if it needs any "
            f"('k3s ctr'), in {option}, which is launcher_image_{option} of the role, or name another runtime"
        ) from error

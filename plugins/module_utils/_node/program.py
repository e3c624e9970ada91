# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a program: return its output, or raise one error that names it.

A password is typed at the program's terminal and is never an argument, because every user can read the arguments.
"""

from __future__ import annotations

import os
import pty
import shlex
import subprocess
from collections.abc import Mapping, Sequence

from .._client.errors import BadArgument, VirtError

_LINES_SHOWN = 5


def words(command: str) -> list[str]:
    """Split a command with arguments ("k3s ctr")."""
    parts = shlex.split(command)
    if not parts:
        raise BadArgument("the name of a program is empty")
    return parts


def run(command: Sequence[str], *, typed: str = "", environment: Mapping[str, str] | None = None) -> str:
    """Run a program and return its output. typed: the input for its prompt.

    Raises VirtError with the last lines of its output.
    """
    variables = {**os.environ, "LC_ALL": "C.UTF-8", **(environment or {})}
    try:
        done = _typing(command, typed, variables) if typed else _plain(command, variables)
    except OSError as error:
        raise VirtError(f"cannot run {command[0]}: {error.strerror or error}") from error
    if done.returncode != 0:
        last_lines = "\n".join((done.stderr or done.stdout).strip().splitlines()[-_LINES_SHOWN:])
        raise VirtError(f"{shlex.join(command)} failed with exit code {done.returncode}: {last_lines}")
    return done.stdout


def _plain(command: Sequence[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        errors="replace",
    )


def _typing(command: Sequence[str], typed: str, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    if not typed.isprintable():
        raise BadArgument("a password with control characters cannot be typed")
    controller, terminal = pty.openpty()
    try:
        os.write(controller, typed.encode() + b"\n")
        return subprocess.run(
            command, stdin=terminal, capture_output=True, text=True, check=False, env=environment, errors="replace"
        )
    finally:
        os.close(terminal)
        os.close(controller)

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The file that a task writes: atomically, with Ansible's options for files. Like frame.py it uses AnsibleModule."""

from __future__ import annotations

import os
import stat
import tempfile
from typing import TYPE_CHECKING

from .._client.errors import BadArgument

if TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule


def write(module: AnsibleModule, data: bytes) -> bool:
    """Give the file at O(dest) this content, and the attributes of the task; return whether anything differs.

    In check mode nothing is written. BadArgument if there can be no file. Other failures end the module.
    """
    dest = module.params["dest"]
    folder = os.path.dirname(os.path.abspath(dest))
    if os.path.isdir(dest):
        raise BadArgument(f"dest {dest} is a folder; give the name of a file")
    if not os.path.isdir(folder):
        raise BadArgument(f"dest {dest}: there is no folder {folder}; create it first")
    is_different = _content(dest, len(data)) != data
    if is_different and not module.check_mode:
        descriptor, staged = tempfile.mkstemp(dir=module.tmpdir)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        _move(module, staged, dest)
    changed: bool = module.set_fs_attributes_if_different(
        module.load_file_common_arguments(module.params), is_different
    )
    return changed


def _move(module: AnsibleModule, staged: str, dest: str) -> None:
    """Bring a file into place, at no time with more rights than the task's mode gives; its other attributes follow."""
    mode, umask = module.params["mode"], os.umask(0o077)
    try:
        if mode is None:
            os.umask(umask)
        elif os.path.exists(dest):  # a move keeps its mode
            module.set_mode_if_different(dest, mode, False)
        else:  # a move gives it the usual mode
            os.chmod(staged, 0o666 & ~umask)  # in a private folder
            module.set_mode_if_different(staged, mode, False)
            os.umask(umask | ~stat.S_IMODE(os.stat(staged).st_mode) & 0o777)
        module.atomic_move(staged, dest, unsafe_writes=module.params["unsafe_writes"])
    finally:
        os.umask(umask)


def _content(path: str, size: int) -> bytes | None:
    """Return what a file has, if it has about this size; None if it differs or there is none. BadArgument."""
    try:
        if os.path.getsize(path) != size:
            return None
        with open(path, "rb") as file:
            return file.read(size + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BadArgument(f"dest {path} cannot be read: {error.strerror}") from error

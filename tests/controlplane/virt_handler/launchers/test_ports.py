# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""virt-handler dials the socket that it was given, even if another socket has the name by then."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from controlplane.virt_handler.launchers.ports import LauncherSocket


def test_a_handed_over_socket_is_dialled_though_another_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # a socket path has 108 bytes at most
    with socket.socket(socket.AF_UNIX) as proven, socket.socket(socket.AF_UNIX) as planted:
        for listener in (proven, planted):
            Path("sock").unlink(missing_ok=True)
            listener.bind("sock")
            listener.listen()
            listener.setblocking(False)
            if listener is proven:
                handed_over = LauncherSocket(os.open("sock", os.O_PATH))
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(handed_over.path)
            proven.accept()[0].close()
        with pytest.raises(BlockingIOError):
            planted.accept()
    handed_over.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(handed_over.descriptor)

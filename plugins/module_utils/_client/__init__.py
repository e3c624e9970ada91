# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Kubernetes client of all plugins; knows nothing about virtual machines.

argspec     options                    endpoint    options to address and credentials (kubeconfig, kubeconfig_shape,
frame       the module around its work             exec_login)
api         calls on objects           transport   HTTP (deadline, failures, proxy); streams
websocket   its handshake; websocket_messages: binary messages; websocket_frames: how a WebSocket carries them
objects     checks of responses        refusals    errors of the API server
parallel    several calls at once      waiter      wait for objects
redact      hide secrets               errors      what all of them raise
shapes      shapes of option values    paths       URLs, and checks of names

This file imports nothing of this collection. Ansible compiles the imported files on each run of a task. So code that
few tasks need is in files of its own, which are imported where they are used. Python's importer of zip files compiles
each file twice: to return its name, and to run it. Payload avoids the first, which saves 20 ms per task.
"""

from __future__ import annotations

import sys
import zipimport


class Payload(zipimport.zipimporter):
    """An importer for the zip file that Ansible sends. It returns the name of a file without compiling the file."""

    def get_filename(self, fullname: str) -> str:
        """Return the path of a module's file in the archive."""
        end = "/__init__.py" if self.is_package(fullname) else ".py"
        return f"{self.archive}/{self.prefix}{fullname.rpartition('.')[2]}{end}"


def compile_once() -> None:
    """Import the following files by Payload, if this file comes from a zip file."""
    if isinstance(__spec__.loader, zipimport.zipimporter) and Payload not in sys.path_hooks:
        sys.path_hooks.insert(0, Payload)


compile_once()

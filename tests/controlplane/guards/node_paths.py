# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What root's process opens of a launcher's directory, and what one launcher costs the others of its node."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_LAUNCHER_DIR = "controlplane/virt_node/launcher_dir.py"
_BY_NAMES = ("tests/controlplane/test_opened_by_name.py",)
_BY_GUESTS = ("tests/controlplane/test_what_guests_say.py",)
_BY_HOSTILE = ("tests/controlplane/virt_handler/test_story_hostile.py",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file=_LAUNCHER_DIR,
        line="_DIRECTORY = os.O_PATH | os.O_NOFOLLOW |",
        without="_DIRECTORY = os.O_PATH |",
        because="A launcher's link in the place of a directory leads root wherever it wants.",
        tests=_BY_NAMES,
    ),
    Guard(
        file=_LAUNCHER_DIR,
        line="_LEAF = os.O_PATH | os.O_NOFOLLOW |",
        without="_LEAF = os.O_PATH |",
        because="A launcher's link in the place of its socket or report is anybody's socket or file.",
        tests=_BY_NAMES,
    ),
    Guard(
        file=_LAUNCHER_DIR,
        line="os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW |",
        without="os.O_CREAT |",
        because="Root writes over whatever a planted link leads to.",
        tests=_BY_NAMES,
    ),
    Guard(
        file=_LAUNCHER_DIR,
        line="following = os.open(name, os.O_RDONLY | os.O_NOFOLLOW |",
        without="following = os.open(name, os.O_RDONLY |",
        because="Root makes directories, and gives them away, wherever a planted link leads.",
        tests=_BY_NAMES,
    ),
    Guard(
        file=_LAUNCHER_DIR,
        line="        os.stat(name, dir_fd=directory_fd, follow_symlinks=False)",
        without="        os.stat(name, dir_fd=directory_fd)",
        because="Whether a file is there is answered for whatever a planted link leads to.",
        tests=_BY_NAMES,
    ),
    Guard(
        file="controlplane/virt_handler/report_file.py",
        line="            data = file.read(REPORT_LIMIT_BYTES + 1)",
        without="            data = file.read()",
        because="A launcher's report of any length is in virt-handler's memory.",
        tests=_BY_NAMES,
    ),
    Guard(
        file="controlplane/virt_handler/report_file.py",
        line="    finally:\n        os.close(descriptor)",
        without="    finally:\n        pass",
        because="Each report that cannot be read leaves a descriptor in virt-handler.",
        tests=("tests/controlplane/virt_handler/test_node_client.py",),
    ),
    Guard(
        file="controlplane/domain/observed.py",
        line='.get("machine", "")[:_WORD_LIMIT]',
        without='.get("machine", "")',
        because="A launcher fills the status of its VMI with a word of any length.",
        tests=_BY_GUESTS,
    ),
    Guard(
        file="controlplane/virt_handler/launchers/registry.py",
        line="            except Exception:\n                log.exception(",
        without="            except LookupError:\n                log.exception(",
        because="A bug that one launcher meets ends virt-handler, and every contact of its node.",
        tests=_BY_HOSTILE,
    ),
    Guard(
        file="controlplane/virt_node/launcher_process.py",
        line="            if _has_exited(pidfd):",
        without="            if not pidfd:",
        because="A process that has the number of one that exited would have its network changed for a guest's.",
        tests=("tests/controlplane/virt_node/test_launcher_process.py",),
    ),
)

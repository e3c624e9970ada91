# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is believed of a launcher, and how long: what it says that is no text, and when it is gone or back."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_BY_HOSTILE = ("tests/controlplane/hypervisor/test_hostile.py",)
_BY_LOOK = ("tests/controlplane/virt_handler/launchers/test_session_look.py",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file="controlplane/hypervisor/calls.py",
        line="            failure = translate_text_error(self._doing, error) or error\n",
        without="            failure = error\n",
        because="A launcher that answers in bytes that are no text is taken for a bug of ours.",
        tests=_BY_HOSTILE,
    ),
    Guard(
        file="controlplane/hypervisor/errors.py",
        line="    said = error.__cause__ if isinstance(error, SystemError) else error\n",
        without="    said = error\n",
        because="Of a failure whose reason is no text the binding raises another error than of an answer.",
        tests=_BY_HOSTILE,
    ),
    Guard(
        file="controlplane/hypervisor/events.py",
        line="    except UnicodeError:\n",
        without="    except KeyError:\n",
        because="A launcher must not write a traceback into our log with each event that it sends.",
        tests=_BY_HOSTILE,
    ),
    Guard(
        file="controlplane/virt_handler/launchers/session.py",
        line="        except (UnreadableError, NotText) as error:\n",
        without="        except UnreadableError as error:\n",
        because="A launcher whose description is no text must not cost a new contact at each look.",
        tests=_BY_LOOK,
    ),
    Guard(
        file="controlplane/virt_launcher/image.py",
        line="    if not names[0].isprintable():",
        without="    if False:",
        because="A report with a path that is no text is refused by whoever reads it, who can only say that it is wrong.",
        tests=("tests/controlplane/virt_launcher/test_image.py",),
    ),
)

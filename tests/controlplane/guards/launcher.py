# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a launcher Pod may use, and what is believed of what it says."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_LAUNCH_PLAN = "controlplane/api/launch_plan.py"
_HANDLER_STATUS = "controlplane/virt_handler/vmi/status.py"
_BY_LAUNCH_PLAN = ("tests/controlplane/api/test_launch_plan.py",)
_BY_HANDLER_STATUS = ("tests/controlplane/virt_handler/vmi/test_status.py",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file=_LAUNCH_PLAN,
        line="    except RecursionError as error:",
        without="    except UnicodeError as error:",
        because="A report nested deeply must be refused like any other, not end the session that reads it.",
        tests=_BY_LAUNCH_PLAN,
    ),
    Guard(
        file=_HANDLER_STATUS,
        line='status="False", reason=word(reason), message=bounded(message)',
        without='status="False", reason=reason, message=message',
        because="What a tenant's side says must not fill a status, nor reach a terminal as it is.",
        tests=_BY_HANDLER_STATUS,
    ),
)

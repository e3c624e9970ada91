# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""kubevirt_service: somebody else's Service stays, and what nobody spoke of."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_EXPOSURE = "plugins/module_utils/_service/exposure.py"
_WHOSE = "plugins/module_utils/_service/whose.py"
_EXPOSE = "plugins/module_utils/_service/ensure.py"
_BY_WHOSE = ("tests/unit/plugins/module_utils/_service/test_whose.py",)
_BY_SERVICE_MODULE = ("tests/unit/plugins/module_utils/_service/test_expose.py",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file=_EXPOSE,
        line="        raise VirtError(found)\n",
        without="        pass\n",
        because="A Service of somebody's that has a machine's name would find the machine instead, and go with it.",
        tests=_BY_WHOSE,
    ),
    Guard(
        file=_WHOSE,
        line=" or (selector and selector in ours):",
        without=" or not selector or names.VMI_ID in selector:",
        because="A Service of endpoints made by hand, or another machine's, would be taken over or deleted.",
        tests=_BY_WHOSE,
    ),
    Guard(
        file=_WHOSE,
        line='    if params.get("state") != "absent" and params.get("name") and ',
        without='    if params.get("name") and ',
        because="A Service that was moved to another machine would be deleted with what it was for.",
        tests=_BY_WHOSE,
    ),
    Guard(
        file=_EXPOSURE,
        line="    selector = {**dict.fromkeys(old), **wanted",
        without="    selector = {**wanted",
        because="A Service would select by old and new labels at once, and find no Pod.",
        tests=_BY_SERVICE_MODULE,
    ),
    Guard(
        file=_EXPOSURE,
        line="            others = [one for one in there if (",
        without="            others = [one for one in there if True or (",
        because="A Service that belongs to what is gone is deleted by the garbage collector.",
        tests=_BY_SERVICE_MODULE,
    ),
    Guard(
        file=_EXPOSE,
        line='        wanted["spec"].pop("ports", None)',
        without="        pass",
        because="A task that says nothing of ports would replace those that are there.",
        tests=_BY_SERVICE_MODULE,
    ),
    Guard(
        file=_EXPOSE,
        line='{**(patch.get("metadata") or {}), **version}',
        without='{**(patch.get("metadata") or {})}',
        because="A list that was read would overwrite the port that somebody adds meanwhile.",
        tests=_BY_SERVICE_MODULE,
    ),
)

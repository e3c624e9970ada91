# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""expand-spec, expand-vm-spec: what is answered is true, and was asked for by whom it is allowed."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_EXPANSION = "controlplane/virt_api/expansion.py"
_BY_EXPANSION = ("tests/controlplane/virt_api/test_expansion.py",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file=_EXPANSION,
        line="    if referred:\n",
        without="    if False:\n",
        because="A machine of an instance type, answered as it is, would be taken for expanded.",
        tests=_BY_EXPANSION,
    ),
    Guard(
        file=_EXPANSION,
        line='    if named not in (None, "", namespace):\n',
        without="    if False:\n",
        because="The caller was asked about for the namespace of the path, and for no other.",
        tests=_BY_EXPANSION,
    ),
    Guard(
        file=_EXPANSION,
        line='"namespace": namespace, "deletionTimestamp": None}',
        without='"namespace": namespace}',
        because="What says that it is being deleted is not judged, and would be called good whatever it is.",
        tests=_BY_EXPANSION,
    ),
    Guard(
        file=_EXPANSION,
        line='    if vm.get("apiVersion") not in API_VERSIONS:\n',
        without="    if False:\n",
        because="An object of another group would be judged, and answered, as a machine.",
        tests=_BY_EXPANSION,
    ),
    Guard(
        file=_EXPANSION,
        line="        check_growth(vm)\n",
        without="",
        because="What is nested without end must not be walked through.",
        tests=_BY_EXPANSION,
    ),
    Guard(
        file="controlplane/virt_api/subresources.py",
        line="            return await self.judges.judge(key.namespace, verdict)\n",
        without='            return await self.judges.judge("", verdict)\n',
        because="Whoever asks for many machines at once would keep everybody else from theirs.",
        tests=_BY_EXPANSION,
    ),
    Guard(
        file="controlplane/virt_api/routes.py",
        line="    if resource == EXPAND.resource and not named:\n",
        without="    if resource == EXPAND.resource:\n",
        because="A name that is not reviewed must not be in the path.",
        tests=("tests/controlplane/virt_api/test_routes.py",),
    ),
)

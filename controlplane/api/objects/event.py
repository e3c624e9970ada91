# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An Event that somebody else wrote, as far as it is read: about which object it is, and what it says. Pure.

What it says is anybody's word who may make Events in the namespace; kube.events is where ours are made.
"""

from __future__ import annotations

from controlplane.api.objects.meta import Node, ObjectMeta


class InvolvedObject(Node, frozen=True, kw_only=True):
    kind: str = ""
    name: str = ""
    uid: str = ""


class Event(Node, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    involved_object: InvolvedObject = InvolvedObject()
    reason: str = ""
    message: str = ""

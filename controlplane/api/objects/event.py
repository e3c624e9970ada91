# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An Event of another component: its object, reason and message. Types only.

Its content is untrusted: any user who may create Events in the namespace can write it. kube.events creates our Events.
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

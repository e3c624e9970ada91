# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which VMI belonged to which VM: read from the API repeatedly, and never forgotten."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from lab.cluster.api import Api
from lab.errors import ApiError
from tests.chaos.journal import Names

VMIS = "/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances"
OWNERS = {"VirtualMachine": "vm", "VirtualMachineInstanceReplicaSet": "vmirs"}


@dataclass
class Roster:
    """A VMI exists until its guest is gone, so a poll twice a second sees each VMI that had one."""

    api: Api
    names: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """UID of a VMI -> the names that actions use for it."""

    def look(self) -> None:
        """Record every current VMI."""
        try:
            listed = self.api.get(VMIS)
        except ApiError:
            return  # the API server was killed; the next look opens another connection
        for vmi in listed["items"] if listed else ():
            self._note(vmi["metadata"])

    def _note(self, meta: dict[str, object]) -> None:
        uid = str(meta["uid"])
        self.names[uid] |= {f"uid/{uid}", f"vmi/{meta['name']}"}
        owners = meta.get("ownerReferences") or []
        assert isinstance(owners, list)
        self.names[uid] |= {f"{OWNERS[owner['kind']]}/{owner['name']}" for owner in owners if owner["kind"] in OWNERS}

    def known(self, uid: str) -> Names:
        """Return the names under which actions know a VMI."""
        return frozenset(self.names.get(uid, ()))

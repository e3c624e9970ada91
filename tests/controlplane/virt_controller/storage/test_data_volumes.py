# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""DataVolumes as controllers read them."""

from __future__ import annotations

import json
from typing import Any

from controlplane.api.objects.resources import DATA_VOLUME
from controlplane.kube.cache import Store
from controlplane.virt_controller.storage.data_volumes import DataVolumeLookup, data_volume_reader, no_data_volumes


def an_object(name: str, version: int = 1, **parts: Any) -> bytes:
    meta = {"name": name, "namespace": "default", "uid": name, "resourceVersion": str(version)}
    return json.dumps({"metadata": {**meta, **parts.pop("meta", {})}, **parts}).encode()


def test_an_absence_is_known_only_while_the_kind_is_served_and_every_object_was_read() -> None:
    cache = Store(DATA_VOLUME)
    served, not_served = data_volume_reader(cache, lambda: True), data_volume_reader(cache, lambda: False)
    assert served("default", ["disk"]) == DataVolumeLookup(is_served=True, is_complete=False)
    cache.synced = True
    assert served("default", ["disk"]) == DataVolumeLookup(is_served=True, is_complete=True)
    assert not_served("default", ["disk"]) == DataVolumeLookup() == no_data_volumes("default", ["disk"])
    cache.put(an_object("disk", status={"phase": "Succeeded"}))
    assert [volume.status.phase for volume in served("default", ["disk"]).by_name.values()] == ["Succeeded"]
    assert served("elsewhere", ["disk"]).by_name == {}
    cache.put(an_object("disk", 2, status=7))
    assert served("default", ["disk"]) == DataVolumeLookup(is_served=True, is_complete=False)

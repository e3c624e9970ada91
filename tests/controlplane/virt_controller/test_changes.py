# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import msgspec
import pytest

from controlplane.api.objects.resources import Key
from controlplane.kube.cache import read_partial
from controlplane.virt_controller.changes import by_vmi_name

OWNER = {
    "apiVersion": "kubevirt.io/v1",
    "kind": "VirtualMachineInstance",
    "name": "web",
    "uid": "u",
    "controller": True,
}
DOMAIN = {"kubevirt.io/domain": "web"}


@pytest.mark.parametrize(
    ("metadata", "names"),
    [
        ({"ownerReferences": [OWNER], "annotations": DOMAIN}, ["web"]),
        ({"annotations": DOMAIN}, ["web"]),
        ({"ownerReferences": [OWNER], "annotations": {"kubevirt.io/domain": "db"}}, ["db", "web"]),
        ({"ownerReferences": [{**OWNER, "kind": "ReplicaSet"}]}, []),
        ({"annotations": {"kubevirt.io/domain": ""}}, []),
        ({}, []),
    ],
)
def test_a_pod_is_found_by_the_names_that_it_has_of_its_vmi(metadata: dict[str, Any], names: list[str]) -> None:
    """Users can change its annotations, and the garbage collector removes its owner: either is enough."""
    pod = {"metadata": {"name": "p", "namespace": "a", "uid": "1", "resourceVersion": "1", **metadata}}

    found = by_vmi_name(read_partial(msgspec.json.encode(pod)))

    assert [*found] == [str(Key("a", name)) for name in names]

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real API server with our CRDs, without a control plane and nodes."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lab import Lab
from lab.cluster.api import Api, ApiError

_DEFINITIONS = Path(__file__).resolve().parents[2] / "roles/control_plane/files/crds"
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_KINDS = "/apis/kubevirt.io/v1"
_SERVED = (
    f"{_KINDS}/virtualmachines", f"{_KINDS}/virtualmachineinstances", f"{_KINDS}/virtualmachineinstancereplicasets",
    f"{_KINDS}/virtualmachineinstancemigrations", "/apis/pool.kubevirt.io/v1beta1/virtualmachinepools",
)  # fmt: skip


@contextmanager
def serving(name: str) -> Iterator[Lab]:
    """Run a lab of this name in which VMs and their instances can be created."""
    lab = Lab(name)
    with lab.running(nodes=0, controllers=False):
        api = lab.api()
        for path in sorted(_DEFINITIONS.glob("*.json")):
            api.create(_CRDS, json.loads(path.read_text()))
        _wait_until_served(api)
        api.close()
        yield lab


def _wait_until_served(api: Api, seconds: float = 30) -> None:
    """The CRDs are served some milliseconds after Established, and no event says when."""
    deadline = time.monotonic() + seconds
    while not _is_served(api):
        if time.monotonic() > deadline:
            raise TimeoutError(f"the API server does not serve VirtualMachines after {seconds:.0f} s")
        time.sleep(0.02)


def _is_served(api: Api) -> bool:
    try:
        return all(api.get(path) is not None for path in _SERVED)
    except ApiError:
        return False

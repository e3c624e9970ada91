# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The KubeVirt controller: how it is built, and what enqueues the KubeVirt object."""

from __future__ import annotations

from controlplane.api.objects.resources import KUBEVIRT
from controlplane.api.version import VERSION
from controlplane.virt_controller.controller import Controller, Watch, own_key
from controlplane.virt_controller.dependencies import Dependencies
from controlplane.virt_controller.kubevirt.reconciler import KubeVirtReconciler


def build(deps: Dependencies) -> KubeVirtReconciler:
    return KubeVirtReconciler(kubevirts=deps.caches[KUBEVIRT], api=deps.api, clock=deps.clock, version=VERSION)


CONTROLLER = Controller(name="kubevirt", build=build, watches=lambda _deps, _reconciler: (Watch(KUBEVIRT, own_key),))

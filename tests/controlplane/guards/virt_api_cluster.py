# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""virt-api: what it goes by that it learns while it serves, and that what it was told at its start is used."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_CLUSTER = "controlplane/virt_api/cluster.py"
_MAIN = "controlplane/virt_api/__main__.py"
_BY_CLUSTER = ("tests/controlplane/virt_api/test_cluster.py",)
_BY_MAIN = ("tests/controlplane/virt_api/test_main.py",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file=_MAIN,
        line="            clock,\n            settings.hook_clients,\n",
        without="            clock,\n            None,\n",
        because="Whoever reaches the port would send reviews, and evict, although reviewers are named.",
        tests=_BY_MAIN,
    ),
    Guard(
        file=_MAIN,
        line="lambda: cluster.configuration.eviction_strategy",
        without="lambda usual=cluster.configuration.eviction_strategy: usual",
        because="A drain would end guests that the configuration keeps, until virt-api is started anew.",
        tests=_BY_MAIN,
    ),
    Guard(
        file=_MAIN,
        line="            await asyncio.sleep(settings.drain_seconds)\n",
        without="",
        because="Requests that are on their way when it is told to end would meet nobody, and hooks fail closed.",
        tests=_BY_MAIN,
    ),
    Guard(
        file=_CLUSTER,
        line="            self.front_proxy = None\n            log.error(",
        without="            log.error(",
        because="A CA that was taken back would go on to make anybody a user.",
        tests=_BY_CLUSTER,
    ),
    Guard(
        file=_CLUSTER,
        line="Selection(KUBEVIRT, self.namespace)",
        without="Selection(KUBEVIRT)",
        because="A KubeVirt that a tenant makes would configure everybody's machines.",
        tests=_BY_CLUSTER,
    ),
    Guard(
        file=_CLUSTER,
        line="    if definition is None or not definition.synced:",
        without="    if definition is None:",
        because="Machines with DataVolumes would be refused for good while nobody knows whether there are any.",
        tests=_BY_CLUSTER,
    ),
    Guard(
        file=_CLUSTER,
        line="return pair if pair.certificate and pair.key else None",
        without="return pair",
        because="A Secret that is being filled would take away the pair that virt-handlers are asked by.",
        tests=_BY_CLUSTER,
    ),
)

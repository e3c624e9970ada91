# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All entries. A new module of entries has its row here."""

from __future__ import annotations

from tests.controlplane.guards import (
    admission,
    cache,
    certificates,
    client,
    connection,
    dhcp,
    domain,
    engine,
    fields,
    handler,
    handler_writes,
    installation,
    launcher,
    leadership,
    lifecycle,
    modules,
    node,
    node_paths,
    nodes_listed,
    processes,
    replica_set,
    unreadable,
    virt_api,
    virt_node,
    vm,
    vm_writes,
    vmi,
    vmi_writes,
)
from tests.controlplane.guards.guard import Guard

GUARDS: tuple[Guard, ...] = (
    *admission.GUARDS,
    *cache.GUARDS,
    *certificates.GUARDS,
    *client.GUARDS,
    *connection.GUARDS,
    *dhcp.GUARDS,
    *domain.GUARDS,
    *engine.GUARDS,
    *fields.GUARDS,
    *handler.GUARDS,
    *handler_writes.GUARDS,
    *installation.GUARDS,
    *launcher.GUARDS,
    *leadership.GUARDS,
    *lifecycle.GUARDS,
    *modules.GUARDS,
    *node.GUARDS,
    *node_paths.GUARDS,
    *nodes_listed.GUARDS,
    *processes.GUARDS,
    *replica_set.GUARDS,
    *unreadable.GUARDS,
    *virt_api.GUARDS,
    *virt_node.GUARDS,
    *vm.GUARDS,
    *vm_writes.GUARDS,
    *vmi.GUARDS,
    *vmi_writes.GUARDS,
)

#!/usr/bin/python
# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kubevirt_migration
short_description: Migrate running KubeVirt virtual machines to other nodes
description:
  - Migrates running guests to other nodes of the cluster, one, several (O(vms)) or all of a node (O(from_node)). Waits until
    they run there. Cancels migrations in progress.
  - O(from_node) without O(name) and O(vms) selects all machines of the node, in O(namespace) or in all namespaces.
  - The name of a machine is that of its VirtualMachineInstance, which is also that of its VirtualMachine.
  - Reads the existing migrations first. If one already leads to the wanted node, the task waits for it and creates no other.
  - Creates and deletes VirtualMachineInstanceMigrations of C(kubevirt.io). Works with the control plane of this collection
    and with upstream KubeVirt.
author:
  - virtops.kubevirt contributors (@virtops)
extends_documentation_fragment:
  - virtops.kubevirt.auth
  - virtops.kubevirt.wait
  - virtops.kubevirt.wait.fail_fast
  - virtops.kubevirt.attributes
  - virtops.kubevirt.attributes.actiongroup
attributes:
  check_mode:
    support: full
    details:
      - The server validates the request as a dry run, with admission. Whether a node has room shows only in a real migration.
      - An earlier task of the playbook may start a machine that does not run. The task then reports a migration, and a warning
        says so. Check mode does not wait.
  diff_mode:
    support: full
    details:
      - For the migrations that are created and deleted.
  idempotent:
    support: partial
    details:
      - Idempotent with O(target_node), O(node_selector), O(from_node) and O(state=absent). Without them a task migrates the
        machine each time.
options:
  name:
    description:
      - Name of the machine.
      - Mutually exclusive with O(vms).
    type: str
  namespace:
    description:
      - Namespace of the machine.
    type: str
  state:
    description:
      - V(present) migrates the machine. V(absent) cancels its unfinished migration, if any, and waits for its end. The guest
        then continues on its source node; if it had already moved, it stays on the target, which RV(phase) shows.
    type: str
    choices: [absent, present]
    default: present
  from_node:
    description:
      - Migrate the machine only if it is on this node. So a second run changes nothing.
      - A machine on another node, or one that does not run, is not changed. A named machine that does not exist is an error.
      - An unknown node is a warning and no failure, because it may have been removed.
    type: str
  target_node:
    description:
      - Name of the target node. A machine that is already there is not migrated.
      - Mutually exclusive with O(node_selector).
    type: str
  node_selector:
    description:
      - Labels of the nodes where the machine may be. A machine that is already on such a node is not migrated.
      - Needs the right to read nodes.
      - Mutually exclusive with O(target_node).
    type: dict
  unmovable:
    description:
      - What to do with a machine that cannot migrate, because its condition C(LiveMigratable) is C(False) or no guest runs.
        V(fail) fails the task after the others have been migrated. V(leave) lists it in RV(unmovable).
      - A machine that does not exist is an error with either.
    type: str
    choices: [fail, leave]
    default: fail
  parallel:
    description:
      - How many machines the task migrates at a time. The cluster has limits of its own; further migrations wait.
    type: int
    default: 8
  wait:
    description:
      - Wait until the guest runs on the target, or until the cancelled migration is over.
      - After the timeout the task fails with the reason and the status of the migration. The migration continues.
    type: bool
    default: true
  wait_timeout:
    description:
      - How many seconds to wait, for all machines of the task together. If the server does not respond properly, it may take a
        few seconds longer.
      - Used with O(wait=true), and without it while a cancelled migration of the machine is not over, before another is
        created.
    type: int
    default: 600
  vms:
    description:
      - Several machines, O(parallel) at a time.
      - An entry takes O(name), O(namespace), O(state), O(from_node), O(target_node) and O(node_selector), with the same meaning
        and the same checks.
      - The task's options are the defaults of each entry. A task with errors still changes the other entries, and then fails.
      - Mutually exclusive with O(name).
    type: list
    elements: dict
seealso:
  - module: virtops.kubevirt.kubevirt_migration_info
  - module: virtops.kubevirt.kubevirt_vmi_info
  - module: virtops.kubevirt.kubevirt_vm
"""

EXAMPLES = r"""
- name: Migrate a machine to another node with each run, and wait
  virtops.kubevirt.kubevirt_migration:
    name: web
    namespace: default

- name: Migrate it to a node, unless it is there
  virtops.kubevirt.kubevirt_migration:
    name: web
    namespace: default
    target_node: node-3

- name: Migrate two machines to nodes with fast disks, unless they are on such nodes
  virtops.kubevirt.kubevirt_migration:
    namespace: default
    node_selector:
      disks: fast
    vms:
      - name: web
      - name: database

- name: Migrate it away from a node, if it is there
  virtops.kubevirt.kubevirt_migration:
    name: web
    namespace: default
    from_node: node-1

- name: Migrate all machines of a node, two at a time, except those that cannot migrate
  virtops.kubevirt.kubevirt_migration:
    from_node: node-2
    parallel: 2
    unmovable: leave
    wait_timeout: 1800

- name: Start a migration, and do not wait
  virtops.kubevirt.kubevirt_migration:
    name: database
    namespace: default
    target_node: node-2
    wait: false

- name: Cancel that migration
  virtops.kubevirt.kubevirt_migration:
    name: database
    namespace: default
    state: absent
"""

RETURN = r"""
result:
  description: The VirtualMachineInstanceMigration as last read; empty if none was created or waited for.
  returned: success
  type: dict
  sample:
    apiVersion: kubevirt.io/v1
    kind: VirtualMachineInstanceMigration
    metadata:
      name: web-migration-x7k2q
      namespace: default
    spec:
      vmiName: web
vmi:
  description: The VirtualMachineInstance after the action; empty if there is none. Secrets are not shown.
  returned: success
  type: dict
name:
  description: Name of the machine.
  returned: with O(name)
  type: str
  sample: web
namespace:
  description: Its namespace.
  returned: with O(name)
  type: str
  sample: default
node:
  description: The node of the guest; empty if none runs.
  returned: always, with O(name)
  type: str
  sample: node-2
target_node:
  description: The target node of the migration; empty if unknown.
  returned: failure of a migration
  type: str
  sample: node-3
phase:
  description:
    - The phase of the migration, such as V(Running), V(Succeeded) or V(Failed); empty if there is none, or if virt-controller
      has not processed it yet.
  returned: success, and failure of a migration
  type: str
  sample: Succeeded
phases:
  description: The phases of the migration, in their order.
  returned: success, and failure of a migration
  type: list
  elements: dict
  contains:
    phase:
      description: The phase.
      returned: always
      type: str
      sample: Scheduling
    time:
      description: When it was entered.
      returned: always
      type: str
      sample: "2026-01-31T12:00:00Z"
method:
  description: The request to the server, V(create) or V(delete).
  returned: when something changed
  type: str
  sample: create
duration:
  description: Seconds until the task was done.
  returned: with O(wait=true)
  type: float
  sample: 4.2
unmovable:
  description: The machines that cannot migrate.
  returned: success, and failure of one of several
  type: list
  elements: dict
  contains:
    name:
      description: Name of the machine.
      returned: always
      type: str
    namespace:
      description: Its namespace.
      returned: always
      type: str
    reason:
      description: Why it cannot migrate.
      returned: always
      type: str
    eviction_strategy:
      description: Its own eviction strategy; empty if the cluster's setting applies, or if no guest runs.
      returned: always
      type: str
      sample: LiveMigrate
eviction_strategy:
  description: Its own eviction strategy; empty if the cluster's setting applies, or if no guest runs.
  returned: failure of a machine that cannot migrate
  type: str
  sample: LiveMigrate
results:
  description:
    - One entry per machine, in the order of O(vms), with RV(name), RV(namespace), C(changed) and the other values of a single
      machine; after a failure also C(failed) and C(msg).
  returned: with O(vms), or with O(from_node) alone
  type: list
  elements: dict
summary:
  description:
    - How many machines were C(moved), C(cancelled), C(unchanged), C(unmovable) and C(failed).
    - With O(unmovable=fail) one that cannot migrate counts as C(unmovable) and as C(failed).
  returned: with O(vms), or with O(from_node) alone
  type: dict
  sample:
    moved: 3
    cancelled: 0
    unchanged: 1
    unmovable: 0
    failed: 0
migration:
  description: Name of the migration.
  returned: failure of a migration
  type: str
  sample: web-migration-x7k2q
reason:
  description: Why it failed or makes no progress, from the instance, the target's Pod and the events.
  returned: failure of a migration
  type: str
  sample: "launcher Pod virt-launcher-web-x7k2q finds no node: 0/3 nodes are available: 3 Insufficient memory."
conditions:
  description: The conditions of the migration.
  returned: failure of a migration
  type: list
  elements: dict
events:
  description: The newest warnings about the migration and the target's Pod.
  returned: failure of a migration
  type: list
  elements: str
causes:
  description: Problems that the API server reports, by field.
  returned: when the API server refuses
  type: list
  elements: dict
status:
  description: The HTTP status of the API server's refusal.
  returned: when the API server refuses
  type: int
  sample: 403
server_reason:
  description: The API server's reason for the refusal; may be empty.
  returned: when the API server refuses
  type: str
  sample: Forbidden
"""

from ..module_utils._client import frame
from ..module_utils._migration import argspec, batch


def main():
    module = frame.VirtModule(
        argument_spec=argspec.migration_spec(),
        entries="vms",
        mutually_exclusive=[*argspec.EXCLUSIVE, ["vms", "name"]],
        required_one_of=[["name", "vms", "from_node"]],
        supports_check_mode=True,
    )
    frame.run(module, batch.run)


if __name__ == "__main__":
    main()

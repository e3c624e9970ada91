#!/usr/bin/python
# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kubevirt_pool
short_description: Declare and scale KubeVirt pools of virtual machines
description:
  - Creates, changes, scales, pauses and deletes VirtualMachinePools of C(pool.kubevirt.io). A pool keeps a number of
    VirtualMachines of one template, named after the pool and numbered, and replaces deleted ones.
  - Works with the control plane of this collection and with upstream KubeVirt.
  - Reads and compares the existing object first. A task that changes nothing sends one request and writes nothing.
  - O(update_strategy) decides how a changed template reaches existing machines.
author:
  - virtops.kubevirt contributors (@virtops)
extends_documentation_fragment:
  - virtops.kubevirt.auth
  - virtops.kubevirt.wait
  - virtops.kubevirt.wait.fail_fast
  - virtops.kubevirt.machine
  - virtops.kubevirt.attributes
  - virtops.kubevirt.attributes.actiongroup
attributes:
  check_mode:
    support: full
    details:
      - The server validates the request as a dry run, with admission.
      - An object, kind or namespace that does not exist may be what an earlier task of the playbook creates. The task then
        reports a change, and a warning names what is missing. Check mode does not wait.
  diff_mode:
    support: full
    details:
      - For creation, change, scaling and deletion. Secrets are not shown.
  idempotent:
    support: partial
    details:
      - O(generate_name) creates another one each time.
options:
  api_version:
    description:
      - API version of the objects.
    type: str
    default: pool.kubevirt.io/v1beta1
  name:
    description:
      - Name of the pool.
      - Mutually exclusive with O(generate_name).
    type: str
  generate_name:
    description:
      - Prefix of a name that the server completes. Every run creates another pool.
      - Only with O(state=present). Mutually exclusive with O(name).
    type: str
  namespace:
    description:
      - Namespace of the pool. Needed here or in O(definition).
    type: str
  annotations:
    description:
      - Annotations of the pool, and of its machines and their instances if the task declares the machines.
    type: dict
  labels:
    description:
      - Labels of the pool, and of its machines and their instances if the task declares the machines.
    type: dict
  replicas:
    description:
      - The number of machines. The default of a new pool is 1; without this option that of an existing pool stays.
    type: int
  selector:
    description:
      - The label selector of the pool's machines, such as C(matchLabels).
      - The default of a new pool is O(labels); without this option that of an existing pool stays. The control plane of this
        collection refuses to change it.
      - With a O(definition) that has a C(spec), the selector must be in one of the two.
    type: dict
  paused:
    description:
      - Whether the control plane stops creating, changing and deleting machines of the pool. Guests are not paused.
    type: bool
  run_strategy:
    description:
      - When the machines run. The default of a new pool is V(Always); without this option that of an existing pool stays.
    type: str
    choices: [Always, Halted, Manual, Once, RerunOnFailure]
  instancetype:
    description:
      - Reference to an instance type, as in the API.
    type: dict
  preference:
    description:
      - Reference to a preference, as in the API.
    type: dict
  data_volume_templates:
    description:
      - Templates of DataVolumes as in the API, merged by name. Each machine has its own, with the machine's number appended to
        the name; references in O(volumes) follow.
    type: list
    elements: dict
  name_generation:
    description:
      - Further names that get the machine's number appended.
    type: dict
    suboptions:
      config_maps:
        description: ConfigMaps in the machines' volumes.
        type: bool
      secrets:
        description: Secrets in the machines' volumes, including cloud-init's.
        type: bool
  max_unavailable:
    description:
      - How many machines, such as V(1) or V(25%), may be unavailable while a change restarts them.
    type: str
  update_strategy:
    description:
      - How a changed template reaches existing machines; V(proactive) by default.
      - Missing suboptions stay as they are. Another O(update_strategy.type) replaces the whole strategy.
    type: dict
    suboptions:
      type:
        description:
          - V(proactive) changes all machines and restarts running ones with the strategy V(Always). V(opportunistic) changes
            them without a restart. V(unmanaged) changes none.
        type: str
        choices: [opportunistic, proactive, unmanaged]
        required: true
      sort_policy:
        description: Which machines come first. Only with V(proactive).
        type: str
        choices: [AscendingOrder, DescendingOrder, Newest, Oldest, Random]
      label_selector:
        description: Label selector of the machines to change, such as C(matchLabels). Only with V(proactive).
        type: dict
      node_selector_requirements:
        description:
          - Requirements on the node selector of the machines to change, as in the API.
          - Only with V(proactive).
        type: list
        elements: dict
  scale_in_strategy:
    description:
      - What happens to surplus machines; V(proactive) by default.
      - Missing suboptions stay as they are. Another O(scale_in_strategy.type) replaces the whole strategy.
    type: dict
    suboptions:
      type:
        description:
          - V(proactive) deletes them. With V(opportunistic) and V(unmanaged) the control plane deletes none.
        type: str
        choices: [opportunistic, proactive, unmanaged]
        required: true
      sort_policy:
        description: Which machines go first. Only with V(proactive).
        type: str
        choices: [AscendingOrder, DescendingOrder, Newest, Oldest, Random]
      label_selector:
        description: Label selector of the machines that may be deleted, such as C(matchLabels). Only with V(proactive).
        type: dict
      node_selector_requirements:
        description:
          - Requirements on the node selector of the machines that may be deleted, as in the API.
          - Only with V(proactive).
        type: list
        elements: dict
      state_preservation:
        description:
          - Whether the state of a deleted machine is kept. The control plane of this collection supports V(Disabled), which
            deletes it.
        type: str
        choices: [Disabled, Offline, Online]
  state:
    description:
      - V(present) creates or changes the pool as declared. V(absent) deletes it, and its machines unless O(delete_options)
        orphans them; in a cluster without KubeVirt it changes nothing.
    type: str
    choices: [absent, present]
    default: present
  force:
    description:
      - Replace an existing pool with the declared one. Only its identity, undeclared replicas, run strategy and selector,
        labels and annotations of others, and fields that the control plane set are kept. O(update_strategy) decides what
        happens to its machines.
    type: bool
    default: false
  wait:
    description:
      - Wait until the wanted number of machines is ready. After a change of the template, also wait until the machines that the
        pool changes and restarts have it, unless O(update_strategy.label_selector) or
        O(update_strategy.node_selector_requirements) selects some of them.
      - Does not wait for a paused pool. Machines with another run strategy than V(Always) may never become ready.
      - With O(state=absent) until the pool, its machines and their instances are gone.
      - A task that may not read the machines does not wait for them, and warns.
    type: bool
    default: false
seealso:
  - module: virtops.kubevirt.kubevirt_pool_info
  - module: virtops.kubevirt.kubevirt_replicaset
  - module: virtops.kubevirt.kubevirt_vm
"""

EXAMPLES = r"""
- name: Keep two machines running and wait until they are ready
  virtops.kubevirt.kubevirt_pool:
    name: web
    namespace: default
    replicas: 2
    labels:
      app: web
    memory: 256Mi
    image: localhost/virtops/test-guest:0.1.0
    wait: true

- name: Scale them to three
  virtops.kubevirt.kubevirt_pool:
    name: web
    namespace: default
    replicas: 3
    wait: true

- name: Restart one machine at a time after a change, the oldest first
  virtops.kubevirt.kubevirt_pool:
    name: web
    namespace: default
    max_unavailable: "1"
    update_strategy:
      type: proactive
      sort_policy: Oldest

- name: Give all machines more memory, and wait until they run with it
  virtops.kubevirt.kubevirt_pool:
    name: web
    namespace: default
    memory: 512Mi
    wait: true
    wait_timeout: 600

- name: Delete the machines with the highest numbers first when the pool shrinks
  virtops.kubevirt.kubevirt_pool:
    name: web
    namespace: default
    scale_in_strategy:
      type: proactive
      sort_policy: DescendingOrder

- name: Stop creating, changing and deleting machines for a while
  virtops.kubevirt.kubevirt_pool:
    name: web
    namespace: default
    paused: true

- name: Resume that, and do not restart machines after a change of the template
  virtops.kubevirt.kubevirt_pool:
    name: web
    namespace: default
    paused: false
    update_strategy:
      type: opportunistic
    wait: true

- name: Declare a pool by a definition, as in the API
  virtops.kubevirt.kubevirt_pool:
    definition:
      apiVersion: pool.kubevirt.io/v1beta1
      kind: VirtualMachinePool
      metadata:
        name: others
        namespace: default
      spec:
        replicas: 1
        selector:
          matchLabels:
            app: others
        virtualMachineTemplate:
          metadata:
            labels:
              app: others
          spec:
            runStrategy: Always
            template:
              spec:
                domain:
                  memory:
                    guest: 256Mi
                  devices: {}

- name: Delete the pool with its machines
  virtops.kubevirt.kubevirt_pool:
    name: web
    namespace: default
    state: absent
    wait: true
"""

RETURN = r"""
result:
  description: The VirtualMachinePool after the action; empty when it is deleted. Secrets are not shown.
  returned: success
  type: dict
  sample:
    apiVersion: pool.kubevirt.io/v1beta1
    kind: VirtualMachinePool
    metadata:
      name: web
      namespace: default
method:
  description: The request to the server, V(create), V(apply), V(patch), V(replace) or V(delete).
  returned: when something changed
  type: str
  sample: create
duration:
  description: Seconds until the task was done.
  returned: with O(wait=true)
  type: float
  sample: 1.6
reason:
  description: Why the wait failed, for the pool or one of its machines.
  returned: failure of a wait
  type: str
  sample: "1 of 3 machines are ready, 3 are there; web-2: its instance is Scheduling (status Starting)"
conditions:
  description: The conditions of the pool.
  returned: failure of a wait
  type: list
  elements: dict
events:
  description: The newest warnings about that machine and its Pod.
  returned: failure of a wait
  type: list
  elements: str
console:
  description:
    - The last lines that the guest of that machine printed on its serial console, oldest first, at most 20 and 4096 characters,
      without escape sequences. The message ends with them.
    - Missing if no guest has run, if it printed nothing, if the user may not read logs of Pods, and for a task with C(no_log).
  returned: failure of a wait
  type: list
  elements: str
  sample: ["[    2.1] VFS: Cannot open root device", "Kernel panic - not syncing"]
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

import functools

from ..module_utils._client import frame
from ..module_utils._vm import batch, kinds
from ..module_utils._vm.request import instance_argspec


def main():
    module = frame.VirtModule(
        argument_spec=instance_argspec.pool_spec(),
        mutually_exclusive=[["name", "generate_name"]],
        required_one_of=[["name", "generate_name", "definition"]],
        supports_check_mode=True,
    )
    frame.run(module, functools.partial(batch.run, kind=kinds.POOL, shows_console=not module.no_log))


if __name__ == "__main__":
    main()

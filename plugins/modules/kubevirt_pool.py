#!/usr/bin/python
# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kubevirt_pool
short_description: Declare and scale KubeVirt pools of virtual machines
description:
  - Creates, changes, scales, pauses and deletes VirtualMachinePools of C(pool.kubevirt.io), which keep so many
    VirtualMachines of one template, named after the pool and numbered. A machine that is deleted is replaced.
  - Works with the control plane of this collection and with upstream KubeVirt.
  - What is there is read first and compared; a task that changes nothing sends one request and writes nothing.
  - A change of what the machines are is given to those that are there, as O(update_strategy) says.
author:
  - virtops.kubevirt contributors (@virtops)
extends_documentation_fragment:
  - virtops.kubevirt.auth
  - virtops.kubevirt.wait
  - virtops.kubevirt.machine
  - virtops.kubevirt.attributes
  - virtops.kubevirt.attributes.actiongroup
attributes:
  check_mode:
    support: full
    details:
      - The server checks what would be sent (dry run), admission included.
  diff_mode:
    support: full
    details:
      - For creation, change, scaling and deletion. Secrets are not shown.
  idempotent:
    support: partial
    details:
      - O(generate_name) makes another one each time.
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
      - Beginning of a name that the server completes. Every run makes another pool.
      - Only with O(state=present). Mutually exclusive with O(name).
    type: str
  namespace:
    description:
      - Namespace of the pool. Needed here or in O(definition).
    type: str
  annotations:
    description:
      - Annotations of the pool, and of its machines and their instances when the task says what the machines are.
    type: dict
  labels:
    description:
      - Labels of the pool, and of its machines and their instances when the task says what the machines are.
    type: dict
  replicas:
    description:
      - How many machines there are to be. A pool that is created has one unless this says otherwise; how many one has that
        exists is left alone unless this is set.
    type: int
  selector:
    description:
      - A label selector, such as C(matchLabels), by which the pool knows its machines.
      - A pool that is created without one selects the labels that O(labels) gives its machines. That of a pool that exists
        is left alone unless this is set; the control plane of this collection refuses another one than it was created with.
      - Beside a O(definition) with a C(spec), it must be in the one or in the other.
    type: dict
  paused:
    description:
      - Whether the control plane stops creating, changing and deleting machines of the pool. It does not pause guests.
    type: bool
  run_strategy:
    description:
      - When the machines run. A pool that is created has V(Always) unless something says otherwise; that of a pool that
        exists is left alone unless this is set.
    type: str
    choices: [Always, Halted, Manual, Once, RerunOnFailure]
  instancetype:
    description:
      - Reference to an instance type, as the API has it.
    type: dict
  preference:
    description:
      - Reference to a preference, as the API has it.
    type: dict
  data_volume_templates:
    description:
      - Templates of DataVolumes as the API has them, joined by name. Each machine has its own, with its number at the end
        of the name; so has what names them in O(volumes).
    type: list
    elements: dict
  name_generation:
    description:
      - Which further names get the number of the machine at their end.
    type: dict
    suboptions:
      config_maps:
        description: Those of ConfigMaps in the machines' volumes.
        type: bool
      secrets:
        description: Those of Secrets in the machines' volumes, cloud-init's included.
        type: bool
  max_unavailable:
    description:
      - How many machines, such as V(1), or what share of them, such as V(25%), may be not ready while they are restarted
        with a change.
    type: str
  update_strategy:
    description:
      - What becomes of machines when what they are is changed; V(proactive) by default.
      - What is left out of it stays as it is. Another O(update_strategy.type) than before takes all of the old one away.
    type: dict
    suboptions:
      type:
        description:
          - V(proactive) changes all machines and restarts those that run and are to run always, V(opportunistic) changes
            them and restarts none, V(unmanaged) changes none.
        type: str
        choices: [opportunistic, proactive, unmanaged]
        required: true
      sort_policy:
        description: Which machines come first. Only with V(proactive).
        type: str
        choices: [AscendingOrder, DescendingOrder, Newest, Oldest, Random]
      label_selector:
        description: A label selector, such as C(matchLabels); other machines are left as they are. Only with V(proactive).
        type: dict
      node_selector_requirements:
        description:
          - Requirements on the node selector of a machine, as in the API; other machines are not changed.
          - Only with V(proactive).
        type: list
        elements: dict
  scale_in_strategy:
    description:
      - What becomes of machines that are too many; V(proactive) by default.
      - What is left out of it stays as it is. Another O(scale_in_strategy.type) than before takes all of the old one away.
    type: dict
    suboptions:
      type:
        description:
          - V(proactive) deletes them; V(opportunistic) and V(unmanaged) leave that to others.
        type: str
        choices: [opportunistic, proactive, unmanaged]
        required: true
      sort_policy:
        description: Which machines go first. Only with V(proactive).
        type: str
        choices: [AscendingOrder, DescendingOrder, Newest, Oldest, Random]
      label_selector:
        description: A label selector, such as C(matchLabels); other machines are not deleted. Only with V(proactive).
        type: dict
      node_selector_requirements:
        description:
          - Requirements on the node selector of a machine, as in the API; other machines are not deleted.
          - Only with V(proactive).
        type: list
        elements: dict
      state_preservation:
        description:
          - Whether what belongs to a machine stays when it is deleted. The control plane of this collection knows
            V(Disabled), with which it goes as well.
        type: str
        choices: [Disabled, Offline, Online]
  state:
    description:
      - V(present) makes the pool be as declared, V(absent) deletes it, and its machines unless O(delete_options) says
        otherwise; in a cluster without KubeVirt it changes nothing.
    type: str
    choices: [absent, present]
    default: present
  force:
    description:
      - Replace an existing pool by what is declared. Nothing is kept but its identity, how many machines it has, when they
        run and its selector where those are not declared, labels and annotations that others wrote, and what the control
        plane filled in. Its machines are changed as O(update_strategy) says.
    type: bool
    default: false
  wait:
    description:
      - Wait until there are as many machines as wanted, all of them ready, and where the task changed what they are, until
        those that the pool changes and restarts by itself have it. With a O(update_strategy) that chooses machines by
        O(update_strategy.label_selector) or O(update_strategy.node_selector_requirements) that is not waited for.
      - A paused pool is not waited for. Machines that are not to run do not become ready.
      - With O(state=absent) until the pool, its machines and their instances are gone.
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

- name: Have changes restart one machine at a time, the oldest first
  virtops.kubevirt.kubevirt_pool:
    name: web
    namespace: default
    max_unavailable: "1"
    update_strategy:
      type: proactive
      sort_policy: Oldest

- name: Give all of them more memory, and wait until they run with it
  virtops.kubevirt.kubevirt_pool:
    name: web
    namespace: default
    memory: 512Mi
    wait: true
    wait_timeout: 600

- name: Have machines that are too many go by their numbers, the highest first
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

- name: Go on, and leave running machines as they are when the template changes
  virtops.kubevirt.kubevirt_pool:
    name: web
    namespace: default
    paused: false
    update_strategy:
      type: opportunistic
    wait: true

- name: Declare one as the API has it
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
  description: Why the wait failed; what the pool could not do, or what is wrong with one of its machines.
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
causes:
  description: What the API server found wrong, by field.
  returned: when the API server refuses
  type: list
  elements: dict
status:
  description: The HTTP status of the API server's refusal.
  returned: when the API server refuses
  type: int
  sample: 403
server_reason:
  description: Why, in the API server's word; empty where it has none.
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
    frame.run(module, functools.partial(batch.run, kind=kinds.POOL))


if __name__ == "__main__":
    main()

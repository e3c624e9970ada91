#!/usr/bin/python
# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kubevirt_replicaset
short_description: Declare and scale KubeVirt replica sets of virtual machine instances
description:
  - Creates, changes, scales, pauses and deletes VirtualMachineInstanceReplicaSets of C(kubevirt.io). A set keeps a number of
    instances of one template running. It replaces an instance that ends with a new one of another name.
  - Works with the control plane of this collection and with upstream KubeVirt.
  - Reads and compares the existing object first. A task that changes nothing sends one request and writes nothing.
  - A changed template applies to new instances. Existing instances are not changed.
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
  name:
    description:
      - Name of the replica set.
      - Mutually exclusive with O(generate_name).
    type: str
  generate_name:
    description:
      - Prefix of a name that the server completes. Every run creates another replica set.
      - Only with O(state=present). Mutually exclusive with O(name).
    type: str
  namespace:
    description:
      - Namespace of the replica set. Needed here or in O(definition).
    type: str
  annotations:
    description:
      - Annotations of the replica set, and of its template if the task declares the machines.
    type: dict
  labels:
    description:
      - Labels of the replica set, and of its template if the task declares the machines.
    type: dict
  replicas:
    description:
      - The number of instances. The default of a new set is 1; without this option that of an existing set stays.
    type: int
  selector:
    description:
      - The label selector of the set's instances, such as C(matchLabels).
      - The default of a new set is O(labels); without this option that of an existing set stays. Another selector would select
        other instances.
      - With a O(definition) that has a C(spec), the selector must be in one of the two.
    type: dict
  paused:
    description:
      - Whether the control plane stops creating and deleting instances of the set. Guests are not paused.
    type: bool
  state:
    description:
      - V(present) creates or changes the replica set as declared. V(absent) deletes it, and its instances unless
        O(delete_options) orphans them; in a cluster without KubeVirt it changes nothing.
    type: str
    choices: [absent, present]
    default: present
  force:
    description:
      - Replace an existing replica set with the declared one. Only its identity, undeclared replicas and selector, labels and
        annotations of others, and fields that the control plane set are kept. Its instances stay.
    type: bool
    default: false
  wait:
    description:
      - Wait until the wanted number of instances is ready. Does not wait for a paused set.
      - With O(state=absent) until the set and its instances are gone. A task that may not read the instances does not wait for
        them, and warns.
    type: bool
    default: false
seealso:
  - module: virtops.kubevirt.kubevirt_replicaset_info
  - module: virtops.kubevirt.kubevirt_vmi
"""

EXAMPLES = r"""
- name: Keep two guests running and wait until they are ready
  virtops.kubevirt.kubevirt_replicaset:
    name: workers
    namespace: default
    replicas: 2
    labels:
      app: workers
    memory: 256Mi
    image: localhost/virtops/test-guest:0.1.0
    wait: true

- name: Scale them to three
  virtops.kubevirt.kubevirt_replicaset:
    name: workers
    namespace: default
    replicas: 3
    wait: true

- name: Stop creating and deleting instances for a while
  virtops.kubevirt.kubevirt_replicaset:
    name: workers
    namespace: default
    paused: true

- name: Resume that, and wait until the instances are ready
  virtops.kubevirt.kubevirt_replicaset:
    name: workers
    namespace: default
    paused: false
    wait: true

- name: Declare a set by a definition, as in the API
  virtops.kubevirt.kubevirt_replicaset:
    definition:
      apiVersion: kubevirt.io/v1
      kind: VirtualMachineInstanceReplicaSet
      metadata:
        name: others
        namespace: default
      spec:
        replicas: 1
        selector:
          matchLabels:
            app: others
        template:
          metadata:
            labels:
              app: others
          spec:
            domain:
              memory:
                guest: 256Mi
              devices: {}

- name: Delete the set with its instances
  virtops.kubevirt.kubevirt_replicaset:
    name: workers
    namespace: default
    state: absent
    wait: true
"""

RETURN = r"""
result:
  description: The VirtualMachineInstanceReplicaSet after the action; empty when it is deleted. Secrets are not shown.
  returned: success
  type: dict
  sample:
    apiVersion: kubevirt.io/v1
    kind: VirtualMachineInstanceReplicaSet
    metadata:
      name: workers
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
  description: Why the wait failed, for the set or one of its instances.
  returned: failure of a wait
  type: str
  sample: "1 of 3 instances are ready, 3 are there; workersx2f7k: its instance is Scheduling"
conditions:
  description: The conditions of the replica set.
  returned: failure of a wait
  type: list
  elements: dict
events:
  description: The newest warnings about that instance and its Pod.
  returned: failure of a wait
  type: list
  elements: str
console:
  description:
    - The last lines that the guest of that instance printed on its serial console, oldest first, at most 20 and 4096 characters,
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
        argument_spec=instance_argspec.replicaset_spec(),
        mutually_exclusive=[["name", "generate_name"]],
        required_one_of=[["name", "generate_name", "definition"]],
        supports_check_mode=True,
    )
    frame.run(module, functools.partial(batch.run, kind=kinds.REPLICA_SET, shows_console=not module.no_log))


if __name__ == "__main__":
    main()

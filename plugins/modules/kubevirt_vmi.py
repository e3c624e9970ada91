#!/usr/bin/python
# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kubevirt_vmi
short_description: Declare and operate KubeVirt virtual machine instances
description:
  - Creates and deletes VirtualMachineInstances of C(kubevirt.io), each a single run of a guest, one or many in a task. Pauses,
    resets, reboots and freezes running guests.
  - For a machine that you start, stop and change, use M(virtops.kubevirt.kubevirt_vm). This module can also operate the guest
    of such a machine; the instance has the machine's name.
  - Works with the control plane of this collection and with upstream KubeVirt.
  - Reads and compares the existing objects first. A task that changes nothing sends one read request for an instance, or one
    for all of a namespace, and writes nothing.
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
      - The server validates the request as a dry run, with admission. A replacement by O(force), a reset, a soft reboot,
        freezing and unfreezing have no dry run; the module predicts them from the current state.
  diff_mode:
    support: full
    details:
      - For creation, change, deletion and power states. Secrets are not shown.
  idempotent:
    support: partial
    details:
      - O(state=reset), O(state=softrebooted) and O(generate_name) make a change with each run.
options:
  name:
    description:
      - Name of the VirtualMachineInstance.
      - Mutually exclusive with O(generate_name).
    type: str
  generate_name:
    description:
      - Prefix of a name that the server completes. Every run creates another VirtualMachineInstance.
      - Only with O(state=present). Mutually exclusive with O(name).
    type: str
  namespace:
    description:
      - Namespace of the VirtualMachineInstance. Needed here or in O(definition).
    type: str
  annotations:
    description:
      - Annotations of the VirtualMachineInstance. Its other annotations stay.
    type: dict
  labels:
    description:
      - Labels of the VirtualMachineInstance. Its other labels stay.
    type: dict
  start_paused:
    description:
      - The guest starts paused; O(state=unpaused) lets it run.
    type: bool
  state:
    description:
      - V(present) creates the instance as declared. Later only its labels and annotations can change; see O(force). An instance
        whose run is over stays as it is.
      - V(absent) deletes it, which ends its guest; in a cluster without KubeVirt it changes nothing. A VirtualMachine with the
        run strategy V(Always) creates its instance again.
      - V(paused) and V(unpaused) pause and resume the processors of a running guest. V(reset) resets it, V(softrebooted) asks
        it to reboot (by its agent, or by ACPI). V(frozen) and V(unfrozen) freeze and thaw its file systems by the guest's
        agent. They fail if no guest runs.
    type: str
    choices: [absent, present, paused, unpaused, reset, softrebooted, frozen, unfrozen]
    default: present
  unfreeze_timeout:
    description:
      - Seconds after O(state=frozen) until the file systems are thawed automatically. V(0) means never. Already frozen file
        systems keep their time.
      - A guest with frozen file systems hangs at its next write, and the client may fail before it thaws them.
      - The default is 300.
    type: int
  force:
    description:
      - Delete an instance that differs from its declaration, or whose run is over, and create it again. Waits at most
        O(wait_timeout) for its removal, also without O(wait).
      - Refused for the instance of a VirtualMachine or of a replica set, which would create it again unchanged.
    type: bool
    default: false
  wait:
    description:
      - Wait until the guest is ready or paused, according to the state; with O(state=absent) until the instance and its
        launcher Pod are gone.
      - After the timeout the task fails with the reason, from the instance, its Pod and their events.
    type: bool
    default: false
  vmis:
    description:
      - Several VirtualMachineInstances, changed and waited for at the same time.
      - The task's options are the defaults of each entry. A task with errors still changes the other entries, and then fails.
      - Mutually exclusive with O(name) and O(generate_name).
    type: list
    elements: dict
    suboptions:  # as above; written by python -m tests.sanity.vms_options
        name:
          description:
            - Name of the VirtualMachineInstance.
            - Mutually exclusive with O(vmis[].generate_name).
          type: str
        generate_name:
          description:
            - Prefix of a name that the server completes. Every run creates another VirtualMachineInstance.
            - Only with O(vmis[].state=present). Mutually exclusive with O(vmis[].name).
          type: str
        namespace:
          description:
            - Namespace of the VirtualMachineInstance. Needed here or in O(vmis[].definition).
          type: str
        annotations:
          description:
            - Annotations of the VirtualMachineInstance. Its other annotations stay.
          type: dict
        labels:
          description:
            - Labels of the VirtualMachineInstance. Its other labels stay.
          type: dict
        start_paused:
          description:
            - The guest starts paused; O(vmis[].state=unpaused) lets it run.
          type: bool
        state:
          description: The wanted state; O(state) by default.
          type: str
          choices: [absent, present, paused, unpaused, reset, softrebooted, frozen, unfrozen]
        unfreeze_timeout:
          description:
            - Seconds after O(vmis[].state=frozen) until the file systems are thawed automatically. V(0) means never. Already frozen file
              systems keep their time.
            - A guest with frozen file systems hangs at its next write, and the client may fail before it thaws them.
            - The default is 300.
          type: int
        force:
          description: Whether to replace it; O(force) by default.
          type: bool
        definition:
          description:
            - The object as in the API; C(apiVersion) and C(kind) are optional. Other options override its fields.
            - Fields that the server sets (C(status), C(metadata.uid) and the like) are ignored.
            - A key with the value V(null) is removed.
          type: dict
          aliases: [resource_definition]
        spec:
          description:
            - The C(spec) of a VirtualMachineInstance, merged over the one in O(vmis[].definition).
            - Disks, volumes, interfaces, networks, filesystems, GPUs and host devices are merged by name, like O(vmis[].disks).
              Any other list is replaced as a whole.
          type: dict
        cpu:
          description:
            - The guest's processors.
          type: dict
          suboptions:
            cores:
              description: Cores of each socket.
              type: int
            sockets:
              description: Sockets.
              type: int
            threads:
              description: Threads of each core.
              type: int
            model:
              description: CPU model, such as V(host-model).
              type: str
        memory:
          description:
            - The guest's memory, such as V(2Gi).
          type: str
        image:
          description:
            - Container image with the boot disk; becomes disk and volume V(containerdisk). An existing or declared disk of
              that name is not changed.
          type: str
        cloud_init:
          description:
            - Data for the guest's cloud-init; becomes disk and volume V(cloudinit). An existing or declared disk of that
              name is not changed.
          type: dict
          suboptions:
            type:
              description: The cloud-init data source. The control plane of this collection supports V(no_cloud).
              type: str
              choices: [no_cloud, config_drive]
              default: no_cloud
            user_data:
              description: The user data, a text. Every user with read access to the object can see it; prefer a Secret.
              type: str
            user_data_secret:
              description: Name of a Secret with the user data under the key C(userdata).
              type: str
            network_data:
              description: The network data.
              type: str
            network_data_secret:
              description: Name of a Secret with the network data under the key C(networkdata).
              type: str
        disks:
          description:
            - Disks as in the API, merged by name with those of O(vmis[].spec), of O(vmis[].definition) and of the existing object.
            - An entry changes only the fields that it contains. Other entries stay in their order; new ones are appended.
          type: list
          elements: dict
        volumes:
          description:
            - Volumes as in the API, merged by name like O(vmis[].disks). Another kind of source replaces the old one.
          type: list
          elements: dict
        interfaces:
          description:
            - Network interfaces as in the API, merged by name like O(vmis[].disks).
          type: list
          elements: dict
        networks:
          description:
            - Networks as in the API, merged by name like O(vmis[].disks).
          type: list
          elements: dict
        eviction_strategy:
          description:
            - What an eviction of the machine's Pod does, such as by C(kubectl drain). V(None) stops the machine.
              V(LiveMigrate) migrates it, and keeps it running where it is if it cannot migrate. V(LiveMigrateIfPossible)
              migrates it, or stops it. V(External) leaves that to another controller.
            - The default is the cluster's setting.
          type: str
          choices: [External, LiveMigrate, LiveMigrateIfPossible, None]
        further_attempts:
          description:
            - How often a run that its node fails to start is retried, on another node if possible. The default is the
              cluster's setting.
            - An annotation for the control plane of this collection.
          type: int
        run_timeout:
          description:
            - Seconds that a launcher may take to start after its Pod is scheduled; V(0) means no limit.
            - The default is the cluster's setting.
            - An annotation for the control plane of this collection.
          type: int
        delete_options:
          description:
            - How to delete, only with O(vmis[].state=absent).
          type: dict
          suboptions:
            propagationPolicy:
              description: What happens to the objects that this one owns.
              type: str
              choices: [Foreground, Background, Orphan]
            preconditions:
              description: Refuse the deletion of another object with this name.
              type: dict
              suboptions:
                resourceVersion:
                  description: Its resource version.
                  type: str
                uid:
                  description: Its UID.
                  type: str
seealso:
  - module: virtops.kubevirt.kubevirt_vm
  - module: virtops.kubevirt.kubevirt_vmi_info
"""

EXAMPLES = r"""
- name: Run a guest once and wait until it is ready
  virtops.kubevirt.kubevirt_vmi:
    name: probe
    namespace: default
    memory: 256Mi
    image: localhost/virtops/test-guest:0.1.0
    labels:
      app: probe
    wait: true

- name: Pause it
  virtops.kubevirt.kubevirt_vmi:
    name: probe
    namespace: default
    state: paused
    wait: true

- name: Unpause it
  virtops.kubevirt.kubevirt_vmi:
    name: probe
    namespace: default
    state: unpaused
    wait: true

- name: Freeze its file systems for a backup of its disks, for at most a minute
  virtops.kubevirt.kubevirt_vmi:
    name: probe
    namespace: default
    state: frozen
    unfreeze_timeout: 60
    wait: true

- name: Thaw them
  virtops.kubevirt.kubevirt_vmi:
    name: probe
    namespace: default
    state: unfrozen
    wait: true

- name: Run two more guests and wait until both are ready
  virtops.kubevirt.kubevirt_vmi:
    namespace: default
    image: localhost/virtops/test-guest:0.1.0
    vmis:
      - name: database-1
        memory: 256Mi
      - name: database-2
        memory: 512Mi
    wait: true

- name: Freeze the file systems of both at the same time
  virtops.kubevirt.kubevirt_vmi:
    namespace: default
    state: frozen
    unfreeze_timeout: 60
    vmis:
      - name: database-1
      - name: database-2
    wait: true

- name: Thaw the file systems of the first, delete the second
  virtops.kubevirt.kubevirt_vmi:
    namespace: default
    vmis:
      - name: database-1
        state: unfrozen
      - name: database-2
        state: absent
    wait: true

- name: Give it more memory, which replaces the instance
  virtops.kubevirt.kubevirt_vmi:
    name: probe
    namespace: default
    memory: 512Mi
    image: localhost/virtops/test-guest:0.1.0
    force: true
    wait: true

- name: Declare an instance by a definition, with a guest that starts paused
  virtops.kubevirt.kubevirt_vmi:
    definition:
      apiVersion: kubevirt.io/v1
      kind: VirtualMachineInstance
      metadata:
        name: second
        namespace: default
      spec:
        startStrategy: Paused
        domain:
          memory:
            guest: 256Mi
          devices:
            disks:
              - name: root
                disk:
                  bus: virtio
        volumes:
          - name: root
            containerDisk:
              image: localhost/virtops/test-guest:0.1.0
    wait: true

- name: Delete the instance, and wait until its launcher Pod is gone
  virtops.kubevirt.kubevirt_vmi:
    name: probe
    namespace: default
    state: absent
    wait: true
"""

RETURN = r"""
result:
  description: The VirtualMachineInstance after the action; empty when it is deleted. Secrets are not shown.
  returned: success, without O(vmis)
  type: dict
  sample:
    apiVersion: kubevirt.io/v1
    kind: VirtualMachineInstance
    metadata:
      name: probe
      namespace: default
method:
  description: >-
    The request to the server, V(create), V(apply), V(patch), V(replace) (deleted and created again), V(delete), V(pause),
    V(unpause), V(reset), V(softreboot), V(freeze) or V(unfreeze).
  returned: when something changed, without O(vmis)
  type: str
  sample: create
duration:
  description: Seconds until the task was done.
  returned: with O(wait=true), without O(vmis)
  type: float
  sample: 1.6
results:
  description: One entry per VirtualMachineInstance, in the order of O(vmis).
  returned: with O(vmis), also on failure
  type: list
  elements: dict
  contains:
    name:
      description: Its name, also a generated one; empty if O(vmis[].generate_name) was given and nothing was created.
      returned: always
      type: str
    namespace:
      description: Its namespace.
      returned: always
      type: str
    changed:
      description: Whether it changed.
      returned: always
      type: bool
    result:
      description: As RV(result).
      returned: success
      type: dict
    method:
      description: As RV(method).
      returned: when it changed
      type: str
    failed:
      description: V(true) if this one failed, else missing.
      returned: failure
      type: bool
    msg:
      description: Why it failed.
      returned: failure
      type: str
    duration:
      description: As RV(duration).
      returned: with O(wait=true)
      type: float
    reason:
      description: As RV(reason).
      returned: failure of a wait
      type: str
    printable_status:
      description: As RV(printable_status).
      returned: failure of a wait
      type: str
    conditions:
      description: As RV(conditions).
      returned: failure of a wait
      type: list
      elements: dict
    events:
      description: As RV(events).
      returned: failure of a wait
      type: list
      elements: str
    causes:
      description: As RV(causes).
      returned: when the API server refuses
      type: list
      elements: dict
    status:
      description: As RV(status).
      returned: when the API server refuses
      type: int
    server_reason:
      description: As RV(server_reason).
      returned: when the API server refuses
      type: str
reason:
  description: Why the wait failed, the most specific cause of those in the Pod, the instance and the events.
  returned: failure of a wait
  type: str
  sample: "launcher Pod virt-launcher-probe-5d0a3c1e-1 finds no node: 0/1 nodes are available: 1 Insufficient memory."
printable_status:
  description: The phase of the instance.
  returned: failure of a wait
  type: str
  sample: Scheduling
conditions:
  description: The conditions of the instance.
  returned: failure of a wait
  type: list
  elements: dict
events:
  description: The newest warnings about the instance and its Pod.
  returned: failure of a wait
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

import functools

from ..module_utils._client import frame
from ..module_utils._vm import batch, kinds
from ..module_utils._vm.request import instance_argspec


def main():
    module = frame.VirtModule(
        argument_spec=instance_argspec.vmi_spec(),
        mutually_exclusive=[*instance_argspec.EXCLUSIVE, ["vmis", "name"], ["vmis", "generate_name"]],
        required_one_of=[["name", "generate_name", "definition", "vmis"]],
        supports_check_mode=True,
    )
    frame.run(module, functools.partial(batch.run, kind=kinds.VMI))


if __name__ == "__main__":
    main()

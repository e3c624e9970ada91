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
  - virtops.kubevirt.wait.fail_fast
  - virtops.kubevirt.machine
  - virtops.kubevirt.attributes
  - virtops.kubevirt.attributes.actiongroup
attributes:
  check_mode:
    support: full
    details:
      - The server validates the request as a dry run, with admission. A replacement by O(force), a reset, a soft reboot,
        freezing and unfreezing have no dry run; the module predicts them from the current state.
      - An object, kind or namespace that does not exist may be what an earlier task of the playbook creates. The task then
        reports a change, and a warning names what is missing. Check mode does not wait.
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
      - An entry takes the same options as a single instance, such as O(name), O(memory), O(image) and O(state), with the same
        meaning and the same checks. The options of the connection, O(api_version), O(hidden_fields), O(fail_fast), and O(wait)
        with all options that begin with C(wait_) are of the task only.
      - The task's options are the defaults of each entry. A task with errors still changes the other entries, and then fails.
      - Mutually exclusive with O(name) and O(generate_name).
    type: list
    elements: dict
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
  description: >-
    One entry per VirtualMachineInstance, in the order of O(vmis). An entry is what a task for this instance alone would return,
    as in the C(results) of a loop.
  returned: with O(vmis), also on failure
  type: list
  elements: dict
  contains:
    name:
      description: Its name, also a generated one; empty if O(generate_name) was given and nothing was created.
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
    console:
      description: As RV(console).
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
console:
  description:
    - The last lines that the guest printed on its serial console, oldest first, at most 20 and 4096 characters, without escape
      sequences. The message ends with them, unless the task has O(vmis).
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
        argument_spec=instance_argspec.vmi_spec(),
        entries="vmis",
        mutually_exclusive=[*instance_argspec.EXCLUSIVE, ["vmis", "name"], ["vmis", "generate_name"]],
        required_one_of=[["name", "generate_name", "definition", "vmis"]],
        supports_check_mode=True,
    )
    frame.run(module, functools.partial(batch.run, kind=kinds.VMI, shows_console=not module.no_log))


if __name__ == "__main__":
    main()

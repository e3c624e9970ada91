#!/usr/bin/python
# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kubevirt_vm
short_description: Declare and operate KubeVirt virtual machines
description:
  - Creates, changes and deletes VirtualMachines of C(kubevirt.io), one or many in a task. Starts, stops and restarts them.
    Pauses, resets and reboots their guests.
  - Works with the control plane of this collection and with upstream KubeVirt.
  - Reads and compares the existing objects first. A task that changes nothing sends one read request for a VirtualMachine, or
    one for all of a namespace, and writes nothing.
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
      - The server validates the request as a dry run, with admission. Reset and soft reboot have no dry run.
      - RV(result) has the run strategy after a start or a stop; its C(status) is the current one.
      - A VirtualMachine, kind or namespace that does not exist may be what an earlier task of the playbook creates. The task
        then reports a change, and a warning names what is missing. Check mode does not wait.
      - Whether a change needs a restart shows only without check mode.
  diff_mode:
    support: full
    details:
      - For creation, change, deletion and power states. Secrets are not shown.
  idempotent:
    support: partial
    details:
      - O(state=restarted), O(state=reset), O(state=softrebooted) and O(generate_name) make a change with each run.
options:
  name:
    description:
      - Name of the VirtualMachine.
      - Mutually exclusive with O(generate_name).
    type: str
  generate_name:
    description:
      - Prefix of a name that the server completes. Every run creates another VirtualMachine.
      - Only with O(state=present). Mutually exclusive with O(name).
    type: str
  namespace:
    description:
      - Namespace of the VirtualMachine. Needed here or in O(definition).
    type: str
  definition:
    description:
      - A VirtualMachine as in the API; C(apiVersion) and C(kind) are optional.
      - A definition with a C(spec) is complete. Fields of an earlier definition that this one lacks are removed, except the run
        strategy. Fields that others added, or that options set without a definition, stay. Without a definition, options change
        only the fields that they name.
      - The annotation C(virtops.kubevirt/declared-items) records which list entries the module has declared, without their
        values. Results do not show it.
      - Fields that the server sets (C(status), C(metadata.uid) and the like) are ignored.
      - A key with the value V(null) is removed.
    type: dict
    aliases: [resource_definition]
  annotations:
    description:
      - Annotations of the VirtualMachine, and of its template if the task declares the machine.
    type: dict
  labels:
    description:
      - Labels of the VirtualMachine, and of its template if the task declares the machine.
    type: dict
  running:
    description:
      - V(true) means the run strategy V(Always), V(false) means V(Halted).
      - A new VirtualMachine runs by default. If neither this nor O(run_strategy) is set, an existing one is neither started nor
        stopped.
      - Mutually exclusive with O(run_strategy).
    type: bool
  run_strategy:
    description:
      - When the VirtualMachine runs.
      - Power states have precedence. O(state=stopped) ignores a strategy that would start the machine (V(Always), V(Once) and
        V(RerunOnFailure)); O(state=started) and O(state=restarted) ignore V(Halted). A new VirtualMachine then gets V(Halted)
        or V(Always).
      - Mutually exclusive with O(running).
    type: str
    choices: [Always, Halted, Manual, Once, RerunOnFailure]
  start_paused:
    description:
      - With O(state=started), the task starts the guest paused; O(state=unpaused) lets it run. A running guest is not changed.
      - A new VirtualMachine is created V(Halted) and then started.
      - To start it paused with every start, declare C(startStrategy) in O(spec).
    type: bool
  instancetype:
    description:
      - Reference to an instance type. The control plane must support it.
    type: dict
  preference:
    description:
      - Reference to a preference. The control plane must support it.
    type: dict
  data_volume_templates:
    description:
      - Templates of DataVolumes that the VirtualMachine owns, merged by C(metadata.name). The control plane must support them.
    type: list
    elements: dict
  spec:
    description:
      - The template's C(spec) (that of a VirtualMachineInstance), merged over the one in O(definition).
      - Disks, volumes, interfaces, networks, filesystems, GPUs and host devices are merged by name, like O(disks). Any other
        list is replaced as a whole.
    type: dict
  delete_options:
    description:
      - How to delete, only with O(state=absent).
    type: dict
    suboptions:
      propagationPolicy:
        description: What happens to the objects that the VirtualMachine owns. V(Orphan) keeps its instance running.
        type: str
        choices: [Foreground, Background, Orphan]
      preconditions:
        description: Refuse the deletion of another VirtualMachine with this name.
        type: dict
        suboptions:
          resourceVersion:
            description: Its resource version.
            type: str
          uid:
            description: Its UID.
            type: str
  grace_period_seconds:
    description:
      - How many seconds the guest may take to shut down, with O(state=stopped).
      - With O(state=restarted) only V(0) is valid, which does not shut the guest down.
      - Refused if the task stops and restarts no machine. O(state=absent) uses the machine's own
        C(terminationGracePeriodSeconds).
    type: int
  restart:
    description:
      - Whether to restart a running machine if its declaration takes effect only then; V(never) by default.
      - V(if_required) also restarts it for changes of earlier tasks, and waits at most O(wait_timeout) seconds until
        virt-controller has seen the change.
      - Only with O(state=present) and O(state=started).
    type: str
    choices: [if_required, never]
  state:
    description:
      - V(present) creates or changes the VirtualMachine as declared. An object of this name that is being deleted has to be
        gone first, which the task waits for. V(absent) deletes it; in a cluster without KubeVirt it
        changes nothing.
      - V(started), V(stopped) and V(restarted) also make declared changes, and then start, stop or restart the guest.
        V(restarted) restarts a running guest each time, and starts one that does not run.
      - V(paused) and V(unpaused) pause and resume the processors of a running guest. V(reset) resets it, V(softrebooted) asks
        it to reboot (by its agent, or by ACPI). They fail if no guest runs.
    type: str
    choices: [absent, present, restarted, started, stopped, paused, unpaused, reset, softrebooted]
    default: present
  force:
    description:
      - Replace an existing VirtualMachine with the declared one. Only its identity, its run strategy, labels and annotations of
        others, and fields that the control plane set are kept.
    type: bool
    default: false
  wait:
    description:
      - Wait until the guest is ready, stopped or paused, according to state and run strategy; with O(state=absent) until the
        VirtualMachine, its instance and its launcher Pod are gone. The VirtualMachine goes last, so no other right is needed.
      - After the timeout the task fails with the reason, from the VirtualMachine, its instance, its Pod and their events.
    type: bool
    default: false
  wait_condition:
    description:
      - A further condition to wait for, of the instance, or of the VirtualMachine if there is no instance.
      - Only with O(wait=true), and not with O(state=absent).
    type: dict
    suboptions:
      type:
        description: Its type, such as V(AgentConnected).
        type: str
        required: true
      status:
        description: Its status. A missing condition counts as V("False").
        type: str
        choices: ['True', 'False', Unknown]
        default: 'True'
      reason:
        description: Its reason; any by default.
        type: str
  wait_for_claims:
    description:
      - How long to wait, with O(state=absent) and O(wait=true). It deletes nothing.
      - The cluster itself deletes the DataVolumes of O(data_volume_templates), with their PersistentVolumeClaims, when their
        VirtualMachine is deleted, with this option and without it. With V(true) the task also waits until these claims are
        gone.
      - Any other claim stays, and is not waited for.
      - A second run after a timeout does not wait for the claims if the VirtualMachine is gone.
      - Needs the right to read PersistentVolumeClaims and DataVolumes.
    type: bool
    default: false
  vms:
    description:
      - Several VirtualMachines, changed and waited for at the same time.
      - An entry takes the same options as a single VirtualMachine, such as O(name), O(memory), O(image) and O(state), with the
        same meaning and the same checks. The options of the connection, O(api_version), O(hidden_fields), O(fail_fast), and
        O(wait) with all options that begin with C(wait_) are of the task only.
      - The task's options are the defaults of each entry. A task with errors still changes the other entries, and then fails.
      - Mutually exclusive with O(name) and O(generate_name).
    type: list
    elements: dict
seealso:
  - module: virtops.kubevirt.kubevirt_vmi
  - module: virtops.kubevirt.kubevirt_vm_info
  - module: virtops.kubevirt.kubevirt_vmi_info
"""

EXAMPLES = r"""
- name: Create a virtual machine and wait until it is ready
  virtops.kubevirt.kubevirt_vm:
    name: web
    namespace: default
    cpu:
      cores: 1
    memory: 512Mi
    image: localhost/virtops/test-guest:0.1.0
    cloud_init:
      user_data: |
        #cloud-config
        hostname: web
    interfaces:
      - name: default
        masquerade: {}
    networks:
      - name: default
        pod: {}
    wait: true

- name: Declare it by a definition, as in the API
  virtops.kubevirt.kubevirt_vm:
    definition:
      apiVersion: kubevirt.io/v1
      kind: VirtualMachine
      metadata:
        name: web
        namespace: default
        labels:
          app: web
      spec:
        runStrategy: Always
        template:
          spec:
            domain:
              memory:
                guest: 512Mi
              devices:
                disks:
                  - name: root
                    disk:
                      bus: virtio
            volumes:
              - name: root
                containerDisk:
                  image: localhost/virtops/test-guest:0.1.0

- name: Add a second disk; other disks stay
  virtops.kubevirt.kubevirt_vm:
    name: web
    namespace: default
    disks:
      - name: data
        disk:
          bus: virtio
    volumes:
      - name: data
        emptyDisk:
          capacity: 1Gi

- name: Remove that disk
  virtops.kubevirt.kubevirt_vm:
    name: web
    namespace: default
    disks:
      - name: data
        disk: null
    volumes:
      - name: data
        emptyDisk: null

- name: Give it more memory, and restart it if that is needed
  virtops.kubevirt.kubevirt_vm:
    name: web
    namespace: default
    memory: 1Gi
    restart: if_required
    wait: true

- name: Create a machine whose claim somebody else is about to create, and wait for both
  virtops.kubevirt.kubevirt_vm:
    name: database
    namespace: default
    memory: 512Mi
    disks:
      - name: data
        disk:
          bus: virtio
    volumes:
      - name: data
        persistentVolumeClaim:
          claimName: login-data
    wait: true
    wait_timeout: 900
    fail_fast: false

- name: Create a machine with an SSH key and network data for its cloud-init
  virtops.kubevirt.kubevirt_vm:
    name: login
    namespace: default
    memory: 256Mi
    image: localhost/virtops/test-guest:0.1.0
    cloud_init:
      user_data: |
        #cloud-config
        hostname: login
        ssh_authorized_keys:
          - ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ3NUnZ6xVwvKVhVQnYuFeuKVlpRXGpYTAgHVXCqNWpV admin@example.org
      network_data: |
        version: 2
        ethernets:
          pods:
            match:
              driver: virtio_net
            dhcp4: true
            nameservers:
              search: [example.org]
    wait: true

- name: Create a claim for data that outlives the machine
  kubernetes.core.k8s:
    definition:
      apiVersion: v1
      kind: PersistentVolumeClaim
      metadata:
        name: login-data
        namespace: default
      spec:
        accessModes: [ReadWriteOnce]
        resources:
          requests:
            storage: 1Gi

- name: Add the claim as a disk of the machine
  virtops.kubevirt.kubevirt_vm:
    name: login
    namespace: default
    disks:
      - name: data
        disk:
          bus: virtio
    volumes:
      - name: data
        persistentVolumeClaim:
          claimName: login-data

- name: Create a machine that is ready when its web server responds, and restarts when its guest hangs
  virtops.kubevirt.kubevirt_vm:
    name: shop
    namespace: default
    memory: 256Mi
    image: localhost/virtops/test-guest:0.1.0
    cloud_init:
      user_data: |
        #cloud-config
        runcmd:
          - httpd -p 8080 -h /tmp
    spec:
      readinessProbe:
        httpGet:
          port: 8080
        periodSeconds: 5
      livenessProbe:
        guestAgentPing: {}
        initialDelaySeconds: 60
        failureThreshold: 5
    wait: true

- name: Stop a machine, and wait until its guest has shut down
  virtops.kubevirt.kubevirt_vm:
    name: web
    namespace: default
    state: stopped
    wait: true

- name: Start it paused
  virtops.kubevirt.kubevirt_vm:
    name: web
    namespace: default
    state: started
    start_paused: true
    wait: true

- name: Unpause it
  virtops.kubevirt.kubevirt_vm:
    name: web
    namespace: default
    state: unpaused
    wait: true

- name: Declare three virtual machines at once, one of them larger
  virtops.kubevirt.kubevirt_vm:
    namespace: default
    memory: 256Mi
    image: localhost/virtops/test-guest:0.1.0
    vms:
      - name: node-1
      - name: node-2
        memory: 512Mi
      - name: node-3
    wait: true
    wait_timeout: 300

- name: Delete one of them, and start the others if they do not run
  virtops.kubevirt.kubevirt_vm:
    namespace: default
    vms:
      - name: node-1
        state: started
      - name: node-2
        state: started
      - name: node-3
        state: absent
    wait: true

- name: Delete a virtual machine, and wait until the claims of its DataVolumes are gone
  virtops.kubevirt.kubevirt_vm:
    name: web
    namespace: default
    state: absent
    wait: true
    wait_for_claims: true

- name: Create a machine with a disk that CDI fills before the machine starts
  virtops.kubevirt.kubevirt_vm:
    name: fedora
    namespace: default
    run_strategy: Always
    memory: 2Gi
    data_volume_templates:
      - metadata:
          name: fedora-root
        spec:
          source:
            registry:
              url: docker://quay.io/containerdisks/fedora:latest
          storage:
            resources:
              requests:
                storage: 10Gi
    disks:
      - name: root
        disk:
          bus: virtio
    volumes:
      - name: root
        dataVolume:
          name: fedora-root
    wait: true
    wait_timeout: 1800
"""

RETURN = r"""
result:
  description: The VirtualMachine after the action; empty when it is deleted. Secrets are not shown.
  returned: success, without O(vms)
  type: dict
  sample:
    apiVersion: kubevirt.io/v1
    kind: VirtualMachine
    metadata:
      name: web
      namespace: default
method:
  description: >-
    The request to the server, V(create), V(apply), V(patch), V(replace), V(delete), V(start), V(stop), V(restart),
    V(pause), V(unpause), V(reset) or V(softreboot).
  returned: when something changed, without O(vms)
  type: str
  sample: create
restart_required:
  description: >-
    Whether changes of the declaration take effect only at the next start; the condition C(RestartRequired) in RV(result) says
    which. Missing after O(state=absent), for a change in check mode, and with a warning if virt-controller does not look at
    the change.
  returned: success, without O(vms)
  type: bool
  sample: false
duration:
  description: Seconds until the task was done.
  returned: with O(wait=true), without O(vms)
  type: float
  sample: 1.6
results:
  description: >-
    One entry per VirtualMachine, in the order of O(vms). An entry is what a task for this machine alone would return, as in the
    C(results) of a loop.
  returned: with O(vms), also on failure
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
    restart_required:
      description: As RV(restart_required).
      returned: success
      type: bool
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
  sample: "launcher Pod virt-launcher-web-5d0a3c1e-1 finds no node: 0/1 nodes are available: 1 Insufficient memory."
printable_status:
  description: The VirtualMachine's status in one word.
  returned: failure of a wait
  type: str
  sample: ErrorUnschedulable
conditions:
  description: The VirtualMachine's conditions.
  returned: failure of a wait
  type: list
  elements: dict
events:
  description: The newest warnings about the VirtualMachine, its instance and its Pod, each once.
  returned: failure of a wait
  type: list
  elements: str
console:
  description:
    - The last lines that the guest printed on its serial console, oldest first, at most 20 and 4096 characters, without escape
      sequences. The message ends with them, unless the task has O(vms).
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
from ..module_utils._vm import batch
from ..module_utils._vm.request import argspec


def main():
    module = frame.VirtModule(
        argument_spec=argspec.vm_spec(),
        entries="vms",
        mutually_exclusive=[*argspec.EXCLUSIVE, ["vms", "name"], ["vms", "generate_name"]],
        required_one_of=[["name", "generate_name", "definition", "vms"]],
        supports_check_mode=True,
    )
    frame.run(module, functools.partial(batch.run, shows_console=not module.no_log))


if __name__ == "__main__":
    main()

#!/usr/bin/python
# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kubevirt_vm
short_description: Declare and operate KubeVirt virtual machines
description:
  - Creates, changes and deletes VirtualMachines of C(kubevirt.io), one or many in a task, starts, stops and restarts them,
    and pauses, resets and reboots their guests.
  - Works with the control plane of this collection and with upstream KubeVirt.
  - What is there is read first and compared; a task that changes nothing sends one request for a VirtualMachine, or
    one for all of a namespace, and writes nothing.
author:
  - virtops.kubevirt contributors (@virtops)
extends_documentation_fragment:
  - virtops.kubevirt.auth
  - virtops.kubevirt.wait
  - virtops.kubevirt.attributes
  - virtops.kubevirt.attributes.actiongroup
attributes:
  check_mode:
    support: full
    details:
      - The server checks what would be sent (dry run), admission included; a reset and a soft reboot have no dry run.
      - RV(result) has the run strategy that a start or a stop would leave; its C(status) is that of before.
  diff_mode:
    support: full
    details:
      - For creation, change, deletion and power states. Secrets are not shown.
  idempotent:
    support: partial
    details:
      - O(state=restarted), O(state=reset), O(state=softrebooted) and O(generate_name) do what they say each time.
options:
  name:
    description:
      - Name of the VirtualMachine.
      - Mutually exclusive with O(generate_name).
    type: str
  generate_name:
    description:
      - Beginning of a name that the server completes. Every run makes another VirtualMachine.
      - Only with O(state=present). Mutually exclusive with O(name).
    type: str
  namespace:
    description:
      - Namespace of the VirtualMachine. Needed here or in O(definition).
    type: str
  definition:
    description:
      - A VirtualMachine as the API has it; C(apiVersion) and C(kind) may be left out.
      - A definition with a C(spec) is the whole. What an earlier definition of this module declared and this one does not is
        taken away, except the run strategy; what others added stays, and what options alone have changed. Without it, the
        other options change what they name and leave the rest alone.
      - Whose the entries of lists are is noted, without any value, in the annotation C(virtops.kubevirt/declared-items).
      - What the server made (C(status), C(metadata.uid) and the like) may be in it and is left aside.
      - A key with the value V(null) is taken away.
    type: dict
    aliases: [resource_definition]
  annotations:
    description:
      - Annotations of the VirtualMachine, and of its template when the task says what the machine is.
    type: dict
  labels:
    description:
      - Labels of the VirtualMachine, and of its template when the task says what the machine is.
    type: dict
  running:
    description:
      - V(true) is the run strategy V(Always), V(false) is V(Halted).
      - A VirtualMachine that is created runs unless this or O(run_strategy) says otherwise. One that exists is never
        started or stopped because neither is set.
      - Mutually exclusive with O(run_strategy).
    type: bool
  run_strategy:
    description:
      - When the VirtualMachine runs.
      - Power states come first. With O(state=stopped) a strategy that would start it is set aside (V(Always), V(Once) and
        V(RerunOnFailure)), with O(state=started) and O(state=restarted) the strategy V(Halted) is. A VirtualMachine that is
        created stopped is V(Halted) instead, one that is created started is V(Always).
      - Mutually exclusive with O(running).
    type: str
    choices: [Always, Halted, Manual, Once, RerunOnFailure]
  start_paused:
    description:
      - With O(state=started), a guest that this task starts begins paused; O(state=unpaused) lets it run. One that runs
        already is left as it is.
      - A VirtualMachine that is created by the task is created V(Halted) and started then.
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
      - Templates of DataVolumes that the VirtualMachine owns, joined by C(metadata.name) as O(disks) are by name. The control
        plane must support them.
    type: list
    elements: dict
  spec:
    description:
      - The template's C(spec) (that of a VirtualMachineInstance), laid over the one in O(definition).
      - Disks, volumes, interfaces, networks, filesystems, GPUs and host devices are joined by name, as with O(disks). Any
        other list is a whole.
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
      - Container image with the disk to boot from; becomes disk and volume V(containerdisk). A disk of that name that is
        there or declared otherwise is left as it is.
    type: str
  cloud_init:
    description:
      - Data for the guest's cloud-init; becomes disk and volume V(cloudinit). A disk of that name that is there or declared
        otherwise is left as it is.
    type: dict
    suboptions:
      type:
        description: How the guest is given the data. The control plane of this collection knows V(no_cloud).
        type: str
        choices: [no_cloud, config_drive]
        default: no_cloud
      user_data:
        description: The user data, a text. Every user with the right to read the VirtualMachine can see it; prefer a Secret.
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
      - Disks as the API has them, joined by name with those of O(spec), of O(definition) and of the VirtualMachine that is
        there.
      - What an entry names is changed; its other fields and other entries stay, in their order, and new ones come last.
      - An entry with only V(null) beside its name is removed.
    type: list
    elements: dict
  volumes:
    description:
      - Volumes as the API has them, joined by name as O(disks) are. Another kind of source replaces the old one.
    type: list
    elements: dict
  interfaces:
    description:
      - Network interfaces as the API has them, joined by name as O(disks) are.
    type: list
    elements: dict
  networks:
    description:
      - Networks as the API has them, joined by name as O(disks) are.
    type: list
    elements: dict
  eviction_strategy:
    description:
      - What happens when the machine's Pod is evicted, as by C(kubectl drain). V(None) stops it, V(LiveMigrate) keeps
        it where it is unless it can move, V(LiveMigrateIfPossible) moves or stops it, V(External) leaves it to others.
      - The cluster's own by default.
    type: str
    choices: [External, LiveMigrate, LiveMigrateIfPossible, None]
  further_attempts:
    description:
      - How often a run that its node cannot begin is tried again, elsewhere if it can be. The cluster's own by default.
      - An annotation that the control plane of this collection heeds.
    type: int
  run_timeout:
    description:
      - Seconds that a launcher may take to come up once its Pod has a node; V(0) is no bound.
      - The cluster's own by default.
      - An annotation that the control plane of this collection heeds.
    type: int
  delete_options:
    description:
      - How to delete, with O(state=absent). Refused where no machine of the task for which it is given is deleted.
    type: dict
    suboptions:
      propagationPolicy:
        description: What becomes of the objects that the VirtualMachine owns. V(Orphan) leaves its instance running.
        type: str
        choices: [Foreground, Background, Orphan]
      preconditions:
        description: Refuse unless the VirtualMachine is the one that is meant.
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
      - How long the guest may take to shut down, with O(state=stopped).
      - With O(state=restarted) only V(0) is possible, which does not wait for the guest.
      - Refused where no machine of the task for which it is given is stopped or restarted; O(state=absent) goes by what the
        machine itself declares (C(terminationGracePeriodSeconds)).
    type: int
  state:
    description:
      - V(present) makes the VirtualMachine be as declared, V(absent) deletes it; in a cluster without KubeVirt nothing is to
        be deleted.
      - V(started), V(stopped) and V(restarted) do so as well where something is declared, and then see to the guest.
        V(restarted) always restarts a guest that runs; it starts one that does not.
      - V(paused) and V(unpaused) halt the processors of a guest that runs and let them go on. V(reset) is the reset button
        of a guest that runs, V(softrebooted) asks it to reboot (by its agent, or by ACPI). They fail where no guest runs.
    type: str
    choices: [absent, present, restarted, started, stopped, paused, unpaused, reset, softrebooted]
    default: present
  force:
    description:
      - Replace an existing VirtualMachine by what is declared. Nothing is kept but its identity, its run strategy, labels and
        annotations that others wrote, and what the control plane filled in.
    type: bool
    default: false
  wait:
    description:
      - Wait until the guest runs and is ready, or has stopped or paused, as the state and the run strategy want; with
        O(state=absent) until the VirtualMachine, its instance and its launcher Pod are gone.
      - When the time is over, the task fails with the reason, from the VirtualMachine, its instance, its Pod and their events.
    type: bool
    default: false
  wait_condition:
    description:
      - A condition to wait for as well, of the instance while there is one, else of the VirtualMachine.
      - Only with O(wait=true), and not with O(state=absent).
    type: dict
    suboptions:
      type:
        description: Its type, such as V(AgentConnected).
        type: str
        required: true
      status:
        description: Its status. A condition that is not there counts as V("False").
        type: str
        choices: ['True', 'False', Unknown]
        default: 'True'
      reason:
        description: Its reason; any by default.
        type: str
  wait_for_claims:
    description:
      - With O(state=absent) and O(wait=true), wait also until the claims (PersistentVolumeClaim) of its DataVolumes are gone. Those of
        O(data_volume_templates) go with the VirtualMachine; claims that it only uses stay, and are not waited for.
      - A second run after a timeout does not wait for the claims of a VirtualMachine that is gone by then.
      - Needs the right to read PersistentVolumeClaims, and DataVolumes.
    type: bool
    default: false
  vms:
    description:
      - Several VirtualMachines, worked on at the same time and waited for together.
      - The task's own options stand in for what an entry leaves out. A task with errors does all that it can and then fails.
      - Mutually exclusive with O(name) and O(generate_name).
    type: list
    elements: dict
    suboptions:  # as above; written by python -m tests.sanity.vms_options
        name:
          description:
            - Name of the VirtualMachine.
            - Mutually exclusive with O(vms[].generate_name).
          type: str
        generate_name:
          description:
            - Beginning of a name that the server completes. Every run makes another VirtualMachine.
            - Only with O(vms[].state=present). Mutually exclusive with O(vms[].name).
          type: str
        namespace:
          description:
            - Namespace of the VirtualMachine. Needed here or in O(vms[].definition).
          type: str
        definition:
          description:
            - A VirtualMachine as the API has it; C(apiVersion) and C(kind) may be left out.
            - A definition with a C(spec) is the whole. What an earlier definition of this module declared and this one does not is
              taken away, except the run strategy; what others added stays, and what options alone have changed. Without it, the
              other options change what they name and leave the rest alone.
            - Whose the entries of lists are is noted, without any value, in the annotation C(virtops.kubevirt/declared-items).
            - What the server made (C(status), C(metadata.uid) and the like) may be in it and is left aside.
            - A key with the value V(null) is taken away.
          type: dict
          aliases: [resource_definition]
        annotations:
          description:
            - Annotations of the VirtualMachine, and of its template when the task says what the machine is.
          type: dict
        labels:
          description:
            - Labels of the VirtualMachine, and of its template when the task says what the machine is.
          type: dict
        running:
          description:
            - V(true) is the run strategy V(Always), V(false) is V(Halted).
            - A VirtualMachine that is created runs unless this or O(vms[].run_strategy) says otherwise. One that exists is never
              started or stopped because neither is set.
            - Mutually exclusive with O(vms[].run_strategy).
          type: bool
        run_strategy:
          description:
            - When the VirtualMachine runs.
            - Power states come first. With O(vms[].state=stopped) a strategy that would start it is set aside (V(Always), V(Once) and
              V(RerunOnFailure)), with O(vms[].state=started) and O(vms[].state=restarted) the strategy V(Halted) is. A VirtualMachine that is
              created stopped is V(Halted) instead, one that is created started is V(Always).
            - Mutually exclusive with O(vms[].running).
          type: str
          choices: [Always, Halted, Manual, Once, RerunOnFailure]
        start_paused:
          description:
            - With O(vms[].state=started), a guest that this task starts begins paused; O(vms[].state=unpaused) lets it run. One that runs
              already is left as it is.
            - A VirtualMachine that is created by the task is created V(Halted) and started then.
            - To start it paused with every start, declare C(startStrategy) in O(vms[].spec).
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
            - Templates of DataVolumes that the VirtualMachine owns, joined by C(metadata.name) as O(vms[].disks) are by name. The control
              plane must support them.
          type: list
          elements: dict
        spec:
          description:
            - The template's C(spec) (that of a VirtualMachineInstance), laid over the one in O(vms[].definition).
            - Disks, volumes, interfaces, networks, filesystems, GPUs and host devices are joined by name, as with O(vms[].disks). Any
              other list is a whole.
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
            - Container image with the disk to boot from; becomes disk and volume V(containerdisk). A disk of that name that is
              there or declared otherwise is left as it is.
          type: str
        cloud_init:
          description:
            - Data for the guest's cloud-init; becomes disk and volume V(cloudinit). A disk of that name that is there or declared
              otherwise is left as it is.
          type: dict
          suboptions:
            type:
              description: How the guest is given the data. The control plane of this collection knows V(no_cloud).
              type: str
              choices: [no_cloud, config_drive]
              default: no_cloud
            user_data:
              description: The user data, a text. Every user with the right to read the VirtualMachine can see it; prefer a Secret.
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
            - Disks as the API has them, joined by name with those of O(vms[].spec), of O(vms[].definition) and of the VirtualMachine that is
              there.
            - What an entry names is changed; its other fields and other entries stay, in their order, and new ones come last.
            - An entry with only V(null) beside its name is removed.
          type: list
          elements: dict
        volumes:
          description:
            - Volumes as the API has them, joined by name as O(vms[].disks) are. Another kind of source replaces the old one.
          type: list
          elements: dict
        interfaces:
          description:
            - Network interfaces as the API has them, joined by name as O(vms[].disks) are.
          type: list
          elements: dict
        networks:
          description:
            - Networks as the API has them, joined by name as O(vms[].disks) are.
          type: list
          elements: dict
        eviction_strategy:
          description:
            - What happens when the machine's Pod is evicted, as by C(kubectl drain). V(None) stops it, V(LiveMigrate) keeps
              it where it is unless it can move, V(LiveMigrateIfPossible) moves or stops it, V(External) leaves it to others.
            - The cluster's own by default.
          type: str
          choices: [External, LiveMigrate, LiveMigrateIfPossible, None]
        further_attempts:
          description:
            - How often a run that its node cannot begin is tried again, elsewhere if it can be. The cluster's own by default.
            - An annotation that the control plane of this collection heeds.
          type: int
        run_timeout:
          description:
            - Seconds that a launcher may take to come up once its Pod has a node; V(0) is no bound.
            - The cluster's own by default.
            - An annotation that the control plane of this collection heeds.
          type: int
        delete_options:
          description:
            - How to delete, with O(vms[].state=absent). Refused where no machine of the task for which it is given is deleted.
          type: dict
          suboptions:
            propagationPolicy:
              description: What becomes of the objects that the VirtualMachine owns. V(Orphan) leaves its instance running.
              type: str
              choices: [Foreground, Background, Orphan]
            preconditions:
              description: Refuse unless the VirtualMachine is the one that is meant.
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
            - How long the guest may take to shut down, with O(vms[].state=stopped).
            - With O(vms[].state=restarted) only V(0) is possible, which does not wait for the guest.
            - Refused where no machine of the task for which it is given is stopped or restarted; O(vms[].state=absent) goes by what the
              machine itself declares (C(terminationGracePeriodSeconds)).
          type: int
        state:
          description: The wanted state; O(state) by default.
          type: str
          choices: [absent, present, restarted, started, stopped, paused, unpaused, reset, softrebooted]
        force:
          description: Whether to replace it; O(force) by default.
          type: bool
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

- name: Declare it as the API has it
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

- name: Give it a second disk; what it has already stays
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

- name: Take that disk away again
  virtops.kubevirt.kubevirt_vm:
    name: web
    namespace: default
    disks:
      - name: data
        disk: null
    volumes:
      - name: data
        emptyDisk: null

- name: Stop it, and wait until the guest has shut down
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

- name: Let it go on
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

- name: Delete one of them, and see to it that the others run
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

- name: Delete a virtual machine with everything that belongs to it
  virtops.kubevirt.kubevirt_vm:
    name: web
    namespace: default
    state: absent
    wait: true
    wait_for_claims: true

- name: Have CDI fill a disk that belongs to the machine, and start it when that is full
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
duration:
  description: Seconds until the task was done.
  returned: with O(wait=true), without O(vms)
  type: float
  sample: 1.6
results:
  description: One entry per VirtualMachine, in the order of O(vms).
  returned: with O(vms), also on failure
  type: list
  elements: dict
  contains:
    name:
      description: Its name, also one that the server made; empty where O(vms[].generate_name) was given and nothing was created.
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
      description: Only there, and V(true), when this one failed.
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
  description: Why the wait failed; the most specific cause in the Pod, the scheduler's report, the instance and the events.
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
  description: The newest warnings about the VirtualMachine, its instance and its Pod.
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

from ..module_utils._client import frame
from ..module_utils._vm import batch
from ..module_utils._vm.request import argspec


def main():
    module = frame.VirtModule(
        argument_spec=argspec.vm_spec(),
        mutually_exclusive=[*argspec.EXCLUSIVE, ["vms", "name"], ["vms", "generate_name"]],
        required_one_of=[["name", "generate_name", "definition", "vms"]],
        supports_check_mode=True,
    )
    frame.run(module, batch.run)


if __name__ == "__main__":
    main()

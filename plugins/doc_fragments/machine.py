# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the options that say what a machine is. A module may describe one of them in its own words."""

from __future__ import annotations


class ModuleDocFragment:
    """Shared by the modules of all kinds that describe machines."""

    DOCUMENTATION = r"""
options:
  definition:
    description:
      - The object as in the API; C(apiVersion) and C(kind) are optional. Other options override its fields.
      - Fields that the server sets (C(status), C(metadata.uid) and the like) are ignored.
      - A key with the value V(null) is removed.
    type: dict
    aliases: [resource_definition]
  spec:
    description:
      - The C(spec) of a VirtualMachineInstance, merged over the one in O(definition).
      - Disks, volumes, interfaces, networks, filesystems, GPUs and host devices are merged by name, like O(disks).
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
      - Container image with the boot disk; becomes disk and volume V(containerdisk).
      - The task makes this disk the first one, and a guest boots from its first disk unless a C(bootOrder) is declared.
        An existing or declared disk of that name is not changed.
    type: str
  cloud_init:
    description:
      - Data for the guest's cloud-init; becomes disk and volume V(cloudinit). An existing or declared disk of that
        name is not changed.
      - Refused if the machine has another volume with data for cloud-init, because a guest reads only one.
    type: dict
    suboptions:
      type:
        description: The cloud-init data source. The control plane of this collection supports V(no_cloud).
        type: str
        choices: [no_cloud, config_drive]
        default: no_cloud
      user_data:
        description:
          - The user data, a text of at most 2048 bytes. Every user with read access to the object can see it; prefer a
            Secret, which has room for more.
        type: str
      user_data_secret:
        description: Name of a Secret with the user data under the key C(userdata).
        type: str
      network_data:
        description: The network data, at most 2048 bytes; a Secret has room for more.
        type: str
      network_data_secret:
        description: Name of a Secret with the network data under the key C(networkdata).
        type: str
  disks:
    description:
      - Disks as in the API, merged by name with those of O(spec), of O(definition) and of the existing object.
      - An entry changes only the fields that it contains. Other entries stay in their order; new ones are appended.
      - An entry with only V(null) values beside its name is removed. If there is no entry of that name, the task warns.
    type: list
    elements: dict
  volumes:
    description:
      - Volumes as in the API, merged by name like O(disks). Another kind of source replaces the old one.
    type: list
    elements: dict
  interfaces:
    description:
      - Network interfaces as in the API, merged by name like O(disks).
    type: list
    elements: dict
  networks:
    description:
      - Networks as in the API, merged by name like O(disks).
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
      - How to delete, only with O(state=absent).
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
  wait_condition:
    description:
      - A further condition of the object to wait for.
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
"""

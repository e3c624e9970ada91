# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the options that say what a machine is, of all kinds that describe machines but VirtualMachine.

kubevirt_vm has them in its own documentation, because the suboptions of its `vms` are written from there.
"""

from __future__ import annotations


class ModuleDocFragment:
    """Shared by kubevirt_vmi, kubevirt_replicaset and kubevirt_pool."""

    DOCUMENTATION = r"""
options:
  definition:
    description:
      - The object as the API has it; C(apiVersion) and C(kind) may be left out. Other options are laid over it.
      - What the server made (C(status), C(metadata.uid) and the like) may be in it and is left aside.
      - A key with the value V(null) is taken away.
    type: dict
    aliases: [resource_definition]
  spec:
    description:
      - The C(spec) of a VirtualMachineInstance, laid over the one in O(definition).
      - Disks, volumes, interfaces, networks, filesystems, GPUs and host devices are joined by name, as with O(disks).
        Any other list is a whole.
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
      - Container image with the disk to boot from; becomes disk and volume V(containerdisk). A disk of that name that
        is there or declared otherwise is left as it is.
    type: str
  cloud_init:
    description:
      - Data for the guest's cloud-init; becomes disk and volume V(cloudinit). A disk of that name that is there or
        declared otherwise is left as it is.
    type: dict
    suboptions:
      type:
        description: How the guest is given the data. The control plane of this collection knows V(no_cloud).
        type: str
        choices: [no_cloud, config_drive]
        default: no_cloud
      user_data:
        description: The user data, a text. Every user with the right to read the object can see it; prefer a Secret.
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
      - Disks as the API has them, joined by name with those of O(spec), of O(definition) and of what is there.
      - What an entry names is changed; its other fields and other entries stay, in their order, and new ones come last.
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
      - How to delete, with O(state=absent). Refused with any other, O(force) or not.
    type: dict
    suboptions:
      propagationPolicy:
        description: What becomes of the objects that this one owns.
        type: str
        choices: [Foreground, Background, Orphan]
      preconditions:
        description: Refuse unless the object is the one that is meant.
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
      - A condition of the object to wait for as well.
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
"""

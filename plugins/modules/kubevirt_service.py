#!/usr/bin/python
# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kubevirt_service
short_description: Expose KubeVirt virtual machines as Services
description:
  - Creates, changes and deletes a Service in front of a VirtualMachine, of an instance, or of the instances of a replica
    set, as C(virtctl expose) does, and is idempotent.
  - A Service finds guests by labels of their Pods. That of a VirtualMachine or an instance is C(vmi.kubevirt.io/id).
  - What is there is read first and compared; a task that changes nothing writes nothing. Fields that no option is for stay
    as they are.
author:
  - virtops.kubevirt contributors (@virtops)
extends_documentation_fragment:
  - virtops.kubevirt.auth
  - virtops.kubevirt.attributes
  - virtops.kubevirt.attributes.actiongroup
attributes:
  check_mode:
    support: full
    details:
      - The server checks what would be sent (dry run). What is exposed may be missing then, if O(ports) says which ports.
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  name:
    description:
      - Name of the Service; the name of what is exposed by default.
      - A Service of that name is changed or deleted by what is exposed only if it is seen to be for it. It belongs to it, or
        finds Pods by the labels that this task would write and no others, or by C(vm.kubevirt.io/name), as those that
        C(virtctl) makes.
      - Any other, such as one without a selector, is neither changed nor deleted unless O(selector) is given, or, with
        O(state=absent), O(name) alone.
      - A Service that finds the Pods of another machine by C(vmi.kubevirt.io/id) is moved to the one that is exposed where
        O(name) is given as well.
    type: str
  namespace:
    description:
      - Namespace of the Service and of what is exposed.
    type: str
    required: true
  vm:
    description:
      - Name of the VirtualMachine that is exposed.
      - Mutually exclusive with O(vmi) and O(replicaset).
    type: str
  vmi:
    description:
      - Name of the VirtualMachineInstance that is exposed.
      - Mutually exclusive with O(vm) and O(replicaset).
    type: str
  replicaset:
    description:
      - Name of the VirtualMachineInstanceReplicaSet whose instances are exposed, by the labels that it goes by.
      - Mutually exclusive with O(vm) and O(vmi).
    type: str
  selector:
    description:
      - Labels of the Pods that are meant, in place of those that follow from what is exposed. Labels of a machine's template
        are labels of its Pods.
      - Needed for releases of KubeVirt that do not label Pods with C(vmi.kubevirt.io/id).
    type: dict
  ports:
    description:
      - Ports of the Service. Those that are not listed are taken away.
      - Without them a Service that exists keeps its ports, or has those that the interfaces of what is exposed declare.
    type: list
    elements: dict
    suboptions:
      port:
        description: Port of the Service.
        type: int
        required: true
      target_port:
        description: Port of the guest, a number or a name; O(ports[].port) by default.
        type: raw
      protocol:
        description: Protocol.
        type: str
        choices: [TCP, UDP, SCTP]
        default: TCP
      name:
        description: Name of the port, needed where there are several.
        type: str
      node_port:
        description: Port of the nodes. The server chooses one where O(type) needs one and this is not set.
        type: int
  type:
    description:
      - How it can be reached. A new Service is reached from inside the cluster, by V(ClusterIP), unless this says otherwise;
        that of one that exists is left alone unless this is set.
    type: str
    choices: [ClusterIP, NodePort, LoadBalancer]
  cluster_ip:
    description:
      - Address of the Service inside the cluster; V(None) for a headless one. Cannot be changed.
    type: str
  external_ips:
    description:
      - Addresses of nodes that are for the Service as well.
    type: list
    elements: str
  ip_families:
    description:
      - Families of the addresses.
    type: list
    elements: str
    choices: [IPv4, IPv6]
  ip_family_policy:
    description:
      - Whether it has addresses of one family or of both.
    type: str
    choices: [SingleStack, PreferDualStack, RequireDualStack]
  labels:
    description:
      - Labels of the Service. Others that are there stay.
    type: dict
  annotations:
    description:
      - Annotations of the Service. Others that are there stay.
    type: dict
  owned:
    description:
      - The Service belongs to what is exposed, and is deleted with it. V(false) takes this from one that does.
    type: bool
    default: true
  state:
    description:
      - Whether the Service should exist.
    type: str
    choices: [absent, present]
    default: present
  wait:
    description:
      - Wait until a V(LoadBalancer) has an address; with O(state=absent) until the Service is gone.
    type: bool
    default: false
  wait_timeout:
    description:
      - How many seconds to wait. Where the server answers badly or not at all, it may be a few seconds more.
    type: int
    default: 120
seealso:
  - module: virtops.kubevirt.kubevirt_vm
  - module: virtops.kubevirt.kubevirt_replicaset
"""

EXAMPLES = r"""
- name: Reach the guest's port 8080 by the name web, port 80
  virtops.kubevirt.kubevirt_service:
    namespace: default
    vm: web
    ports:
      - port: 80
        target_port: 8080

- name: Reach it at a port of every node as well
  virtops.kubevirt.kubevirt_service:
    namespace: default
    vm: web
    type: NodePort

- name: Spread connections over the instances of a replica set
  virtops.kubevirt.kubevirt_service:
    name: work
    namespace: default
    replicaset: workers
    ports:
      - name: http
        port: 80
      - name: metrics
        port: 9100

- name: Expose no machine any more
  virtops.kubevirt.kubevirt_service:
    name: web
    namespace: default
    state: absent
    wait: true
"""

RETURN = r"""
result:
  description: The Service after the action; empty when it is deleted.
  returned: success
  type: dict
  sample:
    apiVersion: v1
    kind: Service
    metadata:
      name: web
      namespace: default
method:
  description: The request to the server, V(create), V(patch) or V(delete).
  returned: when something changed
  type: str
  sample: create
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
from ..module_utils._service import ensure


def main():
    module = frame.VirtModule(
        argument_spec=ensure.argument_spec(),
        mutually_exclusive=[["vm", "vmi", "replicaset"]],
        supports_check_mode=True,
    )
    frame.run(module, ensure.run)


if __name__ == "__main__":
    main()

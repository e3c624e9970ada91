#!/usr/bin/python
# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kubevirt_service
short_description: Expose KubeVirt virtual machines as Services
description:
  - Creates, changes and deletes a Service for a VirtualMachine, an instance, or the instances of a replica set, like C(virtctl
    expose), but idempotent.
  - A Service selects guests by labels of their Pods, for a VirtualMachine or an instance by C(vmi.kubevirt.io/id).
  - Reads and compares the existing Service first. A task that changes nothing writes nothing. Fields without an option stay as
    they are.
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
      - The server validates the request as a dry run. The exposed object and the namespace may not exist yet, because an
        earlier task of the playbook creates them. Check mode does not wait.
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  name:
    description:
      - Name of the Service; by default that of the exposed object. Needed where that is no name for a Service, because it has a
        dot or begins with a digit.
      - An existing Service is changed or deleted only if it is for the exposed object. Then the object owns it, or its selector
        is exactly the one that this task would write, or selects the object by C(vm.kubevirt.io/name), like those of C(virtctl).
      - Any other Service, such as one without a selector, is refused, unless O(selector) is given, or O(name) alone with
        O(state=absent).
      - With O(name), a Service that selects another machine by C(vmi.kubevirt.io/id) is moved to the exposed one.
    type: str
  namespace:
    description:
      - Namespace of the Service and of the exposed object.
    type: str
    required: true
  vm:
    description:
      - Name of the exposed VirtualMachine.
      - Mutually exclusive with O(vmi) and O(replicaset).
    type: str
  vmi:
    description:
      - Name of the exposed VirtualMachineInstance.
      - Mutually exclusive with O(vm) and O(replicaset).
    type: str
  replicaset:
    description:
      - Name of the VirtualMachineInstanceReplicaSet whose instances are exposed, by the labels of its selector.
      - Mutually exclusive with O(vm) and O(vmi).
    type: str
  selector:
    description:
      - Labels that select the Pods, instead of those of the exposed object. Pods have the labels of a machine's template.
      - Needed for releases of KubeVirt that do not label Pods with C(vmi.kubevirt.io/id).
    type: dict
  ports:
    description:
      - Ports of the Service. Others are removed. A port of the same number and protocol keeps the fields that the task does not
        set, such as C(nodePort).
      - Without them an existing Service keeps its ports, and a new one gets those of the exposed object's interfaces.
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
        description: Name of the port, required with several ports.
        type: str
      node_port:
        description: Port of the nodes. By default the server chooses one if O(type) needs it.
        type: int
  type:
    description:
      - How it can be reached. The default of a new Service is V(ClusterIP), inside the cluster; without this option that of an
        existing one stays.
    type: str
    choices: [ClusterIP, NodePort, LoadBalancer]
  cluster_ip:
    description:
      - Address of the Service inside the cluster; V(None) for a headless one. Cannot be changed.
    type: str
  external_ips:
    description:
      - Further addresses of the Service, on nodes.
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
      - Labels of the Service. Its other labels stay. A key with the value V(null) is removed.
    type: dict
  annotations:
    description:
      - Annotations of the Service. Its other annotations stay. A key with the value V(null) is removed.
    type: dict
  owned:
    description:
      - Whether the exposed object owns the Service, which is then deleted with it. V(false) removes the owner.
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
      - How many seconds to wait. If the server does not respond properly, it may take a few seconds longer.
      - Used with O(wait=true), and without it while a Service of the same name is being deleted, which has to be gone before
        another is created.
    type: int
    default: 120
seealso:
  - module: virtops.kubevirt.kubevirt_vm
  - module: virtops.kubevirt.kubevirt_replicaset
"""

EXAMPLES = r"""
- name: Expose the guest's port 8080 as port 80 of Service web
  virtops.kubevirt.kubevirt_service:
    namespace: default
    vm: web
    ports:
      - port: 80
        target_port: 8080

- name: Expose it on a port of every node as well
  virtops.kubevirt.kubevirt_service:
    namespace: default
    vm: web
    type: NodePort

- name: Expose the instances of a replica set
  virtops.kubevirt.kubevirt_service:
    name: work
    namespace: default
    replicaset: workers
    ports:
      - name: http
        port: 80
      - name: metrics
        port: 9100

- name: Remove the Service
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

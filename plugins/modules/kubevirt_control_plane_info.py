#!/usr/bin/python
# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kubevirt_control_plane_info
short_description: Report the control plane of a cluster, and wait until it serves
description:
  - Reports whether a cluster has the control plane of this collection, another KubeVirt or none, its objects, and the virtual
    machines.
author:
  - virtops (@virtops)
extends_documentation_fragment:
  - virtops.kubevirt.auth
  - virtops.kubevirt.attributes.info
  - virtops.kubevirt.attributes.actiongroup
options:
  namespace:
    description:
      - The namespace for the control plane; RV(namespace_owner) reports whose it is.
    type: str
  definitions:
    description:
      - The wanted objects of the control plane. RV(superfluous) reports others that it has, RV(namesakes) foreign objects with
        these names. Only kind, namespace and name matter.
    type: list
    elements: dict
    default: []
  node_selector:
    description:
      - The node selector of Pods; RV(control_plane_nodes) reports the control-plane nodes where they can run.
    type: dict
    default: {}
  tolerations:
    description:
      - The tolerations of these Pods.
    type: list
    elements: dict
    default: []
  launcher_image:
    description:
      - The image of launchers, with tag or digest; RV(in_other_launchers) reports machines in launchers of another image.
    type: str
  wait:
    description:
      - Wait until all objects of the control plane serve. Definitions are then established, components rolled out, API services
        and the control plane available.
      - Fails if no component of the control plane is installed.
      - Does not wait for nodes that are not Ready; RV(not_ready_nodes) has them. Does not wait in check mode.
    type: bool
    default: false
  wait_timeout:
    description:
      - How many seconds to wait in all. After the timeout the error names what is missing, and the problems of each component's
        Pods. If the server does not respond properly, it may take a few seconds longer.
    type: int
    default: 300
"""

EXAMPLES = r"""
- name: Find out what is installed
  virtops.kubevirt.kubevirt_control_plane_info:
  register: found

- name: Print it
  ansible.builtin.debug:
    msg: "{{ found.owner }} {{ found.version }}"

- name: Wait until the control plane serves
  virtops.kubevirt.kubevirt_control_plane_info:
    wait: true
    wait_timeout: 120
"""

RETURN = r"""
owner:
  description: V(ours) for this collection's control plane, V(other) for another KubeVirt, V(none).
  returned: success
  type: str
  sample: ours
evidence:
  description: The object that shows it; empty for V(none).
  returned: success
  type: str
  sample: CustomResourceDefinition kubevirts.kubevirt.io, managed by virt-operator
version:
  description: The version of this collection's control plane.
  returned: success
  type: str
  sample: 0.1.0
definitions_version:
  description:
    - The version of its custom resource definitions. They are never downgraded, so after a rollback they are newer than the
      components.
  returned: success
  type: str
  sample: 0.1.0
namespace:
  description: The namespace of this collection's control plane.
  returned: success
  type: str
  sample: kubevirt
namespace_owner:
  description:
    - V(ours) if O(namespace) has the label C(app.kubernetes.io/managed-by=virtops.kubevirt), V(other) if it does not, V(none)
      if it does not exist or is not given.
  returned: success
  type: str
  sample: none
namespace_terminating:
  description: Whether O(namespace) is being deleted. Nothing can be created in it then.
  returned: success
  type: bool
  sample: false
workloads:
  description: Virtual machines, pools, replica sets, and instances without a virtual machine, as namespace/name.
  returned: success
  type: list
  elements: str
  sample: ["default/web"]
workload_objects:
  description: The same and their migrations, as objects that M(kubernetes.core.k8s) can remove.
  returned: success
  type: list
  elements: dict
node_patches:
  description: Patches that take the control plane's labels and annotations off the nodes.
  returned: success
  type: list
  elements: dict
made:
  description: Objects with the labels of this collection's control plane, in the order of deletion.
  returned: success
  type: list
  elements: dict
superfluous:
  description:
    - Those of RV(made) that O(definitions) lacks and that hold no data, so an upgrade can delete them. Empty without
      O(definitions). Copies by others, which this collection has not applied, are not included.
  returned: success
  type: list
  elements: dict
namesakes:
  description: Objects of O(definitions) that exist without these labels, and so belong to somebody else.
  returned: success
  type: list
  elements: str
  sample: ["Namespace production"]
server_origin:
  description: Scheme, host and port of the API server's address that this module used.
  returned: success
  type: str
  sample: https://api.example.com:6443
server_version:
  description: The release of Kubernetes; none if it is unknown.
  returned: success
  type: str
  sample: 1.36.3
api_server_has_image_volumes:
  description:
    - Whether the API server accepts image volumes, which launchers use. Before Kubernetes 1.35 the feature gate C(ImageVolume)
      is off unless somebody turned it on. V(true) if it cannot be found out.
  returned: success
  type: bool
  sample: true
nodes:
  description: All nodes.
  returned: success
  type: list
  elements: str
  sample: ["worker-1"]
nodes_not_ready:
  description: The nodes that are not Ready.
  returned: success
  type: list
  elements: str
  sample: ["worker-3"]
components:
  description: Deployments and DaemonSets of this collection's control plane, with their status.
  returned: success
  type: list
  elements: dict
  contains:
    kind:
      description: V(Deployment) or V(DaemonSet).
      type: str
      sample: Deployment
    name:
      description: Its name.
      type: str
      sample: virt-api
    version:
      description: Version of the control plane that applied it.
      type: str
      sample: 0.1.0
    missing:
      description: What is missing until it serves as applied; empty if it serves.
      type: str
      sample: 1 of 2 updated, 2 available, 3 in all
in_other_launchers:
  description: Instances that run or start in a launcher of another image than O(launcher_image). Empty without that option.
  returned: success
  type: list
  elements: dict
  contains:
    namespace:
      description: Of the instance.
      type: str
      sample: default
    name:
      description: Of the instance.
      type: str
      sample: web
    node:
      description: Its node.
      type: str
      sample: worker-1
    launcher:
      description: The image of its launcher.
      type: str
      sample: localhost/virtops/virt-launcher:0.1.0
    can_move:
      description: Whether it can migrate.
      type: bool
      sample: true
    undecided:
      description: Whether that is not known yet, because it is starting or its node has not reported it.
      type: bool
      sample: false
    reason:
      description: Why it cannot migrate; empty if it can.
      type: str
      sample: ""
control_plane_nodes:
  description:
    - Nodes with the label C(node-role.kubernetes.io/control-plane) that match O(node_selector) and whose taints are in
      O(tolerations). Taints C(node.kubernetes.io/*), which follow a node's condition, are ignored.
  returned: success
  type: list
  elements: str
  sample: ["control-plane-1"]
kept_control_plane_nodes:
  description:
    - Those of RV(control_plane_nodes) with a taint C(node-role.kubernetes.io/control-plane) or
      C(node-role.kubernetes.io/master) of effect C(NoSchedule) or C(NoExecute). The others run virtual machines like any node.
  returned: success
  type: list
  elements: str
  sample: ["control-plane-1"]
nodes_without_image_volumes:
  description:
    - Nodes whose container runtime is too old for image volumes, or whose kubelet (before 1.35) has the feature gate
      C(ImageVolume) off, with its version.
  returned: success
  type: list
  elements: str
  sample: ["worker-3 (containerd 1.7.27)"]
has_pod_monitors:
  description: Whether the kinds of the Prometheus operator are served (group C(monitoring.coreos.com)).
  returned: success
  type: bool
  sample: false
check_mode:
  description: Whether the task ran in check mode. Earlier tasks have then not made their changes either.
  returned: success
  type: bool
  sample: false
not_ready_nodes:
  description:
    - Nodes that are not Ready or gone, for which the task did not wait. The control plane starts there when they become Ready.
  returned: success
  type: list
  elements: str
  sample: ["worker-3"]
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

from ..module_utils._client.argspec import auth_argument_spec
from ..module_utils._client.frame import VirtModule, run
from ..module_utils._cluster.inspect import run as inspect


def main() -> None:
    spec = {
        **auth_argument_spec(),
        "namespace": {"type": "str"},
        "definitions": {"type": "list", "elements": "dict", "default": []},
        "node_selector": {"type": "dict", "default": {}},
        "tolerations": {"type": "list", "elements": "dict", "default": []},
        "launcher_image": {"type": "str"},
        "wait": {"type": "bool", "default": False},
        "wait_timeout": {"type": "int", "default": 300},
    }
    run(VirtModule(argument_spec=spec, supports_check_mode=True), inspect)


if __name__ == "__main__":
    main()

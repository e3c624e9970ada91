#!/usr/bin/python
# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kubevirt_control_plane_info
short_description: Say whose control plane a cluster has, and wait until it serves
description:
  - Reports whether a cluster has this collection's control plane, another KubeVirt or none, which objects it consists of, and
    which virtual machines there are.
author:
  - virtops (@virtops)
extends_documentation_fragment:
  - virtops.kubevirt.auth
  - virtops.kubevirt.attributes.info
  - virtops.kubevirt.attributes.actiongroup
options:
  namespace:
    description:
      - The namespace that is meant for the control plane, to be told whose it is.
    type: str
  definitions:
    description:
      - The objects that the control plane shall have, to be told which others it has (RV(superfluous)) and which of these
        names other objects have (RV(namesakes)). Only kind, namespace and name matter.
    type: list
    elements: dict
    default: []
  node_selector:
    description:
      - The node selector of Pods, to be told on which control-plane nodes they can run (RV(control_plane_nodes)).
    type: dict
    default: {}
  tolerations:
    description:
      - Their tolerations, as in a Pod.
    type: list
    elements: dict
    default: []
  launcher_image:
    description:
      - The image of launchers, with its tag or digest, to be told which machines run in another one (RV(in_other_launchers)).
    type: str
  wait:
    description:
      - Whether to wait until all that carries the control plane's labels serves, which is until definitions are established,
        components are rolled out, and API services and the control plane are available.
      - It fails where no component of the control plane is installed, which nothing would ever make serve.
      - A node that is not Ready is not waited for; it is in RV(not_ready_nodes). In check mode nothing is waited for.
    type: bool
    default: false
  wait_timeout:
    description:
      - How many seconds to wait in all. What was still missing then is the error, with the trouble of each component's Pods.
        Where the server answers badly or not at all, it may be a few seconds more.
    type: int
    default: 300
"""

EXAMPLES = r"""
- name: Find out what is installed
  virtops.kubevirt.kubevirt_control_plane_info:
  register: found

- name: Say it
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
  description: What told so; empty for V(none).
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
    - The version of its custom resource definitions. After a rollback they are newer than the rest; they are never made older.
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
    - V(ours) if O(namespace) carries the label C(app.kubernetes.io/managed-by=virtops.kubevirt), V(other) if it does not,
      V(none) if there is no such namespace or none was asked about.
  returned: success
  type: str
  sample: none
namespace_terminating:
  description: Whether O(namespace) is being deleted, so that nothing can be made in it.
  returned: success
  type: bool
  sample: false
workloads:
  description: Virtual machines, replica sets, and instances without a virtual machine, as namespace/name.
  returned: success
  type: list
  elements: str
  sample: ["default/web"]
workload_objects:
  description: The same, as objects that M(kubernetes.core.k8s) can remove.
  returned: success
  type: list
  elements: dict
node_patches:
  description: Patches that take the control plane's labels and annotations off the nodes.
  returned: success
  type: list
  elements: dict
made:
  description: Objects that carry the labels of this collection's control plane, in the order in which they can be deleted.
  returned: success
  type: list
  elements: dict
superfluous:
  description:
    - Those of them that O(definitions) does not have and that can go with an upgrade, because they hold no data. Empty without
      O(definitions). What was not applied by this collection is a copy, and not among them.
  returned: success
  type: list
  elements: dict
namesakes:
  description: Objects of O(definitions) that exist without these labels, so that they belong to somebody else.
  returned: success
  type: list
  elements: str
  sample: ["Namespace production"]
server_version:
  description: The release of Kubernetes; none if the server does not say one.
  returned: success
  type: str
  sample: 1.36.3
nodes:
  description: All nodes.
  returned: success
  type: list
  elements: str
  sample: ["worker-1"]
nodes_not_ready:
  description: Those of them that are not Ready.
  returned: success
  type: list
  elements: str
  sample: ["worker-3"]
components:
  description: Deployments and DaemonSets of this collection's control plane, and how each of them stands.
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
      description: Of the control plane that it was applied with.
      type: str
      sample: 0.1.0
    missing:
      description: What keeps it from serving as it was applied; empty when nothing does.
      type: str
      sample: 1 of 2 updated, 2 available, 3 in all
in_other_launchers:
  description: Instances that run, or are being started, in a launcher of another image than O(launcher_image). Empty without that.
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
      description: Where it is.
      type: str
      sample: worker-1
    launcher:
      description: The image of its launcher.
      type: str
      sample: localhost/virtops/virt-launcher:0.1.0
    can_move:
      description: Whether it can be moved while it runs.
      type: bool
      sample: true
    undecided:
      description: Whether that will be said yet, for it is being started, or its node has not looked.
      type: bool
      sample: false
    reason:
      description: Why it cannot; empty where it can.
      type: str
      sample: ""
control_plane_nodes:
  description:
    - Those of them with the label C(node-role.kubernetes.io/control-plane) that O(node_selector) chooses and whose taints
      O(tolerations) put up with. Taints C(node.kubernetes.io/*), which come and go with a node's condition, do not count.
  returned: success
  type: list
  elements: str
  sample: ["control-plane-1"]
kept_control_plane_nodes:
  description:
    - Those of RV(control_plane_nodes) that a taint C(node-role.kubernetes.io/control-plane) with effect C(NoSchedule) or
      C(NoExecute) keeps for the control plane of the cluster. The others take virtual machines like any node.
  returned: success
  type: list
  elements: str
  sample: ["control-plane-1"]
nodes_without_image_volumes:
  description: Those of them whose container runtime is too old for image volumes, with its version.
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
  description: Whether the task ran in check mode, so that what tasks before it said that they did was not done.
  returned: success
  type: bool
  sample: false
not_ready_nodes:
  description: Nodes that are not Ready, or gone, so that the control plane was not waited for there. It begins there when they are.
  returned: success
  type: list
  elements: str
  sample: ["worker-3"]
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

#!/usr/bin/python
# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kubevirt_node_image_info
short_description: Read the container runtime of a node, and its images
description:
  - Runs on the node, and queries its container runtime. The role P(virtops.kubevirt.launcher_image#role) uses it.
author:
  - virtops (@virtops)
extends_documentation_fragment:
  - virtops.kubevirt.node_runtime
  - virtops.kubevirt.attributes.info
"""

EXAMPLES = r"""
- name: List the images of this node
  virtops.kubevirt.kubevirt_node_image_info:
  register: found

- name: Print the digest of the launchers' image
  ansible.builtin.debug:
    msg: "{{ found.images['localhost/virtops/virt-launcher:0.1.0'] | default('not there') }}"
"""

RETURN = r"""
runtime:
  description: V(containerd) or V(cri-o).
  returned: success
  type: str
  sample: containerd
images:
  description: Every image name of the runtime, with its digests.
  returned: success
  type: dict
  sample: {"localhost/virtops/virt-launcher:0.1.0": ["sha256:6c0e..."]}
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._node.frame import run
from ..module_utils._node.image import describe, runtime_spec


def main() -> None:
    run(AnsibleModule(argument_spec=runtime_spec(), supports_check_mode=True), describe)


if __name__ == "__main__":
    main()

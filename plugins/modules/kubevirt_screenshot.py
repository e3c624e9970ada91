#!/usr/bin/python
# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kubevirt_screenshot
short_description: Take screenshots of KubeVirt virtual machines
description:
  - Writes a picture of the screen of a VirtualMachineInstance to a file, as a PNG. The guest needs neither a network nor an agent.
    It may be paused.
  - Needs the right to C(get) C(virtualmachineinstances/vnc/screenshot), which the ClusterRole C(admin) has, and C(edit) has not.
author:
  - virtops.kubevirt contributors (@virtops)
extends_documentation_fragment:
  - virtops.kubevirt.auth
  - virtops.kubevirt.attributes
  - virtops.kubevirt.attributes.actiongroup
  - ansible.builtin.files
attributes:
  check_mode:
    support: full
    details:
      - The screenshot is taken, and compared with the file. The file is not written.
  diff_mode:
    support: none
  idempotent:
    support: partial
    details:
      - The file changes when the screen has changed.
options:
  name:
    description:
      - Name of the instance, which is that of its VirtualMachine.
    type: str
    required: true
  namespace:
    description:
      - Its namespace.
    type: str
    required: true
  dest:
    description:
      - The file to write, on the host of the task. Its folder must exist.
      - A screen may show secrets. O(mode) keeps the file from others. In a folder that others may write to, such as C(/tmp), also
        give O(owner), because a file that is there already keeps its owner.
    type: path
    required: true
seealso:
  - module: virtops.kubevirt.kubevirt_console
  - module: virtops.kubevirt.kubevirt_vm
"""

EXAMPLES = r"""
- name: Take a screenshot of a machine
  virtops.kubevirt.kubevirt_screenshot:
    name: web
    namespace: default
    dest: ~/web.png
    mode: "0600"
  register: screen

- name: Show its size
  ansible.builtin.debug:
    msg: "{{ screen.width }}x{{ screen.height }} pixels in {{ screen.path }}"
"""

RETURN = r"""
path:
  description: The file.
  returned: success
  type: str
  sample: /tmp/web.png
width:
  description: Width of the screen in pixels.
  returned: success
  type: int
  sample: 720
height:
  description: Height of the screen in pixels.
  returned: success
  type: int
  sample: 400
size:
  description: Size of the picture in bytes.
  returned: success
  type: int
  sample: 4711
causes:
  description: Problems that the API server reports, by field.
  returned: when the API server refuses
  type: list
  elements: dict
status:
  description: The HTTP status of the API server's refusal.
  returned: when the API server refuses
  type: int
  sample: 500
server_reason:
  description: The API server's reason for the refusal; may be empty.
  returned: when the API server refuses
  type: str
  sample: Forbidden
"""

import functools

from ..module_utils._client import frame
from ..module_utils._console import dest_file, screenshot


def main():
    module = frame.VirtModule(
        argument_spec=screenshot.argument_spec(),
        add_file_common_args=True,
        supports_check_mode=True,
    )
    write = functools.partial(dest_file.write, module)
    frame.run(module, lambda params, api, **_unused: screenshot.run(params, api, write=write))


if __name__ == "__main__":
    main()

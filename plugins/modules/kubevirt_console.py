#!/usr/bin/python
# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kubevirt_console
short_description: Use the serial console of KubeVirt virtual machines
description:
  - Sends lines to the serial console of a VirtualMachineInstance, and waits for patterns in what the guest prints. The guest
    needs neither a network nor an agent.
  - Reads what the guest has printed before, from the log of its Pod.
  - A console has one session. Opening it ends the session of another user, whose client gets the reason.
  - The session ends when the guest stops or moves to another node. The step that is under way then fails; run the task again.
  - The guest does not notice the end of a session. If a task fails after a login, the user stays logged in, and the next task
    that waits for a login prompt times out.
author:
  - virtops.kubevirt contributors (@virtops)
extends_documentation_fragment:
  - virtops.kubevirt.auth
  - virtops.kubevirt.attributes
  - virtops.kubevirt.attributes.actiongroup
attributes:
  check_mode:
    support: partial
    details:
      - Opens no console and sends nothing. A task that would send is changed. The log is read.
  diff_mode:
    support: none
  idempotent:
    support: none
    details:
      - What is sent is sent again.
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
  steps:
    description:
      - What to do, in this order. The task fails at the first step that does not succeed, and shows the last lines of the guest.
      - To get a prompt that was printed before, send an empty line.
    type: list
    elements: dict
    suboptions:
      send:
        description:
          - Text to send. What the guest has printed before is not matched any more.
          - Mutually exclusive with O(steps[].send_secret).
        type: str
      send_secret:
        description:
          - Text to send that is never shown, such as a password. Of several lines, each one that has at least 4 characters is hidden
            in what the guest repeats.
        type: str
      enter:
        description:
          - Whether the text ends with the Enter key.
        type: bool
        default: true
      expect:
        description:
          - Regular expression (Python's; V(^) and V($) match at each line) to wait for. Escape sequences and carriage returns are
            removed from the output first.
          - Only the last 64 KiB of the output are searched. If older output was dropped, the error of a timeout says so.
          - The whole output is searched again whenever the guest prints something. A pattern with several greedy parts that match
            across lines, such as C((?s).*), is slow there; one for the last line, such as C(# $), is fast.
        type: str
      timeout:
        description:
          - Seconds to send the text and to wait for O(steps[].expect), at least 1.
        type: int
        default: 60
  backlog:
    description:
      - Whether a first step that sends nothing also sees what the guest has printed before the console was opened, the last 64 KiB.
        So the task need not be there when it is printed. It may be from before a reboot of the guest.
      - After a migration it is what was printed since then.
      - If the first step sends something, or with KubeVirt's own control plane, which keeps no backlog, only output that comes after
        the console was opened is seen.
    type: bool
    default: true
  log_lines:
    description:
      - Return this many of the last lines that the guest has printed, at most 64 KiB.
      - The task fails if the machine has no serial console (C(autoattachSerialConsole=false) in its spec).
      - What the guest prints while a session reads its console may be in the log twice in part. What the session receives is right.
    type: int
  log_since:
    description:
      - Return only lines that the guest has printed in this many last seconds.
    type: int
  timeout:
    description:
      - Seconds to wait until the console can be opened, because the machine starts.
    type: int
    default: 120
seealso:
  - module: virtops.kubevirt.kubevirt_vm
  - module: virtops.kubevirt.kubevirt_vmi_info
"""

EXAMPLES = r"""
- name: Log in and run a command
  virtops.kubevirt.kubevirt_console:
    name: web
    namespace: default
    steps:
      - send: ""
        expect: "login: $"
      - send: root
        expect: "Password: $"
      - send_secret: "{{ root_password }}"
        expect: "# $"
      - send: cat /proc/loadavg
        expect: "^([0-9.]+) "
      - send: exit
  register: console

- name: Show the load
  ansible.builtin.debug:
    msg: "{{ console.steps[3].groups[0] }}"
  when: not ansible_check_mode

- name: See whether a task that failed has left the guest logged in
  virtops.kubevirt.kubevirt_console:
    name: web
    namespace: default
    steps:
      - send: ""
        expect: "(login:|#) $"
  register: prompt

- name: Log out
  virtops.kubevirt.kubevirt_console:
    name: web
    namespace: default
    steps:
      - send: exit
        expect: "login: $"
  when: not ansible_check_mode and prompt.steps[0].groups[0] == "#"

- name: Wait until the guest says that it has booted
  virtops.kubevirt.kubevirt_console:
    name: web
    namespace: default
    steps:
      - expect: "login:"
        timeout: 300

- name: Wait for the next boot, whatever was printed before
  virtops.kubevirt.kubevirt_console:
    name: web
    namespace: default
    backlog: false
    steps:
      - expect: "login:"
        timeout: 300

- name: Read the last lines of the console without opening it
  virtops.kubevirt.kubevirt_console:
    name: web
    namespace: default
    log_lines: 50
"""

RETURN = r"""
transcript:
  description:
    - What the guest has printed since the console was opened, with O(backlog) also before, as far as the steps have read it. The
      last 64 KiB, without escape sequences.
  returned: success, and failure of a step
  type: str
  sample: "web login: "
steps:
  description:
    - What each step has matched, in their order; empty for one without O(steps[].expect).
    - The list is empty in check mode, which runs no step.
  returned: success
  type: list
  elements: dict
  contains:
    match:
      description: The matched text.
      returned: with O(steps[].expect)
      type: str
    groups:
      description: The groups of the pattern; an empty text for one that did not take part.
      returned: with O(steps[].expect)
      type: list
      elements: str
log:
  description: Lines that the guest has printed, oldest first. None while its Pod has not started.
  returned: with O(log_lines) or O(log_since)
  type: list
  elements: str
causes:
  description: Problems that the API server reports, by field.
  returned: when the API server refuses
  type: list
  elements: dict
step:
  description: Number of the step that failed, from 0.
  returned: failure of a step
  type: int
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
from ..module_utils._console import console


def main():
    module = frame.VirtModule(
        argument_spec=console.argument_spec(),
        required_one_of=[("steps", "log_lines", "log_since")],
        supports_check_mode=True,
    )
    module.no_log_values.update(console.secret_parts(module.params))
    frame.run(module, console.run)


if __name__ == "__main__":
    main()

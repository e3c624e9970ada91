# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the documentation of kubevirt_vm's option `vms`: an entry has the options of one VM, documented above it.

The module's file stays plain text, which ansible-doc and galaxy read without running anything.
"""

from __future__ import annotations

import re
from pathlib import Path

MODULE = Path(__file__).resolve().parents[2] / "plugins" / "modules" / "kubevirt_vm.py"
OF_THE_TASK = frozenset({"wait", "wait_condition", "wait_for_claims", "vms"})
"""Options that an entry does not have."""
OWN = {
    "state": """\
  state:
    description: State of this VirtualMachine; O(state) by default.
    type: str
    choices: [absent, present, restarted, started, stopped, paused, unpaused, reset, softrebooted]
""",
    "force": """\
  force:
    description: Replace this VirtualMachine; O(force) by default.
    type: bool
""",
}
"""Options that an entry describes otherwise, and for which the task's own stands in."""
_INDENT = " " * 6


def generated(source: str) -> str:
    """Return a module's source with the suboptions of `vms` written anew."""
    head, begin, rest = source.partition("\noptions:\n")
    body, end, tail = rest.partition("\nseealso:\n")
    documented = _documented(body + "\n")
    own = [name for name in documented if name not in OF_THE_TASK]
    kept = documented["vms"].partition("    suboptions:")
    first_line = kept[2].partition("\n")[0]
    written = "".join(_suboption(name, documented[name], own) for name in own)
    documented["vms"] = f"{kept[0]}{kept[1]}{first_line}\n{written}"
    return head + begin + "".join(documented.values()).rstrip("\n") + end + tail


def _documented(body: str) -> dict[str, str]:
    """Return the text of each option, by name."""
    texts = re.split(r"(?m)^(?=  \w+:$)", body)
    return {text.split(":", 1)[0].strip(): text for text in texts if text}


def _suboption(name: str, text: str, own: list[str]) -> str:
    pointing_here = re.sub(rf"O\(({'|'.join(own)})(?=[=)])", r"O(vms[].\1", text)
    text = OWN.get(name, pointing_here)
    return "".join(f"{_INDENT}{line}\n" for line in text.splitlines())


if __name__ == "__main__":
    MODULE.write_text(generated(MODULE.read_text()))

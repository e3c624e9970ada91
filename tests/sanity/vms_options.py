# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the documentation of the options `vms` and `vmis`: an entry has the options of one machine, documented above it
or in the fragment that the module extends.

The module's file stays plain text, which ansible-doc and galaxy read without running anything.
"""

from __future__ import annotations

import re
from pathlib import Path

PLUGINS = Path(__file__).resolve().parents[2] / "plugins"
WRITTEN = {
    "kubevirt_vm": ("vms", ""),
    "kubevirt_vmi": ("vmis", "machine"),
    "kubevirt_migration": ("vms", ""),
}
"""module -> the option, and the documentation fragment that has the rest of the options."""
OF_THE_TASK = frozenset(
    {"wait", "wait_condition", "wait_for_claims", "wait_timeout", "parallel", "unmovable", "vms", "vmis"}
)
"""Options that an entry does not have."""
OWN = frozenset({"state", "force"})
"""Options that an entry describes otherwise, and for which the task's own stands in."""
_INDENT = " " * 6


def module(name: str) -> Path:
    """Return the file of a module."""
    return PLUGINS / "modules" / f"{name}.py"


def generated(name: str) -> str:
    """Return a module's source with the suboptions of its option for several written anew."""
    option, fragment = WRITTEN[name]
    head, begin, rest = module(name).read_text().partition("\noptions:\n")
    body, end, tail = rest.partition("\nseealso:\n")
    here = _documented(body + "\n")
    documented = {**here, **_of_fragment(fragment)}
    own = [each for each in documented if each not in OF_THE_TASK]
    kept = here[option].partition("    suboptions:")
    first_line = kept[2].partition("\n")[0]
    written = "".join(_suboption(each, documented[each], own, option) for each in own)
    here[option] = f"{kept[0]}{kept[1]}{first_line}\n{written}"
    return head + begin + "".join(here.values()).rstrip("\n") + end + tail


def _of_fragment(name: str) -> dict[str, str]:
    """Return the text of each option of a documentation fragment."""
    if not name:
        return {}
    source = (PLUGINS / "doc_fragments" / f"{name}.py").read_text()
    return _documented(source.partition("\noptions:\n")[2].partition('"""')[0])


def _documented(body: str) -> dict[str, str]:
    """Return the text of each option, by name."""
    texts = re.split(r"(?m)^(?=  \w+:$)", body)
    return {text.split(":", 1)[0].strip(): text for text in texts if text}


def _suboption(name: str, text: str, own: list[str], option: str) -> str:
    text = _as_of_the_task(name, text) if name in OWN else text
    pointing_here = text if name in OWN else re.sub(rf"O\(({'|'.join(own)})(?=[=)])", rf"O({option}[].\1", text)
    return "".join(f"{_INDENT}{line}\n" for line in pointing_here.splitlines())


def _as_of_the_task(name: str, text: str) -> str:
    """Describe an option for which the task's own stands in, without its default."""
    kept = [line for line in text.splitlines() if line.startswith(("    type:", "    choices:"))]
    says = "The wanted state" if name == "state" else "Whether to replace it"
    return "\n".join([f"  {name}:", f"    description: {says}; O({name}) by default.", *kept])


if __name__ == "__main__":
    for each in WRITTEN:
        module(each).write_text(generated(each))

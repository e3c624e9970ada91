# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write plugins/doc_fragments/auth_plugin.py: the modules' connection options, as plugins take them.

A module reads the environment by its argument spec; a plugin (inventory, connection, event source) by its
documentation, which therefore says `env` and `ini`. The file stays plain text, as ansible-doc's users expect.
"""

from __future__ import annotations

import re
from pathlib import Path

FRAGMENTS = Path(__file__).resolve().parents[2] / "plugins" / "doc_fragments"
MODULES = FRAGMENTS / "auth.py"
PLUGINS = FRAGMENTS / "auth_plugin.py"
SECTION = "virtops_kubevirt"
SECRET = frozenset({"api_key", "password", "proxy_headers"})
"""Options without `ini`: a configuration file is shared, and lies in repositories."""
DOCSTRING = (
    '"""The connection options as plugins take them; tests/sanity/plugin_options.py makes this file of auth.py."""'
)
_FROM_ENVIRONMENT = re.compile(r" +- Can also be given by the environment variables? (.*)\n")


def generated(source: str) -> str:
    """Return the file for plugins, made from that for modules."""
    head, begin, rest = source.partition("\noptions:\n")
    body, end, tail = rest.partition("\nrequirements:\n")
    head = re.sub(r'(?m)^"""Documentation .*"""$', DOCSTRING, head)
    head = head.replace("every module of this collection shares", "plugins of this collection share")
    options = filter(None, re.split(r"(?m)^(?=  \w+:$)", body + "\n"))
    return head + begin + "".join(map(_option, options)).rstrip("\n") + end + tail


def _option(text: str) -> str:
    """Return one option with `env` and `ini` instead of the sentence about the environment."""
    name = text.partition(":")[0].strip()
    said = "" if name == "proxy_headers" else "".join(_FROM_ENVIRONMENT.findall(text))
    lines = _FROM_ENVIRONMENT.sub("", text)
    variables = re.findall(r"E\((\w+)\)", said)
    if variables:  # the last one that is set counts here; the first one does where a module looks
        lines += "    env:\n" + "".join(f"      - name: {variable}\n" for variable in reversed(variables))
    if name not in SECRET:
        lines += f"    ini:\n      - section: {SECTION}\n        key: {name}\n"
    return lines


if __name__ == "__main__":
    PLUGINS.write_text(generated(MODULES.read_text()))

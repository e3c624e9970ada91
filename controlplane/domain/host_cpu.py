# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What libvirt says of the node's processor, as far as it decides where a guest can go. Pure.

The text is that of a libvirtd of our own, in a Pod of our own.
"""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

_MOST = 256
_LONGEST = 60
"""Of a name: it is part of a label's, which has 63 characters at most."""


def host_model(capabilities: str) -> str | None:
    """Return the processor that comes next to the node's, to have all its features told; None where there is none."""
    mode = _mode(_parse(capabilities), "host-model")
    if mode is None or not mode.findtext("model"):
        return None
    made = ElementTree.Element("cpu", {"mode": "custom", "match": "exact"})
    made.extend(list(mode))
    return ElementTree.tostring(made, encoding="unicode")


def read_host_cpu(capabilities: str, expanded: str) -> dict[str, Any] | None:
    """Say what the node's processor is and has; None where no guest can have it.

    capabilities: of a domain, as libvirt describes them. expanded: the same processor with all of its features.
    """
    root = _parse(capabilities)
    mode, custom = _mode(root, "host-model"), _mode(root, "custom")
    if mode is None or not mode.findtext("model"):
        return None
    models = [] if custom is None else [one.text or "" for one in custom.findall("model") if one.get("usable") == "yes"]
    return {
        "model": (mode.findtext("model") or "")[:_LONGEST],
        "vendor": (mode.findtext("vendor") or "")[:_LONGEST],
        "models": _names(models),
        "required": _names(_required(mode)),
        "features": _names(_required(_parse(expanded))),
    }


def _parse(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(text)  # noqa: S314 - see above


def _mode(root: ElementTree.Element, name: str) -> ElementTree.Element | None:
    return root.find(f"cpu/mode[@name='{name}'][@supported='yes']")


def _required(cpu: ElementTree.Element) -> list[str]:
    return [one.get("name", "") for one in cpu.findall("feature") if one.get("policy", "require") == "require"]


def _names(found: list[str]) -> list[str]:
    return sorted({one for one in found if 0 < len(one) <= _LONGEST})[:_MOST]

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""libvirt's description of the node's processor and boards, as far as it decides where a guest can run or move. Pure.

The XML comes from a libvirtd of our own, in a Pod of our own, so it is trusted.
"""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

_NAMES_LIMIT = 256
_NAME_LENGTH_LIMIT = 60
"""A name is part of a label's name, which has at most 63 characters."""


def host_model(capabilities: str) -> str | None:
    """Return XML of libvirt's model of the node's processor, to expand its features; None when there is none."""
    mode = _mode(_parse(capabilities), "host-model")
    if mode is None or not mode.findtext("model"):
        return None
    made = ElementTree.Element("cpu", {"mode": "custom", "match": "exact"})
    made.extend(list(mode))
    return ElementTree.tostring(made, encoding="unicode")


def read_host_cpu(capabilities: str, expanded: str) -> dict[str, Any] | None:
    """Describe the node's processor; None when no guest can have it.

    capabilities: libvirt's domain capabilities. expanded: the same processor with all of its features.
    """
    root = _parse(capabilities)
    mode = _mode(root, "host-model")
    if mode is None or not mode.findtext("model"):
        return None
    return {
        "model": (mode.findtext("model") or "")[:_NAME_LENGTH_LIMIT],
        "vendor": (mode.findtext("vendor") or "")[:_NAME_LENGTH_LIMIT],
        "models": _names(_usable_models(root)),
        "required": _names(_required(mode)),
        "features": _names(_required(_parse(expanded))),
    }


def read_emulated_cpu(capabilities: str) -> dict[str, Any]:
    """Describe the processors that QEMU can emulate. capabilities: libvirt's domain capabilities without KVM.

    There is no host model: no emulated guest has its node's processor.
    """
    return {"model": "", "models": _names(_usable_models(_parse(capabilities)))}


def read_machines(capabilities: str, architecture: str) -> dict[str, list[str]]:
    """Return the boards that guests can have, by HostCpu's fields. capabilities: libvirt's, of the connection."""
    root, arch = _parse(capabilities), f"guest/arch[@name='{architecture}']"
    found = [*root.findall(f"{arch}/machine"), *root.findall(f"{arch}/domain/machine")]
    deprecated = [machine for machine in found if machine.get("deprecated") == "yes"]
    return {
        "machines": _names([name for machine in found for name in (machine.text or "", machine.get("canonical", ""))]),
        "deprecated_machines": _names([machine.text or "" for machine in deprecated]),
    }


def _usable_models(root: ElementTree.Element) -> list[str]:
    custom = _mode(root, "custom")
    if custom is None:
        return []
    return [model.text or "" for model in custom.findall("model") if model.get("usable") == "yes"]


def _parse(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(text)  # noqa: S314 - trusted, see above


def _mode(root: ElementTree.Element, name: str) -> ElementTree.Element | None:
    return root.find(f"cpu/mode[@name='{name}'][@supported='yes']")


def _required(cpu: ElementTree.Element) -> list[str]:
    return [
        feature.get("name", "") for feature in cpu.findall("feature") if feature.get("policy", "require") == "require"
    ]


def _names(names: list[str]) -> list[str]:
    return sorted({name for name in names if 0 < len(name) <= _NAME_LENGTH_LIMIT})[:_NAMES_LIMIT]

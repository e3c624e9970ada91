# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The few facts we need of what libvirt says about a domain. Never a way back into the model.

The text comes from the tenant's side of a socket: it is bounded, and a document type (which could hold entities)
is refused before the parser sees the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn
from xml.etree import ElementTree
from xml.parsers import expat

from controlplane.domain.namespace import NAMESPACE

LIMIT_BYTES = 1 << 20
_WORD_LIMIT = 256


class UnreadableError(ValueError):
    """The description is not one of a domain of ours, or too large to be looked at."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What we wrote into the domain when we defined it."""

    namespace: str
    name: str
    uid: str
    pod_uid: str
    epoch: int
    grace_period_seconds: int


@dataclass(frozen=True, slots=True)
class Observed:
    """What a live domain is."""

    identity: Identity | None
    """None: not made by us."""
    is_kvm: bool
    machine: str
    """The versioned machine type that libvirt chose, e.g. pc-q35-10.0."""
    has_acpi: bool


def read_identity(text: str) -> Identity:
    """Read our metadata element alone, as libvirt returns it. UnreadableError."""
    return _identity(_parse(text))


def read_domain(text: str) -> Observed:
    """Read a whole description. UnreadableError."""
    root = _parse(text)
    if root.tag != "domain":
        raise UnreadableError(f"expected a domain, not <{root.tag[:_WORD_LIMIT]}>")
    metadata = root.find(f"metadata/{{{NAMESPACE}}}vmi")
    machine = root.find("os/type")
    return Observed(
        identity=None if metadata is None else _identity(metadata),
        is_kvm=root.get("type") == "kvm",
        machine="" if machine is None else (machine.get("machine") or "")[:_WORD_LIMIT],
        has_acpi=root.find("features/acpi") is not None,
    )


def _identity(found: ElementTree.Element) -> Identity:
    if found.tag not in (f"{{{NAMESPACE}}}vmi", "vmi"):
        raise UnreadableError("the domain carries no identity of ours")
    words = {name: found.get(name, "") for name in ("namespace", "name", "uid", "pod", "epoch", "grace")}
    if not all(words.values()) or any(len(word) > _WORD_LIMIT for word in words.values()):
        raise UnreadableError("the domain's identity is incomplete or too long")
    epoch, grace = words["epoch"], words["grace"]
    if not (epoch.isascii() and epoch.isdigit() and grace.isascii() and grace.isdigit()):
        raise UnreadableError("the domain's epoch and grace period must be numbers")
    return Identity(
        namespace=words["namespace"],
        name=words["name"],
        uid=words["uid"],
        pod_uid=words["pod"],
        epoch=int(epoch),
        grace_period_seconds=int(grace),
    )


def _parse(text: str) -> ElementTree.Element:
    data = text.encode("utf-8", "replace")
    if len(data) > LIMIT_BYTES:
        raise UnreadableError(f"the description has {len(data)} bytes, at most {LIMIT_BYTES} are read")
    builder = ElementTree.TreeBuilder()
    parser = expat.ParserCreate(namespace_separator="}")
    parser.StartDoctypeDeclHandler = _refuse_doctype
    parser.StartElementHandler = lambda tag, words: builder.start(_spell(tag), {_spell(k): v for k, v in words.items()})
    parser.EndElementHandler = lambda tag: builder.end(_spell(tag))
    parser.CharacterDataHandler = builder.data
    try:
        parser.Parse(data, True)
        return builder.close()
    except (expat.ExpatError, AssertionError) as error:
        raise UnreadableError(f"the description is not XML: {error}") from error


def _spell(name: str) -> str:
    """Spell an expanded name as ElementTree does."""
    return f"{{{name}" if "}" in name else name


def _refuse_doctype(*_unused: object) -> NoReturn:
    raise UnreadableError("the description has a document type: refused")

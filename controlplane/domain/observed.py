# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The few facts that are needed from a domain's XML. It is never read into the XML classes.

The XML comes from the tenant's side of a socket. So its bytes, depth, elements and their lengths are limited, no tree
is built, and parser features that multiply their input are avoided. A document type (entities, default values) is
refused before parsing. Namespaces are resolved here, not by the parser, which would prepend a namespace's name, of up
to thousands of characters, to every attribute. The worst XML within the limits takes 15 ms of processor time, in steps
of at most 2 ms between which other threads run; a domain of ours takes 0.4 ms.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from xml.parsers import expat

from libvirt_domain.model.console import AGENT_CHANNEL
from libvirt_domain.namespace import NAMESPACE

LIMIT_BYTES = 256 << 10
"""A domain of ours has about 6 KiB."""
_STEP_BYTES = 8 << 10
_TAG_LIMIT_BYTES = 16 << 10
_DEPTH_LIMIT = 32
_ELEMENTS_LIMIT = 4096
_WORD_LIMIT = 256
_COUNT_DIGITS = 4
_TAG, _OURS = "vmi", "{ours}"
"""Our metadata element: its local name, and its name in a path here, which no real tag can have."""
_CHANNEL = ("domain", "devices", "channel", "target")
"""There are several; the agent's is the one with its name."""
_MEMORY_TARGET = ("domain", "devices", "memory", "target")
_REQUESTED, _TAKEN = (*_MEMORY_TARGET, "requested"), (*_MEMORY_TARGET, "current")
"""Texts of the device by which a guest gets memory, in units of 1024 bytes."""
_TEXTS = frozenset({_REQUESTED, _TAKEN})
_TEXT_DIGITS = 12


class UnreadableError(ValueError):
    """The XML is not a domain's, or exceeds a limit."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The metadata that was written into the domain when it was defined."""

    namespace: str
    name: str
    uid: str
    pod_uid: str
    epoch: int
    grace_period_seconds: int


@dataclass(frozen=True, slots=True)
class Observed:
    """Facts of a live domain."""

    identity: Identity | None
    """None: the domain is not ours."""
    is_kvm: bool
    machine: str
    """The versioned machine type that libvirt chose, e.g. pc-q35-10.0."""
    has_acpi: bool
    is_agent_connected: bool = False
    """A process in the guest has the agent's channel open."""
    vcpus: int = 0
    """The guest's virtual CPUs; 0 means the maximum."""
    requested_bytes: int | None = None
    """Requested memory beyond the initial size. None: the guest has no device for that."""
    taken_bytes: int = 0
    """Memory beyond the initial size that the guest has plugged."""


def read_domain(text: str) -> Observed:
    """Parse a domain's XML. UnreadableError."""
    metadata, machine, acpi = ("domain", "metadata", _OURS), ("domain", "os", "type"), ("domain", "features", "acpi")
    vcpu = ("domain", "vcpu")
    reader = _Reader(("domain",), metadata, machine, acpi, vcpu)
    attributes = reader.read(text)
    if ("domain",) not in attributes:
        raise UnreadableError("expected a domain")
    return Observed(
        identity=_identity(attributes[metadata]) if metadata in attributes else None,
        is_kvm=attributes[("domain",)].get("type") == "kvm",
        machine=attributes.get(machine, {}).get("machine", "")[:_WORD_LIMIT],
        has_acpi=acpi in attributes,
        is_agent_connected=attributes.get(_CHANNEL, {}).get("state") == "connected",
        vcpus=_count(attributes.get(vcpu, {}).get("current", "")),
        requested_bytes=_kibibytes(reader.texts.get(_REQUESTED)),
        taken_bytes=_kibibytes(reader.texts.get(_TAKEN)) or 0,
    )


def _identity(attributes: Mapping[str, str]) -> Identity:
    words = {name: attributes.get(name, "") for name in ("namespace", "name", "uid", "pod", "epoch", "grace")}
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


def _count(word: str) -> int:
    return int(word) if word.isascii() and word.isdigit() and len(word) <= _COUNT_DIGITS else 0


def _kibibytes(word: str | None) -> int | None:
    return int(word) << 10 if word and word.isascii() and word.isdigit() and len(word) <= _TEXT_DIGITS else None


class _Reader:
    """Keeps the attributes of the first element at each wanted path, and the first text at each of _TEXTS."""

    def __init__(self, *wanted: tuple[str, ...]) -> None:
        self._wanted = frozenset(wanted)
        self._seen: dict[tuple[str, ...], dict[str, str]] = {}
        self._path: list[str] = []
        self._words: list[Mapping[str, str]] = []
        """Attributes of the open elements, down to the depth of our metadata."""
        self._elements = 0
        self.texts: dict[tuple[str, ...], str] = {}
        self._text: str | None = None
        """Text of the open element, if it is wanted."""

    def read(self, text: str) -> Mapping[tuple[str, ...], Mapping[str, str]]:
        """Parse the XML in steps. UnreadableError."""
        if len(text) > LIMIT_BYTES:
            raise UnreadableError(f"the domain's XML has {len(text)} characters, at most {LIMIT_BYTES} are read")
        if "<!DOCTYPE" in text:
            raise UnreadableError("the domain's XML has a document type: refused")
        data = text.encode("utf-8", "replace")[: LIMIT_BYTES + 1]
        if len(data) > LIMIT_BYTES:
            raise UnreadableError(f"the domain's XML has more than {LIMIT_BYTES} bytes")
        # With an explicit encoding, or the XML would choose one of Python's codecs.
        parser = expat.ParserCreate(encoding="utf-8", intern=None)
        parser.StartElementHandler = self._begin
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._add_text
        try:
            self._parse(parser, data)
        except UnreadableError:
            raise
        except (expat.ExpatError, LookupError, ValueError) as error:
            raise UnreadableError(f"the domain's XML is malformed: {error}") from error
        return self._seen

    def _parse(self, parser: expat.XMLParserType, data: bytes) -> None:
        for offset in range(0, len(data), _STEP_BYTES):
            parser.Parse(data[offset : offset + _STEP_BYTES], False)
            if offset + _STEP_BYTES - parser.CurrentByteIndex > _TAG_LIMIT_BYTES:
                raise UnreadableError(f"the domain's XML has a tag of more than {_TAG_LIMIT_BYTES} bytes")
        parser.Parse(b"", True)

    def _begin(self, tag: str, words: dict[str, str]) -> None:
        self._elements += 1
        if self._elements > _ELEMENTS_LIMIT or len(self._path) >= _DEPTH_LIMIT:
            raise UnreadableError("the domain's XML has too many elements, or nests them too deeply")
        if len(self._path) < 3:
            self._words.append(words)
        self._path.append(_OURS if len(self._path) == 2 and self._is_ours(tag) else tag)
        if len(self._path) <= 3 and (path := tuple(self._path)) in self._wanted:
            self._seen.setdefault(path, words)
        elif len(self._path) == 4 and words.get("name") == AGENT_CHANNEL and tuple(self._path) == _CHANNEL:
            self._seen.setdefault(_CHANNEL, words)
        self._text = "" if len(self._path) == 5 and tuple(self._path) in _TEXTS else None

    def _add_text(self, text: str) -> None:
        if self._text is not None and len(self._text) <= _TEXT_DIGITS:
            self._text += text[: _TEXT_DIGITS + 1]

    def _end(self, _unused: str) -> None:
        if self._text is not None:
            self.texts.setdefault(tuple(self._path), self._text)
            self._text = None
        self._path.pop()
        del self._words[len(self._path) :]

    def _is_ours(self, tag: str) -> bool:
        """Resolve the tag's prefix by its innermost declaration; libvirt declares it in a parent element."""
        prefix, _unused, name = tag.rpartition(":")
        declaration = f"xmlns:{prefix}" if prefix else "xmlns"
        declared = (words[declaration] for words in reversed(self._words) if declaration in words)
        return name == _TAG and next(declared, "") == NAMESPACE

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes the XML classes as XML: elements, yes/no, on/off, the characters that XML allows. Knows nothing of libvirt.

A class is a frozen dataclass with a TAG. Each field declares how it is written:

    @element
    class Rng:
        TAG: ClassVar[str] = "rng"
        model: str = attribute()
        backend: RngBackend = child()

A field that is None, an empty tuple or a false flag is left out. There is no parser: the XML of a live domain has more
than the classes can represent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeVar
from xml.etree import ElementTree

from .namespace import NAMESPACE, PREFIX

if TYPE_CHECKING:
    from typing import dataclass_transform
else:  # typing has it since Python 3.11, and modules run on 3.10

    def dataclass_transform(**_unused: Any) -> Any:
        """Return the class as it is."""
        return lambda decorator: decorator


Form = Literal["attribute", "text", "leaf", "flag", "child", "children"]

_Class = TypeVar("_Class")
_SPELLING = "xml"
_REFUSED = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Element(Protocol):
    """A class decorated with `element`."""

    TAG: ClassVar[str]
    __dataclass_fields__: ClassVar[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class _Spelling:
    form: Form
    name: str | None
    words: tuple[str, str]


def _field(form: Form, name: str | None, words: tuple[str, str], default: Any) -> Any:
    metadata = {_SPELLING: _Spelling(form, name, words)}
    # pylint: disable-next=invalid-field-call  # the callers are the fields
    return field(metadata=metadata) if default is ... else field(default=default, metadata=metadata)


def attribute(name: str | None = None, *, words: tuple[str, str] = ("yes", "no"), default: Any = ...) -> Any:
    """Write a field as an attribute, by default of the field's name. words: for True and False."""
    return _field("attribute", name, words, default)


def text(*, default: Any = ...) -> Any:
    """Write a field as the element's text."""
    return _field("text", None, ("yes", "no"), default)


def leaf(name: str | None = None, *, default: Any = ...) -> Any:
    """Write a field as a child element with only text."""
    return _field("leaf", name, ("yes", "no"), default)


def flag(name: str | None = None) -> Any:
    """Write a true field as an empty child element; leave a false one out."""
    return _field("flag", name, ("yes", "no"), ...)


def child(*, default: Any = ...) -> Any:
    """Write a field, which is an element, as a child."""
    return _field("child", None, ("yes", "no"), default)


def children(*, default: Any = ...) -> Any:
    """Write a tuple of elements, of one class or several, as children in their order."""
    return _field("children", None, ("yes", "no"), default)


@dataclass_transform(
    frozen_default=True, kw_only_default=True, field_specifiers=(attribute, text, leaf, flag, child, children)
)
def element(cls: type[_Class]) -> type[_Class]:
    """Make an XML class from a class with a TAG and fields of the functions above."""
    return dataclass(frozen=True, slots=True, kw_only=True)(cls)


def render(piece: Element) -> ElementTree.Element:
    """Convert an object to a tree. Raises ValueError for characters that XML does not allow."""
    xml_element = ElementTree.Element(piece.TAG)
    for xml_field in fields(piece):
        value = getattr(piece, xml_field.name)
        if value is not None:
            _put(xml_element, xml_field.name, xml_field.metadata[_SPELLING], value)
    return xml_element


def render_text(piece: Element) -> str:
    """Convert an object to indented XML. Equal objects give equal bytes."""
    ElementTree.register_namespace(PREFIX, NAMESPACE)
    tree = render(piece)
    ElementTree.indent(tree)
    return ElementTree.tostring(tree, encoding="unicode") + "\n"


def _put(xml_element: ElementTree.Element, name: str, spelling: _Spelling, value: Any) -> None:
    label = spelling.name or name
    if spelling.form == "attribute":
        xml_element.set(label, _word(xml_element.tag, label, spelling, value))
    elif spelling.form == "text":
        xml_element.text = _word(xml_element.tag, label, spelling, value)
    elif spelling.form == "leaf":
        ElementTree.SubElement(xml_element, label).text = _word(xml_element.tag, label, spelling, value)
    elif spelling.form == "flag":
        if value:
            ElementTree.SubElement(xml_element, label)
    else:
        pieces: Iterable[Element] = value if spelling.form == "children" else (value,)
        xml_element.extend(render(piece) for piece in pieces)


def _word(tag: str, label: str, spelling: _Spelling, value: object) -> str:
    if isinstance(value, bool):
        return spelling.words[0] if value else spelling.words[1]
    word = str(value)
    if refused := _REFUSED.search(word):
        raise ValueError(f"{label} of <{tag}> holds the character {refused.group()!a}, which XML cannot carry")
    return word

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import ClassVar
from xml.etree import ElementTree

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils.libvirt_domain.codec import (
    attribute,
    child,
    children,
    element,
    flag,
    leaf,
    render,
    render_text,
    text,
)


@element
class Leg:
    TAG: ClassVar[str] = "leg"
    side: str = text()


@element
class Chair:
    TAG: ClassVar[str] = "chair"
    color: str = attribute()
    is_soft: bool = attribute("soft", words=("on", "off"))
    is_old: bool | None = attribute("old", default=None)
    maker: str | None = leaf("made-by", default=None)
    arms: bool = flag()
    back: Leg | None = child(default=None)
    legs: tuple[Leg, ...] = children(default=())


def test_each_type_is_formatted_its_way() -> None:
    chair = Chair(
        color="red",
        is_soft=True,
        is_old=False,
        maker="A & B",
        arms=True,
        back=Leg(side="back"),
        legs=(Leg(side="l"), Leg(side="r")),
    )
    assert ElementTree.tostring(render(chair), encoding="unicode") == (
        '<chair color="red" soft="on" old="no"><made-by>A &amp; B</made-by><arms />'
        "<leg>back</leg><leg>l</leg><leg>r</leg></chair>"
    )


def test_absent_values_leave_no_element() -> None:
    assert render_text(Chair(color="red", is_soft=False, arms=False)) == '<chair color="red" soft="off" />\n'


@pytest.mark.parametrize(
    "hostile",
    [
        "a</leg><os><loader>/x</loader></os>",
        "]]>",
        "<!DOCTYPE a [<!ENTITY xxe SYSTEM 'file:///etc/passwd'>]>&xxe;",
        '" onload="x',
        "a\nb",
    ],
)
def test_hostile_text_stays_text(hostile: str) -> None:
    back = ElementTree.fromstring(render_text(Chair(color=hostile, is_soft=True, arms=False, back=Leg(side=hostile))))
    assert (back.get("color"), [child.tag for child in back], back[0].text) == (hostile, ["leg"], hostile)


@pytest.mark.parametrize("character", ["\x00", "\x1b", "\x08", "\ufffe", "\ud800"])
def test_characters_that_xml_cannot_carry_are_refused(character: str) -> None:
    with pytest.raises(ValueError, match="color of <chair> holds the character"):
        render(Chair(color=f"a{character}b", is_soft=True, arms=False))

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Golden tests. To update: run UPDATE_GOLDEN=1 pytest tests/controlplane/domain, then read the diff."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import pkgutil
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

import libvirt
import pytest
from libvirt_domain import model
from libvirt_domain.codec import render_text

from tests.controlplane.domain.golden_domains import CASES, Case

WITHOUT_SLOTS = 11_000_000
"""An older libvirt, such as Debian bookworm's, requires a memory slot when there is a maximum memory."""
EACH_CASE = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@EACH_CASE
def test_a_vmi_becomes_the_golden_domain(case: Case) -> None:
    text = render_text(case.build())
    if os.environ.get("UPDATE_GOLDEN"):
        case.expected.write_text(text)
    assert canonical(text) == canonical(case.expected.read_text())


def canonical(text: str) -> str:
    return ElementTree.canonicalize(text, strip_text=True).replace("><", ">\n<")


def test_every_field_of_the_model_appears_in_some_golden_domain() -> None:
    """A field that no case fills is either dead or untested."""
    filled: set[tuple[str, str]] = set()
    for case in CASES:
        filled |= set(_filled(case.build()))
    assert _declared() - filled == set()


def _filled(piece: Any) -> Iterator[tuple[str, str]]:
    for field in dataclasses.fields(piece):
        value = getattr(piece, field.name)
        if value is not None and value != ():
            yield type(piece).__name__, field.name
        for child in value if isinstance(value, tuple) else (value,):
            if dataclasses.is_dataclass(child):
                yield from _filled(child)


def _declared() -> set[tuple[str, str]]:
    fields = set()
    for module in pkgutil.iter_modules(model.__path__, f"{model.__name__}."):
        loaded = importlib.import_module(module.name)
        for var in vars(loaded).values():
            if dataclasses.is_dataclass(var) and isinstance(var, type):
                fields |= {(var.__name__, declared.name) for declared in dataclasses.fields(var)}
    return fields


@EACH_CASE
def test_libvirt_accepts_the_domain(case: Case) -> None:
    """libvirt's own schema and parser, in its test driver, which requires the domain type `test`."""
    root = ElementTree.fromstring(render_text(case.build()))
    root.set("type", "test")
    connection = libvirt.open("test:///default")
    room = root.find("maxMemory")
    if room is not None and connection.getLibVersion() < WITHOUT_SLOTS:
        room.set("slots", "1")
    try:
        text = ElementTree.tostring(root, encoding="unicode")
        domain = connection.defineXMLFlags(text, libvirt.VIR_DOMAIN_DEFINE_VALIDATE)
        assert domain.name() == case.build().name
        domain.undefine()
    finally:
        connection.close()

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""No text of a tenant, a guest, a launcher or a node keeps a regular expression busy: all of ours, as they are found.

Python's matcher goes back and tries again, and holds the interpreter meanwhile: one machine with a path of 82
characters ended virt-api. Each expression is found where it is written, so that a new one is judged as it comes.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from time import thread_time
from typing import Any, get_args

import pytest

from controlplane.api.admission import fields
from controlplane.api.schema.bounds import Bounds, ImagePath
from controlplane.api.schema.patterns import matches
from controlplane.api.schema.shape import Shape
from tests.controlplane.ambiguity import ambiguous, near_misses, repetitions
from tests.controlplane.guards.copy import ROOT

CODE = ROOT / "controlplane"
PATH = get_args(ImagePath)[1].extra["bounds"].pattern
LONGEST = 16_384
"""More than any text that is bounded may have: what grows with its square shows by a factor of thousands."""
MOST_SECONDS = 0.05
"""Of this thread's own time; what grows with the length needs a millisecond."""
OF_RE = {"compile", "match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer"}
HANDED_ON = {
    "api/schema/patterns.py: pattern": "those of Bounds, and what matches() is called with",
    "api/schema/bounds.py: pattern": "those of bounded()",
    "api/admission/fields.py: bounds.pattern": "those of Bounds",
}
"""What is no expression but a name for some that are found where they are written."""


def written(tree: ast.AST) -> Iterator[tuple[ast.expr, bool]]:
    """Yield whatever stands where an expression is expected, and whether only a whole text is ever compared with it."""
    for call in (one for one in ast.walk(tree) if isinstance(one, ast.Call)):
        function = call.func
        of_re = isinstance(function, ast.Attribute) and ast.unparse(function.value) == "re" and function.attr in OF_RE
        if of_re:
            yield call.args[0], False
        elif isinstance(function, ast.Name) and function.id == "matches":
            yield call.args[0], True
        yield from ((one.value, True) for one in call.keywords if one.arg == "pattern")


def flags_of(tree: ast.AST, where: ast.expr, names: dict[str, Any]) -> int:
    """Return the flags that are given beside an expression."""
    call = next(one for one in ast.walk(tree) if isinstance(one, ast.Call) and where in one.args[:1])
    given = [one.value for one in call.keywords if one.arg == "flags"] or call.args[1:]
    return int(eval(ast.unparse(given[0]), names)) if given and "re." in ast.unparse(given[0]) else 0


@cache
def found() -> tuple[dict[str, re.Pattern[Any]], set[str], set[str]]:
    """Return all expressions by where they are, what stands for expressions but is none, and where whole texts are."""
    expressions, others, wholes = {}, set(), set()
    for file in sorted(CODE.rglob("*.py")):
        if "re.compile" not in (text := file.read_text()) and "pattern" not in text and "re." not in text:
            continue
        tree, place = ast.parse(text), file.relative_to(CODE).as_posix()
        for one, is_whole in written(tree):
            wholes |= {f"{place}:{one.lineno}"} if is_whole else set()
            names = vars(importlib.import_module(module_of(file)))
            try:
                value = eval(ast.unparse(one), names)
                flags = flags_of(tree, one, names) if value is not None else 0
            except (NameError, AttributeError):
                others.add(f"{place}: {ast.unparse(one)}")
            except StopIteration:
                expressions[f"{place}:{one.lineno}"] = re.compile(value, re.ASCII)
            else:
                expressions[f"{place}:{one.lineno}"] = re.compile(value, flags)
    return expressions, others, wholes


def module_of(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def test_every_expression_is_judged() -> None:
    expressions, others, _wholes = found()
    assert others == set(HANDED_ON)
    assert len(expressions) > 30


@pytest.mark.parametrize("where", found()[0])
def test_an_expression_reads_a_text_in_so_many_ways_however_long_it_is(where: str) -> None:
    assert not ambiguous(found()[0][where])


@pytest.mark.parametrize("where", found()[0])
def test_a_near_miss_takes_no_longer_than_it_is_long(where: str) -> None:
    pattern = found()[0][where]
    asks = (pattern.fullmatch,) if where in found()[2] else (pattern.fullmatch, pattern.match, pattern.search)
    for text in (*near_misses(pattern, LONGEST), *repetitions(pattern, LONGEST)):
        value: Any = text if isinstance(pattern.pattern, str) else text.encode("latin-1")
        for ask in asks:
            began = thread_time()
            ask(value)
            assert thread_time() - began < MOST_SECONDS, f"{ask.__name__} {text[:40]!r}..."


@pytest.mark.parametrize(
    "wrong",
    [
        r"(/([a.]*[a][a.]*|\.{3,}))+",
        r"(a+)+",
        r"(a*)*",
        r"(a|a)*",
        r"(a|ab|b)*",
        r"a*a*",
        r"a*b?a*",
        r"[a-z]*x[a-z]*",
        r"(\w+\s?)+",
        r"a{0,40}a{0,40}",
        r"(?:a++b?)+(?:a|b)*",
    ],
)
def test_what_reads_a_text_in_ever_more_ways_is_told(wrong: str) -> None:
    assert ambiguous(re.compile(wrong))


@pytest.mark.parametrize(
    "right",
    [r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", r"(a|b)*", r"a*b*", r'"(?:[^"\\]++|\\.)*+"', r"a+(\.a+)*", r"(ab|ac)*", r".*x"],
)
def test_what_reads_it_in_so_many_is_none_of_them(right: str) -> None:
    assert not ambiguous(re.compile(right))


@pytest.mark.parametrize("text", ["/aa" * 341 + "!", "/" + "a" * 1022 + "!", "/..." * 255 + "!", "/.." * 341])
def test_a_path_that_is_nearly_one_is_refused_at_once(text: str) -> None:
    began = thread_time()
    assert not matches(PATH, text)
    assert thread_time() - began < MOST_SECONDS


def test_a_path_has_no_part_that_leads_elsewhere() -> None:
    """Against the rule as it is said: of every few characters, whatever way they are put together."""
    few = ["/", "/.", "/..", "/...", "/a", "a", ".", "-"]
    texts = [""]
    for _unused in range(4):
        texts = [*texts, *(text + one for text in texts for one in few)]
    for text in set(texts):
        parts = text.split("/")
        is_plain = parts[0] == "" and len(parts) > 1 and not {"", ".", ".."} & set(parts[1:])
        assert matches(PATH, text) == is_plain, text


@pytest.mark.parametrize(("length", "is_matched"), [(8, True), (9, False)])
def test_what_is_too_long_is_never_matched(monkeypatch: pytest.MonkeyPatch, length: int, is_matched: bool) -> None:
    asked: list[str] = []

    def match(pattern: str, value: str) -> bool:
        asked.append(value)
        return True

    monkeypatch.setattr(fields, "matches", match)
    shape = Shape(str, Bounds(what="letters", pattern="[a-z]+", max_length=8))
    assert (not list(fields._value("x" * length, shape, "spec.a"))) is is_matched
    assert bool(asked) is is_matched

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The mutants of small sources."""

from __future__ import annotations

import ast

import pytest

from tests.mutation.mutants import generate


@pytest.mark.parametrize(
    ("source", "mutants"),
    [
        pytest.param("if a == b: c()", ["if True: c()", "if False: c()", "if a == b: pass"], id="condition"),
        pytest.param("x = a == b", ["x = a != b"], id="comparison"),
        pytest.param("x = a < b", ["x = a <= b"], id="boundary"),
        pytest.param("x = a and b", ["x = a", "x = b"], id="operand of two"),
        pytest.param("x = a or b or c", ["x = b or c", "x = a or c", "x = a or b"], id="operand of three"),
        pytest.param("x = not a", ["x = a"], id="negation"),
        pytest.param("x = 1", ["x = 2"], id="number"),
        pytest.param("x = True", ["x = False"], id="flag"),
        pytest.param("x = 'Always'", ["x = 'Always~'"], id="name in a string"),
        pytest.param("x = 'a message for a person'", [], id="prose"),
        pytest.param("x = f'{a}'", [], id="formatted text"),
        pytest.param("x = f(because=a, is_on=b)", ["x = f(because=a, is_on=None)"], id="keyword argument"),
        pytest.param("x = [a for a in b if a]", ["x = [a for a in b]"], id="filter"),
        pytest.param("X = {A, B}", ["X = {B}", "X = {A}"], id="table"),
        pytest.param("a.b = c", ["pass"], id="assignment to an attribute"),
        pytest.param("X = int | str", [], id="type"),
        pytest.param("import a\n'''text'''", [], id="no behaviour"),
        pytest.param(
            "def f(x: int = 1): return x", ["def f(x: int=2): return x", "def f(x: int=1): return None"], id="def"
        ),
        pytest.param("match a:\n    case B if c: pass", ["match a:\n    case B:\n        pass"], id="guard of a case"),
    ],
)
def test_each_operator(source: str, mutants: list[str]) -> None:
    assert [_apply(source, index) for index in range(len(generate(ast.parse(source))))] == [
        ast.unparse(ast.parse(mutant)) for mutant in mutants
    ]


def test_a_mutant_names_its_function_and_the_lines_of_its_statement() -> None:
    source = "class A:\n    @property\n    def b(self):\n        return (\n            self.c == 1\n        )\n"
    comparison, *_others = [mutant for mutant in generate(ast.parse(source)) if "==" in mutant.text]
    assert comparison.function == ("A.b", 2)
    assert comparison.lines == (4, 6)


def test_a_default_belongs_to_no_function_because_it_takes_an_import() -> None:
    (default,) = generate(ast.parse("def f(x=1): pass"))
    assert default.function is None


def _apply(source: str, index: int) -> str:
    tree = ast.parse(source)
    generate(tree)[index].apply()
    compile(tree, "source", "exec")
    return ast.unparse(tree)

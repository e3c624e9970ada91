# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Generate the mutants of a source file: each is the file's syntax tree with one small change.

Of two equivalent mutants only one is generated: a comparison that is the whole condition of an `if` is not
negated, because the condition is already replaced by True and by False.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

VERSION = 1
"""Raise it when the operators change: scores recorded with another version are ignored."""

COMPARISONS: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
BOUNDARIES = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
ARITHMETIC: Mapping[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
SKIPPED_FIELDS = frozenset({"annotation", "returns", "decorator_list", "type_params", "bases"})

_Value = ast.AST | list[ast.AST] | None


@dataclass(frozen=True, slots=True)
class Mutant:
    lines: tuple[int, int]
    """First and last line of the statement, without its body: a test that executes none of them notices nothing."""
    text: str
    """The change in words."""
    function: tuple[str, int] | None
    """Qualified name and first line of the function that changes; None outside of functions."""
    statement: ast.stmt
    """The statement of the module that holds the change."""
    apply: Callable[[], None]
    """Change the tree; this cannot be undone."""


def generate(tree: ast.Module) -> list[Mutant]:
    """List the mutants of a module, always in the same order."""
    return [
        mutant
        for statement in tree.body
        for mutant in _visit(statement, _Place(tree, "body", statement, (), None, (1, 1), statement))
    ]


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a node hangs in the tree."""

    parent: ast.AST
    field: str
    node: ast.AST
    names: tuple[str, ...]
    function: tuple[str, int] | None
    lines: tuple[int, int]
    statement: ast.stmt

    def replace(self, replacement: ast.AST) -> None:
        value = getattr(self.parent, self.field)
        ast.copy_location(replacement, self.node)
        if isinstance(value, list):
            value[value.index(self.node)] = replacement
        else:
            setattr(self.parent, self.field, replacement)
        ast.fix_missing_locations(self.parent)


def _visit(node: ast.AST, place: _Place) -> Iterator[Mutant]:
    if _is_skipped(node):
        return
    if isinstance(node, ast.stmt):
        place = replace(place, lines=_header(node))
    for field, value in _changes(node, place):
        yield Mutant(
            place.lines,
            f"{_text(node)} -> {_changed_text(node, field, value)}",
            place.function,
            place.statement,
            partial(_apply, place, field, value),
        )
    names, first = place.names, 0
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        names = (*names, node.name)
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    for field, child in _children(node):
        function = place.function
        if function is None and field == "body" and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            function = (".".join(names), first)
        yield from _visit(child, replace(place, parent=node, field=field, node=child, names=names, function=function))


def _apply(place: _Place, field: str, value: _Value) -> None:
    """Change one field of the node, or put another node in its place when no field is named."""
    if field:
        setattr(place.node, field, value)
        ast.fix_missing_locations(place.node)
    else:
        assert isinstance(value, ast.AST)
        place.replace(value)


def _is_skipped(node: ast.AST) -> bool:
    """Tell whether a node only declares, imports, or concerns the type checker or the text of a message."""
    match node:
        case ast.Import() | ast.ImportFrom() | ast.Assert() | ast.JoinedStr():
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")) | ast.Expr(value=ast.Constant()):
            return True
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name.startswith("__")
    return False


def _children(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    for field, value in ast.iter_fields(node):
        if field in SKIPPED_FIELDS or (field == "keywords" and isinstance(node, ast.ClassDef)):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield field, child


def _header(node: ast.stmt) -> tuple[int, int]:
    """Return the lines of a statement without those of its body."""
    match node:
        case ast.Match(subject=subject):
            return node.lineno, subject.end_lineno or node.lineno
    body = getattr(node, "body", None)
    last = node.end_lineno or node.lineno
    return node.lineno, max(node.lineno, body[0].lineno - 1) if body else last


def _changes(node: ast.AST, place: _Place) -> Iterator[tuple[str, _Value]]:
    """Yield (field, new value) for each change that one node allows."""
    is_condition = place.field in {"test", "ifs", "guard"} or isinstance(place.parent, ast.BoolOp)
    match node:
        case ast.If() | ast.IfExp():
            yield "test", ast.Constant(True)
            yield "test", ast.Constant(False)
        case ast.match_case(guard=ast.expr()):
            yield "guard", None
        case ast.comprehension(ifs=[_, *_]):
            yield "ifs", []
        case ast.Compare(ops=[op]) if not is_condition or isinstance(op, BOUNDARIES):
            yield "ops", [COMPARISONS[type(op)]()]
        case ast.BoolOp(values=[first, second]):
            yield from (("", first), ("", second))
        case ast.BoolOp(values=values):
            yield from (("values", _without(values, index)) for index in range(len(values)))
        case ast.UnaryOp(op=ast.Not(), operand=operand) if not is_condition:
            yield "", operand
        case ast.BinOp(op=op) if type(op) in ARITHMETIC and place.function is not None:
            yield "op", ARITHMETIC[type(op)]()
        case ast.Constant(value=value):
            yield from _constant(value)
        case ast.Set(elts=elements) | ast.Tuple(elts=elements, ctx=ast.Load()) if _is_table(elements, place):
            yield from (("elts", _without(elements, index)) for index in range(len(elements)))
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            if isinstance(place.parent, ast.FunctionDef | ast.AsyncFunctionDef):
                yield "value", ast.Constant(None)
        case ast.keyword(arg=str(arg), value=value) if arg != "because" and not isinstance(value, ast.Constant):
            yield "value", ast.Constant(None)
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield "", ast.Pass()
        case ast.Expr() | ast.AugAssign() | ast.Delete() | ast.Raise() | ast.Continue() | ast.Break():
            yield "", ast.Pass()


def _constant(value: object) -> Iterator[tuple[str, _Value]]:
    """Change a value. A text with a space is prose and is not changed."""
    match value:
        case bool():
            yield "", ast.Constant(not value)
        case int() | float():
            yield "", ast.Constant(value + 1)
        case str() if value and " " not in value:
            yield "", ast.Constant(f"{value}~")


def _is_table(elements: Sequence[ast.expr], place: _Place) -> bool:
    """Tell whether a display lists names or constants to look something up in."""
    return (
        len(elements) > 1
        and (place.function is None or isinstance(place.parent, ast.Compare))
        and all(isinstance(element, ast.Constant | ast.Attribute | ast.Name) for element in elements)
    )


def _without(nodes: Sequence[ast.expr], index: int) -> list[ast.AST]:
    return [*nodes[:index], *nodes[index + 1 :]]


def _changed_text(node: ast.AST, field: str, value: _Value) -> str:
    if not field:
        return "nothing" if isinstance(value, ast.Pass) else _text(value)
    changed = copy.copy(node)
    setattr(changed, field, value)
    return _text(changed)


def _text(node: object) -> str:
    """Return a node as one line of source; of a compound statement its header."""
    match node:
        case ast.If(test=test):
            return f"if {_text(test)}"
        case ast.match_case(pattern=pattern, guard=guard):
            return f"case {_text(pattern)}" + (f" if {_text(guard)}" if guard else "")
        case ast.keyword(arg=arg, value=value):
            return f"{arg}={_text(value)}"
        case ast.AST():
            return " ".join(ast.unparse(node).split())
    return str(node)

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find comparisons that the pylint of ansible-test's sanity refuses: chained-comparison and consider-using-in.

Sanity takes minutes and comes late; this takes two seconds and goes with the linters. ruff knows both rules, but the
first only for neighbours that read in the same direction.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("controlplane", "images", "lab", "plugins", "roles", "tests", "noxfile.py")
CHAIN = "write the comparisons as one chain: a < b < c"
USE_IN = "ask whether it is in a tuple: x in (a, b)"


@dataclass(slots=True)
class _Bounds:
    """In which comparisons of one `and` a value is the lower bound, in which the upper one."""

    lower: set[int] = field(default_factory=set)
    upper: set[int] = field(default_factory=set)


def refused(source: str) -> list[tuple[int, str]]:
    """Return line and advice of each place of a module's source. SyntaxError."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.BoolOp):
            found += [(node.lineno, advice) for advice, is_so in _judge(node) if is_so]
    return sorted(found)


def _judge(node: ast.BoolOp) -> Iterator[tuple[str, bool]]:
    yield CHAIN, isinstance(node.op, ast.And) and _is_chain(node)
    yield USE_IN, _asks_one_of_many(node)


def _is_chain(node: ast.BoolOp) -> bool:
    """Tell whether something is the lower bound in one comparison and the upper bound in another."""
    uses: defaultdict[str, _Bounds] = defaultdict(_Bounds)
    for number, one in enumerate(node.values):
        if not isinstance(one, ast.Compare):
            continue
        sides = [one.left, *one.comparators]
        for left, operator, right in zip(sides, one.ops, sides[1:], strict=False):
            if isinstance(operator, ast.Gt | ast.GtE):
                left, right = right, left  # noqa: PLW2901 - the same, read from the other side
            elif not isinstance(operator, ast.Lt | ast.LtE):
                continue
            if isinstance(left, ast.Name | ast.Constant):
                uses[ast.unparse(left)].lower.add(number)
            if isinstance(right, ast.Name | ast.Constant):
                uses[ast.unparse(right)].upper.add(number)
    return any(len(one.lower & one.upper) < min(len(one.lower), len(one.upper)) for one in uses.values())


def _asks_one_of_many(node: ast.BoolOp) -> bool:
    """Tell whether one name is compared for (in)equality again and again, and nothing else is asked."""
    wanted = ast.Eq if isinstance(node.op, ast.Or) else ast.NotEq
    names: list[set[str]] = []
    for one in node.values:
        if not isinstance(one, ast.Compare) or len(one.ops) != 1 or not isinstance(one.ops[0], wanted):
            return False
        sides = (one.left, one.comparators[0])
        if any(isinstance(side, ast.Call) for side in sides):
            return False
        names.append({ast.unparse(side) for side in sides if isinstance(side, ast.Name | ast.Attribute)})
    return bool(set.intersection(*names))


def main() -> int:
    """Print what is refused; the exit code says whether there is anything."""
    files = [
        path for name in SOURCES for path in ([ROOT / name] if name.endswith(".py") else (ROOT / name).rglob("*.py"))
    ]
    places = [(path, line, advice) for path in sorted(files) for line, advice in refused(path.read_text())]
    for path, line, advice in places:
        print(f"{path.relative_to(ROOT)}:{line}: {advice}")
    return 1 if places else 0


if __name__ == "__main__":
    sys.exit(main())

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a regular expression can read one text in ever more ways, the longer the text is. Pure.

A backtracking matcher tries all ways before it says no. Where their number does not depend on the text's length, its
work grows with the length and no faster. It does depend on it when some word leads from one place of the expression
around to itself, from there to another place, and from that around to itself: then each repetition of the word may be
where the matcher goes over from the one to the other. With two loops around one place their number doubles each time.

Places are the expression's characters (Glushkov's automaton). What is asserted and not read is left out; repeats of
more than a few times count as without end; what a possessive repeat has read it never tries again, so it has no loop.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from re import _parser as sre  # type: ignore[attr-defined]
from typing import Any

OTHERS = 256
"""Stands for all characters after Latin-1."""
ALL = (1 << OTHERS + 1) - 1
SMALL = 3
"""Repeats of so many times are spelled out."""
_CATEGORIES = {"DIGIT": r"\d", "SPACE": r"\s", "WORD": r"\w"}

Places = tuple[int, ...]


@dataclass(slots=True)
class Part:
    """A part of an expression: the places where it may begin and end, and whether it may be nothing."""

    first: Places = ()
    last: Places = ()
    is_nothing: bool = True


@dataclass(slots=True)
class Automaton:
    """The places of an expression, what each reads, and what may follow it, in how many ways."""

    flags: int
    reads: list[int] = field(default_factory=list)
    follows: list[Counter[int]] = field(default_factory=list)
    whole: Part = field(default_factory=Part)
    is_nothing_twice: bool = False
    """Something may be nothing in two ways, as what may be nothing and is repeated."""

    def place(self, characters: int) -> Part:
        self.reads.append(characters)
        self.follows.append(Counter())
        one = (len(self.reads) - 1,)
        return Part(one, one, is_nothing=False)

    def link(self, before: Part, after: Part) -> None:
        for one in before.last:
            self.follows[one].update(after.first)

    def then(self, before: Part, after: Part) -> Part:
        self.link(before, after)
        return Part(
            before.first + (after.first if before.is_nothing else ()),
            after.last + (before.last if after.is_nothing else ()),
            before.is_nothing and after.is_nothing,
        )


def automaton(pattern: re.Pattern[Any]) -> Automaton:
    """Build the automaton of an expression."""
    tree = sre.parse(pattern.pattern, pattern.flags)
    made = Automaton(pattern.flags)
    made.whole = _sequence(made, tree)
    return made


def _sequence(made: Automaton, nodes: Any) -> Part:
    part = Part()
    for node in nodes:
        part = made.then(part, _node(made, str(node[0]), node[1]))
    return part


def _node(made: Automaton, kind: str, value: Any) -> Part:
    match kind:
        case "AT" | "ASSERT" | "ASSERT_NOT":
            return Part()
        case "SUBPATTERN":
            return _sequence(made, value[3])
        case "ATOMIC_GROUP":
            return _sequence(made, value)
        case "BRANCH":
            ways = [_sequence(made, one) for one in value[1]]
            nothing = sum(one.is_nothing for one in ways)
            made.is_nothing_twice |= nothing > 1
            first, last = (tuple(place for one in ways for place in getattr(one, end)) for end in ("first", "last"))
            return Part(first, last, is_nothing=nothing > 0)
        case "MAX_REPEAT" | "MIN_REPEAT":
            return _repeat(made, *value)
        case "POSSESSIVE_REPEAT":
            once = _sequence(made, value[2])
            return Part(once.first, once.last, once.is_nothing or value[0] == 0)
    return made.place(_characters(kind, value, made.flags))


def _repeat(made: Automaton, least: int, most: int, body: Any) -> Part:
    part = Part()
    for _unused in range(min(least, SMALL)):
        part = made.then(part, _sequence(made, body))
    if most - least <= SMALL:
        more = Part()
        for _unused in range(most - least):  # the last first: a second time follows a first one only
            once = made.then(_sequence(made, body), more)
            more = Part(once.first, once.last)
        return made.then(part, more)
    loop = _sequence(made, body)
    made.is_nothing_twice |= loop.is_nothing
    made.link(loop, loop)
    return made.then(part, Part(loop.first, loop.last))


def _characters(kind: str, value: Any, flags: int) -> int:
    match kind:
        case "LITERAL":
            return 1 << min(value, OTHERS)
        case "NOT_LITERAL":
            return ALL ^ (1 << min(value, OTHERS))
        case "ANY":
            return ALL if flags & re.DOTALL else ALL ^ (1 << ord("\n"))
        case "RANGE":
            return sum(1 << one for one in range(min(value[0], OTHERS), min(value[1], OTHERS) + 1))
        case "CATEGORY":
            name = str(value).removeprefix("CATEGORY_")
            inside = re.compile(_CATEGORIES[name.removeprefix("NOT_")], flags & re.ASCII)
            found = sum(1 << one for one in range(OTHERS) if inside.fullmatch(chr(one)))
            return ALL ^ found if name.startswith("NOT_") else found
        case "IN":
            negated = str(value[0][0]) == "NEGATE"
            found = 0
            for one, inner in value[negated:]:
                found |= _characters(str(one), inner, flags)
            return ALL ^ found if negated else found
    raise NotImplementedError(f"{kind}: say here what it reads")


def ambiguous(pattern: re.Pattern[Any]) -> bool:
    """Tell whether the number of ways to read a text grows with its length."""
    made = automaton(pattern)
    loops = {one: around for one in range(len(made.reads)) if one in (around := _reached(made, one))}
    if made.is_nothing_twice or any(ways > 1 and one in _reached(made, next_) for one, next_, ways in _edges(made)):
        return True
    pairs = ((one, other) for one in loops for other in loops if one != other and other in loops[one])
    return any(_goes_over(made, one, other) for one, other in pairs)


def _edges(made: Automaton) -> Iterator[tuple[int, int, int]]:
    for one, after in enumerate(made.follows):
        for next_, ways in after.items():
            yield one, next_, ways


def _reached(made: Automaton, start: int) -> set[int]:
    found: set[int] = set()
    todo = [start]
    while todo:
        new = set(made.follows[todo.pop()]) - found
        found |= new
        todo.extend(new)
    return found


def _goes_over(made: Automaton, one: int, other: int) -> bool:
    """Tell whether some word leads from one to itself, from one to other, and from other to itself."""
    begin, end = (one, one, other), (one, other, other)
    seen, todo = {begin}, deque([begin])
    while todo:
        a, b, c = todo.popleft()
        for x in made.follows[a]:
            for y in made.follows[b]:
                both = made.reads[x] & made.reads[y]
                for z in made.follows[c] if both else ():
                    if both & made.reads[z] and (next_ := (x, y, z)) not in seen:
                        seen.add(next_)
                        todo.append(next_)
        if end in seen:
            return True
    return False


def near_misses(pattern: re.Pattern[Any], length: int) -> Iterator[str]:
    """Yield texts of about so many characters that go round each loop of an expression, and end in what none reads."""
    made = automaton(pattern)
    for one in range(len(made.reads)):
        around = _word(made, made.follows[one], one)
        if around is not None:
            start = _word(made, made.whole.first, one) or ""
            yield start + around * ((length - len(start)) // len(around)) + "\0"


def repetitions(pattern: re.Pattern[Any], length: int) -> Iterator[str]:
    """Yield texts of about so many characters that begin an expression again and again, and end in what none reads.

    A search tries from each beginning anew, and what is possessive has no loop that `near_misses` could go round. Said
    again are the way to each place, and each one and two of the characters that the expression tells from one another.
    """
    made = automaton(pattern)
    ways = (_word(made, made.whole.first, one) for one in range(len(made.reads)))
    letters = _alphabet(made, OTHERS if isinstance(pattern.pattern, bytes) else OTHERS + 1)
    pairs = (one + other for one in letters for other in letters if one != other)
    for word in dict.fromkeys([*filter(None, ways), *letters, *pairs]):
        yield word * (length // len(word)) + "\0"


def _alphabet(made: Automaton, characters: int) -> list[str]:
    """Return one of the characters that the same places read, for each such set of places."""
    kinds: dict[tuple[int, ...], int] = {}
    for one in range(characters):
        places = tuple(place for place, read in enumerate(made.reads) if read >> one & 1)
        kinds[places] = kinds.get(places, 0) | 1 << one
    return [_shown(alike) for alike in kinds.values()]


def _word(made: Automaton, begin: Iterator[int] | Any, end: int) -> str | None:
    """Return a shortest text that is read from any of some places to one, both included; None when there is none."""
    todo = deque((one, _shown(made.reads[one])) for one in dict.fromkeys(begin))
    seen = {one for one, _unused in todo}
    while todo:
        one, text = todo.popleft()
        if one == end:
            return text
        for next_ in made.follows[one]:
            if next_ not in seen:
                seen.add(next_)
                todo.append((next_, text + _shown(made.reads[next_])))
    return None


def _shown(characters: int) -> str:
    """Return one of the characters, of those that many expressions read if it can be."""
    likely = next((one for one in "aA0.-/ " if characters >> ord(one) & 1), None)
    return likely or chr((characters & -characters).bit_length() - 1)

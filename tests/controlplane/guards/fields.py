# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Admission of single fields: unknown and unbuilt ones are refused by name, values keep to their bounds."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_FIELDS = "controlplane/api/admission/fields.py"
_METADATA = "controlplane/api/admission/validate/metadata.py"
_STORAGE = "controlplane/api/admission/validate/storage.py"
_BY_FIELDS = (
    "tests/controlplane/api/admission/test_verdict.py",
    "tests/controlplane/api/admission/validate/test_check.py",
)

_BOUNDS = "controlplane/api/schema/bounds.py"
_BY_PATTERNS = ("tests/controlplane/test_patterns.py",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file=_METADATA,
        line='    yield from check_annotation_syntax(metadata.annotations, below(path, "annotations"))\n',
        without="",
        because="A machine would be let in of which no instance can be made.",
        tests=("tests/controlplane/api/admission/validate/test_metadata.py",),
    ),
    Guard(
        file=_BOUNDS,
        line="(/(\\.{0,2}[A-Za-z0-9_+@-][A-Za-z0-9_.+@-]*|",
        without="(/([A-Za-z0-9_.+@-]*[A-Za-z0-9_+@-][A-Za-z0-9_.+@-]*|",
        because="A machine with a path of 82 characters would end virt-api.",
        tests=(
            "tests/controlplane/test_patterns.py::test_an_expression_reads_a_text_in_so_many_ways_however_long_it_is",
        ),
    ),
    Guard(
        file=_FIELDS,
        line="    elif len(value) > limit:\n",
        without="    elif len(value) > limit and not matches(bounds.pattern, value):\n",
        because="A text of megabytes would be matched before it is found too long.",
        tests=_BY_PATTERNS,
    ),
    Guard(
        file=_FIELDS,
        line="        elif name not in unbuilt:\n            yield unknown(name, path, [*known, *unbuilt])\n",
        without="        elif name not in unbuilt:\n            continue\n",
        because="A field that nobody knows must be refused by name, never dropped in silence.",
        tests=_BY_FIELDS,
    ),
    Guard(
        file=_FIELDS,
        line="        elif not _asks_for_nothing(kind, name, one):",
        without="        elif False:",
        because="A feature that is not built must be refused, never ignored.",
        tests=_BY_FIELDS,
    ),
    Guard(
        file=_FIELDS,
        line="        if required and value.get(name) is None:",
        without="        if False:",
        because="What is required and missing must be said by name.",
        tests=_BY_FIELDS,
    ),
    Guard(
        file=_FIELDS,
        line="    elif value.__class__ is not shape.kind:",
        without="    elif not isinstance(value, shape.kind):",
        because="True is no number, though Python says so.",
        tests=_BY_FIELDS,
    ),
    Guard(
        file=_FIELDS,
        line="    elif value in bounds.unbuilt:",
        without="    elif False:",
        because="A choice that is known and not built must be told from one that nobody knows.",
        tests=_BY_FIELDS,
    ),
    Guard(
        file=_FIELDS,
        line="    elif bounds.choices and value not in bounds.choices:",
        without="    elif False:",
        because="A choice that is none must not reach the builders.",
        tests=_BY_FIELDS,
    ),
    Guard(
        file=_FIELDS,
        line="    elif bounds.pattern and not matches(bounds.pattern, value):",
        without="    elif False:",
        because="Names that become paths, labels and XML keep to their pattern.",
        tests=_BY_FIELDS,
    ),
    Guard(
        file=_FIELDS,
        line="    if wrong:\n        needed",
        without="    if False:\n        needed",
        because="A number out of range must not reach the builders.",
        tests=_BY_FIELDS,
    ),
    Guard(
        file=_STORAGE,
        line="        if disk.name not in known:",
        without="        if False:",
        because="A disk without a volume must be refused, not left out.",
        tests=_BY_FIELDS,
    ),
    Guard(
        file=_STORAGE,
        line='    if len(plain.encode(errors="surrogatepass")) > SEED_BYTES:',
        without="    if False:",
        because="Inline data has a bound: it is carried in the Pod.",
        tests=_BY_FIELDS,
    ),
)

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from msgspec import Struct

from controlplane.api.admission import known_fields
from controlplane.api.admission.fields import check
from controlplane.api.objects.affinity import Affinity
from controlplane.api.registry import KINDS
from controlplane.api.schema.shape import Shape, shapes


def structs(kind: type[Struct]) -> dict[str, type[Struct]]:
    result = {kind.__name__: kind}
    for shape, _unused in shapes(kind).values():
        inside: Shape | None = shape
        while inside is not None:
            if inside.struct is not None and inside.struct.__name__ not in result:
                result.update(structs(inside.struct))
            inside = inside.item
    return result


STRUCTS = {name: struct for kind in KINDS for name, struct in structs(kind.spec).items()}
AFFINITY = structs(Affinity)


def test_the_table_names_our_types() -> None:
    assert set(known_fields.UNBUILT) <= set(STRUCTS)


def test_no_field_is_both_built_and_unbuilt() -> None:
    both = {
        name: set(shapes(kind)) & known_fields.UNBUILT[name]
        for name, kind in STRUCTS.items()
        if name in known_fields.UNBUILT and set(shapes(kind)) & known_fields.UNBUILT[name]
    }

    assert both == {}


@pytest.mark.parametrize("name", [*STRUCTS, *AFFINITY])
def test_a_text_that_is_required_may_not_be_empty_either(name: str) -> None:
    """Kubernetes refuses it later, in the Pod, where the user does not see the error."""
    built = shapes({**STRUCTS, **AFFINITY}[name])
    bounds = {field: shape.bounds for field, (shape, needed) in built.items() if needed and shape.kind is str}
    assert [field for field, bound in bounds.items() if not (bound.required or bound.quantity)] == []


def test_only_unbuilt_switches_are_excused() -> None:
    assert set().union(*known_fields.UNBUILT.values()) >= known_fields.OFF_WHEN_FALSE


def test_a_field_supported_elsewhere_is_refused_with_the_place() -> None:
    assert all(name in known_fields.UNBUILT[kind] for kind, name in known_fields.ELSEWHERE)
    (problem,) = check({"network": "moves"}, STRUCTS["MigrationConfiguration"], "migrations")

    assert str(problem).startswith("migrations.network: known to KubeVirt, chosen when the control plane is deployed")
    assert str(problem).endswith("remove it, and deploy with control_plane_migration_network of role control_plane")


NOT_BUILT = [
    pytest.param(kind, name, id=f"{kind}.{name}")
    for kind, names in known_fields.ONE_OF.items()
    for name in sorted(names & known_fields.UNBUILT[kind])
]


def test_every_union_type_is_listed() -> None:
    """Read from the types themselves: each field that is not built is one of the sources."""
    of_sources = {name for name, kind in STRUCTS.items() if "Exactly one source" in (kind.__doc__ or "")}

    assert {"Volume", "Network"} <= of_sources <= set(known_fields.ONE_OF)
    assert {name: known_fields.UNBUILT[name] - known_fields.ONE_OF[name] for name in of_sources} == {
        name: frozenset() for name in of_sources
    }


@pytest.mark.parametrize("kind", known_fields.ONE_OF)
def test_the_members_of_a_union_are_built_or_known(kind: str) -> None:
    built = known_fields.ONE_OF[kind] & set(shapes(STRUCTS[kind]))

    assert built
    assert known_fields.ONE_OF[kind] - built <= known_fields.UNBUILT[kind]


@pytest.mark.parametrize(("kind", "name"), NOT_BUILT)
def test_the_error_for_an_unbuilt_source_names_the_built_ones(kind: str, name: str) -> None:
    """The user cannot just remove it: an object without a source is refused too."""
    built = sorted(known_fields.ONE_OF[kind] & set(shapes(STRUCTS[kind])))

    (problem,) = check({"name": "a", name: {"x": "y"}}, STRUCTS[kind])

    assert problem.message.endswith(f"; use {'one of ' if built[1:] else ''}{', '.join(built)} instead")


@pytest.mark.parametrize(("kind", "name"), NOT_BUILT)
def test_an_unbuilt_source_beside_a_built_one_is_to_be_removed(kind: str, name: str) -> None:
    built = next(iter(known_fields.ONE_OF[kind] & set(shapes(STRUCTS[kind]))))

    messages = {
        problem.path: problem.message for problem in check({"name": "a", name: {"x": "y"}, built: {}}, STRUCTS[kind])
    }

    assert messages[name].endswith("; remove it")

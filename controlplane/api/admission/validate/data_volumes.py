# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about DataVolumes: templates, and volumes that refer to one. CDI checks the sources' own fields."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from controlplane.api.admission.paths import list_at, value_at
from controlplane.api.admission.problem import Problem, below, excerpt
from controlplane.api.admission.validate.metadata import check_annotation_syntax, check_labels
from controlplane.api.admission.validate.storage import duplicates
from controlplane.api.objects.claim import claim_names
from controlplane.api.objects.vm import DataVolumeTemplate
from controlplane.api.objects.vmi.volumes import Volume
from controlplane.api.schema.bounds import SUBDOMAIN
from controlplane.api.schema.patterns import matches

Json = dict[str, Any]

TEMPLATES = "spec.dataVolumeTemplates"
INSTANCE, TEMPLATE = ("spec",), ("spec", "template", "spec")
"""Paths of a VMI spec, in an instance and in a template."""


def check_data_volume_templates(
    templates: Iterable[DataVolumeTemplate], volumes: Iterable[Volume], path: str = TEMPLATES
) -> Iterator[Problem]:
    """Check the templates: what CDI would refuse later, after the VM is admitted, and templates that no volume uses."""
    templates, named = tuple(templates), frozenset(claim_names(volumes))
    yield from duplicates((template.metadata.name for template in templates if template.metadata.name), path)
    for index, template in enumerate(templates):
        here = below(path, index)
        yield from _name(template.metadata.name, named, below(here, "metadata.name"))
        yield from check_labels(template.metadata.labels, below(here, "metadata.labels"))
        yield from check_annotation_syntax(template.metadata.annotations, below(here, "metadata.annotations"))
        yield from _spec(template.spec, below(here, "spec"))


def check_namespaces(vm: Json) -> Iterator[Problem]:
    """Refuse templates in another namespace than the VM's. vm: not validated."""
    own = value_at(vm, "metadata", "namespace") or ""
    for index, template in enumerate(list_at(vm, "spec", "dataVolumeTemplates")):
        namespace = value_at(template, "metadata", "namespace") or own
        if namespace != own:
            text = f"{excerpt(namespace)} is not the VirtualMachine's namespace; remove it"
            yield Problem(f"{TEMPLATES}[{index}].metadata.namespace", text)


def find_data_volumes(obj: Json, machine: tuple[str, ...]) -> Iterator[str]:
    """Yield the paths of fields that need DataVolumes. obj: not validated. machine: path of the machine's spec."""
    if list_at(obj, "spec", "dataVolumeTemplates"):
        yield TEMPLATES
    for index, volume in enumerate(list_at(obj, *machine, "volumes")):
        if value_at(volume, "dataVolume") is not None:
            yield f"{'.'.join(machine)}.volumes[{index}].dataVolume"


def _name(name: str, named: frozenset[str], path: str) -> Iterator[Problem]:
    if not name:
        yield Problem(path, "is required; name the DataVolume", "FieldValueRequired")
    elif len(name) > 253 or not matches(SUBDOMAIN, name):
        text = f"{excerpt(name)} must be a DNS subdomain: lower-case letters, digits, '-' and '.'"
        yield Problem(path, text)
    elif name not in named:
        text = f"no volume of the template is made of {excerpt(name)}; add one (dataVolume) or remove the entry"
        yield Problem(path, text)


def _spec(spec: Json, path: str) -> Iterator[Problem]:
    storages = [spec[name] for name in ("pvc", "storage") if spec.get(name) is not None]
    if len(storages) != 1:
        text = "needs exactly one of pvc and storage" + ("; remove one" if storages else "; set storage")
        yield Problem(path, text, "FieldValueInvalid" if storages else "FieldValueRequired")
    populators = [
        name for storage in storages for name in ("dataSource", "dataSourceRef") if _dict(storage).get(name) is not None
    ]
    sources = [name for name in ("source", "sourceRef") if spec.get(name) is not None]
    if not sources and not populators:
        text = "has no source; set source, sourceRef, or dataSourceRef in pvc or storage"
        yield Problem(path, text, "FieldValueRequired")
    elif len(sources) + bool(populators) > 1:
        yield Problem(path, f"has {' and '.join([*sources, *populators])}; keep one")
    if spec.get("source") is not None:
        yield from _source(spec["source"], below(path, "source"))


def _source(source: Any, path: str) -> Iterator[Problem]:
    kinds = [name for name, value in _dict(source).items() if value is not None]
    if len(kinds) != 1:
        count = f"{len(kinds)} sources" if kinds else "no source"
        text = f"has {count}; needs exactly one, e.g. blank, http, registry, pvc or snapshot"
        yield Problem(path, text, "FieldValueInvalid" if kinds else "FieldValueRequired")


def _dict(value: Any) -> Json:
    return value if isinstance(value, dict) else {}

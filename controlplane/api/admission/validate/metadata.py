# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about names, labels, annotations, finalizers and owners."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kubevirt_api import names

from controlplane.api.admission.problem import EXCERPT, Problem, below, excerpt, key
from controlplane.api.objects.meta import ObjectMeta, OwnerReference
from controlplane.api.objects.start_limits import BOUNDS, read_limit
from controlplane.api.pod_metadata import held_back, passed_annotations
from controlplane.api.schema.bounds import LABEL_PART, SUBDOMAIN
from controlplane.api.schema.patterns import matches

ANNOTATIONS_BYTES = 255 * 1024
"""Limit of keys and values together. The API server allows 1 KiB more, which our own annotations use."""
NAMED_KEYS = 5
"""Keys that a warning names."""

UNBUILT_ANNOTATIONS = frozenset(
    {
        "hooks.kubevirt.io/hookSidecars",
        "kubevirt.io/create-migration-target",
        "kubevirt.io/disablePCIHole64",
        "kubevirt.io/free-page-reporting-disabled",
        "kubevirt.io/ignitiondata",
        "kubevirt.io/image-volume-skip-digest-resolution",
        "kubevirt.io/keep-launcher-alive-after-failure",
        "kubevirt.io/libvirt-log-filters",
        "kubevirt.io/memfd",
        "kubevirt.io/pause-guest-agent-probes",
        "kubevirt.io/placePCIDevicesOnRootComplex",
        "kubevirt.io/qgs-socket-path",
        "kubevirt.io/skip-backup-hooks",
    }
)
"""Annotations that switch behaviour upstream and do nothing here, so they are refused rather than ignored."""


def check_name(metadata: ObjectMeta) -> Iterator[Problem]:
    """Check the name of an object. The API server generates an empty one."""
    name = metadata.name
    if name and len(name) > 253:
        yield Problem("metadata.name", f"has {len(name)} characters, at most 253 are allowed")
    elif name and not matches(SUBDOMAIN, name):
        text = f"{excerpt(name)} must be a DNS subdomain: lower-case letters, digits, '-' and '.', e.g. my-vm"
        yield Problem("metadata.name", text)


def check_labels(labels: Mapping[str, str], path: str) -> Iterator[Problem]:
    """Check the syntax of labels and node selectors."""
    for name, value in labels.items():
        if not _is_key(name):
            text = f"{excerpt(name)} is not a label key; write e.g. app or example.com/app"
            yield Problem(key(path, name), text)
        yield from check_label_value(value, key(path, name))


def _is_key(name: str) -> bool:
    prefix, slash, rest = name.rpartition("/")
    return matches(LABEL_PART, rest) and (not slash or (len(prefix) <= 253 and matches(SUBDOMAIN, prefix)))


def check_annotation_syntax(annotations: Mapping[str, str], path: str) -> Iterator[Problem]:
    """Check annotations as the API server does. It does not check the annotations of a template."""
    for name in annotations:
        if not _is_key(name.lower()):
            yield Problem(
                key(path, name), f"{excerpt(name)} is not an annotation key; write e.g. note or example.com/note"
            )
    size = sum(len(text.encode()) for annotation in annotations.items() for text in annotation)
    if size > ANNOTATIONS_BYTES:
        yield Problem(path, f"take {size} bytes together, at most {ANNOTATIONS_BYTES} are allowed")


def check_label_value(value: str, path: str) -> Iterator[Problem]:
    """Check the syntax of a label's or taint's value."""
    if value and not matches(LABEL_PART, value):
        yield Problem(path, f"{excerpt(value)} is not a label value; at most 63 letters, digits, '-', '_' or '.'")


def check_template_metadata(metadata: ObjectMeta, path: str) -> Iterator[Problem]:
    """Check the labels and annotations that an instance will get."""
    yield from check_labels(metadata.labels, below(path, "labels"))
    yield from check_reserved(metadata.labels, {}, below(path, "labels"))
    yield from check_annotation_syntax(metadata.annotations, below(path, "annotations"))
    yield from check_annotations(metadata.annotations, below(path, "annotations"))
    yield from check_passed_on(metadata.annotations, below(path, "annotations"))


def check_reserved(
    current: Mapping[str, str],
    before: Mapping[str, str],
    path: str,
    *,
    reserved: Iterable[str] = names.RESERVED_LABELS,
) -> Iterator[Problem]:
    """Check that the control plane's own labels (or other reserved names) are unchanged."""
    for name in reserved:
        if current.get(name) != before.get(name):
            text = "is reserved for the control plane; " + ("leave it as it was" if name in before else "remove it")
            yield Problem(key(path, name), text, "FieldValueForbidden")


def check_annotations(annotations: Mapping[str, str], path: str) -> Iterator[Problem]:
    """Refuse annotations for features that are not implemented, and limits that are not numbers."""
    for name in sorted(UNBUILT_ANNOTATIONS & set(annotations)):
        text = "known to KubeVirt, not built in this version; remove it"
        yield Problem(key(path, name), text, "FieldValueNotSupported")
    for name in BOUNDS:
        try:
            read_limit(annotations, name)
        except ValueError as error:
            yield Problem(key(path, name), f"{excerpt(annotations[name])} {error}; correct or remove it")


def check_passed_on(annotations: Mapping[str, str], path: str) -> Iterator[Problem]:
    """Refuse annotations that exceed the launcher Pod's limit."""
    try:
        passed_annotations(annotations)
    except ValueError as error:
        yield Problem(path, str(error))


def warn_of_held_back(metadata: Any, path: str) -> Iterator[str]:
    """Yield a warning that names the keys which the launcher Pod does not get. metadata: not validated."""
    if not isinstance(metadata, dict):
        return
    labels, annotations = (metadata.get(part) for part in ("labels", "annotations"))
    keys = held_back(labels if isinstance(labels, dict) else {}, annotations if isinstance(annotations, dict) else {})
    if keys:
        named = ", ".join(key[:EXCERPT] for key in keys[:NAMED_KEYS])
        more = f" and {len(keys) - NAMED_KEYS} more" if len(keys) > NAMED_KEYS else ""
        yield f"{path}: not passed on to the launcher Pod: {named}{more} (docs/api.md lists what is)"


def check_owners(owners: Iterable[OwnerReference]) -> Iterator[Problem]:
    """Refuse an owner of our own kinds: it would own the instance. Only virt-controller sets one."""
    for index, owner in enumerate(owners):
        if owner.api_version.partition("/")[0] == names.GROUP:
            text = (
                f"an owner of kind {excerpt(owner.kind)} is set by the control plane only; remove it "
                "(a VirtualMachine of the same name adopts an instance that has no owner)"
            )
            yield Problem(below("metadata.ownerReferences", index), text, "FieldValueForbidden")

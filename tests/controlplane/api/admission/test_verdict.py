# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from typing import Any

import pytest
from kubevirt_api import names

from controlplane.api.admission.verdict import Request, Settings, Verdict, review
from controlplane.virt_controller.vm.template import template_hash
from tests.controlplane.api import golden

SETTINGS = Settings(serves_data_volumes=True)
ACCOUNT = "system:serviceaccount:kubevirt:kubevirt-controller"


def create(obj: dict[str, Any], user: str = "somebody") -> Verdict:
    return review(Request(operation="CREATE", kind=obj["kind"], user=user, uid="u-1", obj=obj), SETTINGS)


def update(old: dict[str, Any], obj: dict[str, Any], user: str = "somebody") -> Verdict:
    request = Request(operation="UPDATE", kind=old["kind"], user=user, uid="u-2", obj=obj, old=old)
    return review(request, SETTINGS)


def stored(name: str) -> dict[str, Any]:
    """Return a manifest as it is after its creation."""
    manifest = golden.load(name)
    return create(manifest).patched or manifest


@pytest.mark.parametrize("name", golden.NAMES)
def test_good_manifests_are_accepted_and_so_are_their_stored_forms(name: str) -> None:
    verdict = create(golden.load(name))

    assert verdict.problems == ()
    if verdict.patched is not None:
        assert create(verdict.patched) == Verdict(warnings=verdict.warnings)


@pytest.mark.parametrize("name", ["vm-cirros", "kubevirt"])
def test_our_own_accounts_skip_validation(name: str) -> None:
    bad = golden.changed(golden.load(name), "spec", {"nonsense": 1})

    assert create(bad, ACCOUNT) == Verdict()
    assert not create(bad, "system:serviceaccount:tenant:kubevirt-controller").allowed


def test_an_update_without_a_change_of_the_spec_skips_validation() -> None:
    old = golden.changed(stored("vm-full"), "spec/newer", {"field": 1})

    assert update(old, golden.changed(old, "metadata/labels", {"app": "x"})).allowed
    assert not update(old, golden.changed(old, "spec/runStrategy", "Halted")).allowed


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("kubevirt", "spec/configuration/cpuRequest"),
        ("pool-cirros", "spec/maxUnavailable"),
    ],
)
def test_an_empty_text_is_no_amount_in_an_update_either(name: str, path: str) -> None:
    """An empty text means no value, but not where the API server takes quantities or numbers."""
    old = stored(name)
    bad = golden.changed(old, path, "")

    refusal = create(bad).problems

    assert [problem.path for problem in refusal] == [path.replace("/", ".")]
    assert update(old, bad).problems == refusal


DELETED = "2026-01-01T00:00:00Z"


@pytest.mark.parametrize("path", ["metadata/labels", "spec/nodeSelector", "spec/newer"])
def test_a_write_to_an_object_being_deleted_is_accepted_with_a_warning(path: str) -> None:
    """A rule that it breaks must not block its deletion; but the change goes with the object."""
    old = golden.changed(stored("vmi-masquerade"), "metadata/deletionTimestamp", DELETED)
    verdict = update(old, golden.changed(old, path, {"a": "b"}))

    name = old["metadata"]["name"]
    warning = f"VirtualMachineInstance {name} is being deleted, and this change with it"
    assert verdict == Verdict(warnings=(f"{warning}; wait until it is gone, then create it again",))


@pytest.mark.parametrize(
    ("name", "finalizer", "consequence"),
    [
        ("vm-cirros", names.VM_FINALIZER, "a machine's instance is deleted after it"),
        ("vmi-masquerade", names.VMI_FINALIZER, "its guest may still run in its launcher Pod"),
        ("vmi-migration", names.MIGRATION_FINALIZER, "as if it were cancelled"),
    ],
)
def test_a_write_that_only_removes_our_finalizer_is_accepted_with_a_warning(
    name: str, finalizer: str, consequence: str
) -> None:
    """As upstream: it is how an administrator gets rid of what cannot end."""
    old = golden.changed(stored(name), "metadata/deletionTimestamp", DELETED)
    verdict = update(old, golden.changed(old, "metadata/finalizers", ...))

    (warning,) = verdict.warnings
    assert (verdict.problems, verdict.patched) == ((), None)
    assert f"{finalizer} is removed before virt-controller is done" in warning
    assert consequence in warning
    assert len(warning) <= 256, "API servers cut longer ones"


@pytest.mark.parametrize("name", ["vm-cirros", "vmi-masquerade", "vmi-migration"])
def test_a_replace_of_an_object_being_deleted_keeps_our_finalizer(name: str) -> None:
    """A manifest has neither finalizers nor a deletionTimestamp: its author does not mean to give up a guest."""
    old = golden.changed(stored(name), "metadata/deletionTimestamp", DELETED)
    verdict = update(old, golden.changed(golden.load(name), "metadata/labels", {"a": "b"}))

    assert verdict.patched is not None
    assert verdict.patched["metadata"]["finalizers"] == old["metadata"]["finalizers"]
    assert "is being deleted" in verdict.warnings[0]


def test_other_finalizers_are_removed_without_a_warning() -> None:
    """The garbage collector and other controllers do it all the time."""
    old = golden.changed(stored("vmi-masquerade"), "metadata/deletionTimestamp", DELETED)
    ours = old["metadata"]["finalizers"]

    assert update(golden.changed(old, "metadata/finalizers", [*ours, "foregroundDeletion"]), old) == Verdict()


STALE = [
    pytest.param("vmi-masquerade", "metadata/labels", {names.NODE_NAME: "n"}, id="an instance"),
    pytest.param("vm-cirros", "spec/nonsense", 1, id="a VM"),
    pytest.param("vmi-migration", "spec/vmiName", "other", id="a migration"),
]


@pytest.mark.parametrize(("name", "path", "value"), STALE)
def test_a_stale_write_is_left_to_the_api_server(name: str, path: str, value: Any) -> None:
    """It answers 409, and clients read the object again; another refusal they do not repeat."""
    old = golden.changed(stored(name), "metadata/resourceVersion", "8")
    new = golden.changed(old, path, value)

    assert not update(old, new).allowed
    assert update(old, golden.changed(new, "metadata/resourceVersion", "7")) == Verdict()
    for version in ("", ..., "08", "008", " 8", "8 ", "+8", "0x8", "0", "07", "7.0", "\u0667", 7, "9" * 20):
        # The API server parses it, and takes 08 for 8: what is not the plain number of another version is judged.
        assert not update(old, golden.changed(new, "metadata/resourceVersion", version)).allowed


def test_a_creation_is_judged_whatever_version_it_names() -> None:
    vm = golden.changed(golden.load("vm-cirros"), "metadata/resourceVersion", "7")

    assert not create(golden.changed(vm, "spec/nonsense", 1)).allowed


TYPED: list[tuple[str, Any]] = [
    ("status", {}),
    ("metadata/creationTimestamp", None),
    ("spec/nodeSelector", None),
    ("spec/tolerations", []),
    ("spec/hostname", ""),
    ("spec/domain/resources", {}),
    ("spec/domain/machine/type", ""),
    ("spec/accessCredentials", None),
]


@pytest.mark.parametrize(("path", "value"), TYPED, ids=[path for path, _unused in TYPED])
def test_what_typed_clients_write_by_themselves_is_no_change(path: str, value: Any) -> None:
    old = stored("vmi-masquerade")
    del old["spec"]["domain"]["machine"]["type"]
    new = golden.changed(golden.changed(old, path, value), "metadata/labels", {"app": "x"})

    assert update(old, new) == Verdict()


def test_an_unknown_kind_is_refused() -> None:
    """Webhooks of a newer version can call an older server."""
    verdict = create({"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineClone", "metadata": {"name": "web"}})

    assert [problem.path for problem in verdict.problems] == ["kind"]
    assert "not judged by this version" in str(verdict.problems[0])


@pytest.mark.parametrize("name", ["vm-cirros", "vmi-masquerade"])
def test_a_replace_keeps_our_finalizer(name: str) -> None:
    old = stored(name)

    verdict = update(old, golden.changed(old, "metadata/finalizers", ...))

    assert verdict.allowed
    assert verdict.patched is not None
    assert verdict.patched["metadata"]["finalizers"] == old["metadata"]["finalizers"]


@pytest.mark.parametrize(
    ("path", "value", "reported"),
    [
        ("spec/domain/memory/guest", "2Gi", "spec.domain.memory.guest"),
        ("sepc", {}, "sepc"),
    ],
)
def test_only_the_control_plane_changes_the_spec_of_a_running_instance(path: str, value: Any, reported: str) -> None:
    """Hotplug, migration and a shorter grace period are our writes; a user's change is refused by its field."""
    old = stored("vmi-masquerade")
    new = golden.changed(old, path, value)

    verdict = update(old, new)

    assert [problem.path for problem in verdict.problems] == [reported]
    assert "change the VirtualMachine" in str(verdict.problems[0])
    assert update(old, new, ACCOUNT) == Verdict()


@pytest.mark.parametrize("name", [name for name in golden.NAMES if name.startswith("vm-")])
def test_a_replace_with_the_original_manifest_changes_nothing(name: str) -> None:
    """`kubectl replace` once dropped UUID and serial: the guest booted as another machine."""
    old = stored(name)
    new = golden.load(name)

    verdict = update(old, new)

    assert verdict.allowed
    assert (verdict.patched or new)["spec"] == old["spec"]
    assert verdict.patched is not None
    assert hash_of(verdict.patched) == hash_of(old), "so that no restart is asked for"


def hash_of(vm: dict[str, Any]) -> str:
    return template_hash(json.dumps(vm["spec"]["template"]["spec"]).encode())


def test_a_user_can_set_an_identity() -> None:
    old = stored("vm-full")
    new = golden.changed(old, "spec/template/spec/domain/firmware", {"serial": "mine"})

    patched = update(old, new).patched

    assert patched is not None
    before, after = (vm["spec"]["template"]["spec"]["domain"]["firmware"] for vm in (old, patched))
    assert after == {"uuid": before["uuid"], "serial": "mine"}


@pytest.mark.parametrize("annotation", names.RESERVED_ANNOTATIONS)
def test_reserved_annotations_belong_to_the_control_plane(annotation: str) -> None:
    """virt-controller compares them to decide whether a VM needs a restart."""
    plain = stored("vmi-masquerade")
    marked = golden.changed(plain, "metadata/annotations", {annotation: "x"})
    path = f"metadata.annotations[{annotation}]"

    assert [problem.path for problem in create(marked).problems] == [path]
    assert [problem.path for problem in update(plain, marked).problems] == [path]
    assert "remove it" in str(update(plain, marked).problems[0])
    assert [problem.path for problem in update(marked, plain).problems] == [path]
    assert "leave it as it was" in str(update(marked, plain).problems[0])
    assert not update(marked, golden.changed(marked, "metadata/annotations", {annotation: "y"})).allowed
    assert update(marked, golden.changed(marked, "metadata/annotations", {annotation: "x", "a": "b"})).allowed
    assert update(plain, marked, ACCOUNT).allowed


@pytest.mark.parametrize("label", names.RESERVED_LABELS)
def test_reserved_labels_belong_to_the_control_plane(label: str) -> None:
    plain = stored("vmi-masquerade")
    marked = golden.changed(plain, "metadata/labels", {label: "x"})

    assert not create(marked).allowed
    assert not update(plain, marked).allowed
    assert not update(marked, plain).allowed
    assert update(marked, golden.changed(marked, "metadata/annotations", {"a": "b"})).allowed
    assert create(marked, ACCOUNT).allowed


def test_a_user_cannot_make_a_vm_own_an_instance() -> None:
    owner = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": "a", "uid": "b", "controller": True}
    free = stored("vmi-masquerade")
    owned = golden.changed(free, "metadata/ownerReferences", [owner])

    assert [problem.path for problem in create(owned).problems] == ["metadata.ownerReferences[0]"]
    assert not update(free, owned).allowed
    older = golden.changed(free, "metadata/ownerReferences", [{**owner, "apiVersion": "kubevirt.io/v1alpha3"}])
    assert not create(older).allowed, "in whichever version of the group"
    assert update(owned, free).allowed, "orphan deletion removes the reference"
    assert create(golden.changed(free, "metadata/ownerReferences", [{**owner, "apiVersion": "example.com/v1"}])).allowed


def test_existing_reserved_metadata_does_not_block_other_labels_and_owners() -> None:
    """Our own accounts, or another version, put it there."""
    ours = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": "a", "uid": "b", "controller": True}
    other = {"apiVersion": "example.com/v1", "kind": "Fleet", "name": "c", "uid": "d"}
    old = golden.changed(stored("vmi-masquerade"), "metadata/annotations", {"kubevirt.io/memfd": "false"})
    old = golden.changed(old, "metadata/ownerReferences", [ours])

    assert update(old, golden.changed(old, "metadata/labels", {"app": "x"})).allowed
    assert update(old, golden.changed(old, "metadata/ownerReferences", [ours, other])).allowed
    assert not update(old, golden.changed(old, "metadata/annotations", {"kubevirt.io/memfd": "true"})).allowed


@pytest.mark.parametrize("name", ["vm-default-disks", "vmi-masquerade"])
def test_identity_and_finalizer_are_added_at_creation_only(name: str) -> None:
    """An object that another version admitted stays without an identity and our finalizer."""
    old = golden.load(name)
    later = update(old, golden.changed(old, "metadata/labels", {"app": "x"}))
    filled = later.patched or old

    assert later.allowed
    assert "finalizers" not in filled["metadata"]
    assert "uuid" not in str(filled["spec"])


def test_an_instance_gets_defaults_at_creation_only() -> None:
    old = golden.load("vmi-masquerade")

    assert update(old, golden.changed(old, "metadata/labels", {"app": "x"})).patched is None


def test_an_unbuilt_annotation_on_an_instance_is_refused() -> None:
    vmi = golden.changed(golden.load("vmi-masquerade"), "metadata/annotations", {"kubevirt.io/memfd": "false"})

    assert [problem.path for problem in create(vmi).problems] == ["metadata.annotations[kubevirt.io/memfd]"]


@pytest.mark.parametrize("metadata", [7, "", [1], False], ids=repr)
@pytest.mark.parametrize("name", ["vm-cirros", "vmi-masquerade"])
def test_metadata_that_is_no_object_is_a_problem_and_does_not_raise(name: str, metadata: object) -> None:
    manifest = golden.load(name)
    bad = golden.changed(manifest, "metadata", metadata)

    for verdict in (create(bad), update(manifest, bad)):
        assert [problem.path for problem in verdict.problems] == ["metadata"]
        assert "must be an object" in verdict.problems[0].message
    assert isinstance(update(bad, manifest), Verdict), "what is stored must remain possible to repair"


@pytest.mark.parametrize("finalizers", [7, "x", {"a": 1}], ids=repr)
def test_finalizers_that_are_no_list_count_as_none(finalizers: object) -> None:
    old = golden.changed(stored("vmi-masquerade"), "metadata/deletionTimestamp", DELETED)

    verdict = update(old, golden.changed(old, "metadata/finalizers", finalizers))

    assert names.VMI_FINALIZER in verdict.warnings[0]


def test_only_the_control_plane_writes_status() -> None:
    vm = stored("vm-cirros")
    request = Request(
        operation="UPDATE", kind="VirtualMachine", user="u", uid="1", obj=vm, old=vm, subresource="status"
    )

    assert review(request, SETTINGS).code == 403


@pytest.mark.parametrize("subresource", ["scale", "another"])
def test_other_subresources_are_not_judged(subresource: str) -> None:
    """Their body is another type: validation as the object would refuse it."""
    scale = {"kind": "Scale", "apiVersion": "autoscaling/v1", "spec": {"replicas": 3}}
    request = Request(
        operation="UPDATE", kind="VirtualMachine", user="u", uid="1", obj=scale, old=scale, subresource=subresource
    )

    assert review(request, SETTINGS) == Verdict()


@pytest.mark.parametrize("operation", ["DELETE", "CONNECT"])
def test_other_operations_pass(operation: str) -> None:
    vm = stored("vm-cirros")
    request = Request(operation=operation, kind="VirtualMachine", user="u", uid="1", obj=None, old=vm)

    assert review(request, SETTINGS) == Verdict()


def test_deprecated_and_ignored_settings_get_a_warning() -> None:
    gates = golden.changed(
        golden.load("kubevirt"), "spec/configuration/developerConfiguration/featureGates", ["HostDisk"]
    )
    verbosity = golden.changed(
        golden.load("kubevirt"),
        "spec/configuration/developerConfiguration/logVerbosity",
        {"virtAPI": 3, "virtOperator": 3},
    )

    assert "runStrategy" in create(golden.load("vm-cirros")).warnings[0]
    assert "featureGates" in create(gates).warnings[0]
    assert "virtOperator" in create(verbosity).warnings[0]
    plain = golden.changed(golden.load("vm-full"), "spec/template/metadata/annotations", {})
    assert create(plain).warnings == ()


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("furtherAttempts", 11, "from 0 to 10"),
        ("furtherAttempts", -1, "from 0 to 10"),
        ("furtherAttempts", "two", "whole number"),
        ("runTimeoutSeconds", 86401, "from 0 to 86400"),
        ("quarantineSeconds", "forever", "whole number"),
        ("furtherAttempt", 2, "did you mean furtherAttempts"),
    ],
)
def test_a_malformed_retry_setting_is_refused_by_name(field: str, value: object, words: str) -> None:
    (problem,) = create(golden.changed(golden.load("kubevirt"), f"spec/configuration/{field}", value)).problems

    assert problem.path == f"spec.configuration.{field}"
    assert words in problem.message


@pytest.mark.parametrize(
    ("annotation", "value", "words"),
    [
        (names.FURTHER_ATTEMPTS, "11", "from 0 to 10"),
        (names.RUN_TIMEOUT, "86401", "from 0 to 86400"),
        (names.QUARANTINE, "forever", "from 0 to 86400"),
        (names.CONTAINER_DISK_LIMIT, "1Ki", "from 1Mi to 64Ti"),
        (names.CONTAINER_DISK_LIMIT, "big", "from 1Mi to 64Ti"),
        ("virtops.kubevirt/quarantine-second", "60", "did you mean virtops.kubevirt/quarantine-seconds"),
        ("virtops.kubevirt/unheard-of", "60", "no such setting; remove it"),
    ],
)
def test_a_malformed_setting_of_kubevirt_is_refused_by_name(annotation: str, value: str, words: str) -> None:
    plain = golden.load("kubevirt")
    marked = golden.changed(plain, "metadata/annotations", {annotation: value, "example.com/note": "x"})
    (problem,) = create(marked).problems
    assert problem.path == f"metadata.annotations[{annotation}]"
    assert words in problem.message
    assert not update(plain, marked).allowed
    assert update(marked, golden.changed(marked, "metadata/labels", {"app": "x"})).allowed, "it was there before"


def test_settings_as_fields_are_accepted_with_a_warning() -> None:
    """Older roles wrote them; the next write of KubeVirt's clients drops them."""
    verdict = create(golden.changed(golden.load("kubevirt"), "spec/configuration/furtherAttempts", 1))
    assert verdict.allowed
    assert names.FURTHER_ATTEMPTS in verdict.warnings[0]
    assert (
        create(golden.changed(golden.load("kubevirt"), "metadata/annotations", {names.QUARANTINE: "0"})).warnings == ()
    )


LONG = {f"prometheus.io/{number}": "x" * 1000 for number in range(40)}
NOT_PASSED_ON = ["k8s.v1.cni.cncf.io/networks", *(f"note-{number}" for number in range(9))]


@pytest.mark.parametrize(
    ("name", "path"), [("vm-full", "spec/template/metadata"), ("vmi-masquerade", "metadata")], ids=["VM", "VMI"]
)
def test_metadata_that_the_pod_does_not_get_is_named_in_a_warning(name: str, path: str) -> None:
    notes = {**dict.fromkeys(NOT_PASSED_ON, "x"), "prometheus.io/scrape": "true", "kubevirt.io/anything": "x"}
    changed = golden.changed(golden.load(name), f"{path}/annotations", notes)
    changed = golden.changed(changed, f"{path}/labels", {"app": "x", "topology.kubernetes.io/zone": "a"})

    verdict = create(changed)

    (warning,) = verdict.warnings
    where = path.replace("/", ".")
    assert warning == (
        f"{where}: not passed on to the launcher Pod: k8s.v1.cni.cncf.io/networks, note-0, note-1, note-2, note-3 "
        "and 6 more (docs/api.md lists what is)"
    )
    assert verdict.allowed


@pytest.mark.parametrize(
    ("name", "path"), [("vm-full", "spec/template/metadata"), ("vmi-masquerade", "metadata")], ids=["VM", "VMI"]
)
def test_more_annotations_than_the_pod_can_carry_are_refused(name: str, path: str) -> None:
    long = golden.changed(golden.load(name), f"{path}/annotations", LONG)

    (problem,) = create(long).problems

    assert problem.path == path.replace("/", ".") + ".annotations"
    assert "at most 32768 are passed on" in problem.message


def test_an_admitted_instance_with_long_annotations_can_still_be_labelled() -> None:
    long = golden.changed(golden.load("vmi-masquerade"), "metadata/annotations", LONG)

    assert update(long, golden.changed(long, "metadata/labels", {"app": "x"})).allowed


def test_a_cpu_request_of_zero_is_accepted() -> None:
    """As for a Pod without a CPU request."""
    assert create(
        golden.changed(golden.load("vm-full"), "spec/template/spec/domain/resources/requests/cpu", "0")
    ).allowed

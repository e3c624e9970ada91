# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""containerd and CRI-O: the command lines of their programs, and the parsing of their output."""

from __future__ import annotations

import json

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import BadArgument, VirtError
from ansible_collections.virtops.kubevirt.plugins.module_utils._node import containerd, crio
from ansible_collections.virtops.kubevirt.plugins.module_utils._node.containerd import Containerd
from ansible_collections.virtops.kubevirt.plugins.module_utils._node.crio import Crio
from ansible_collections.virtops.kubevirt.plugins.module_utils._node.records import Record
from ansible_collections.virtops.kubevirt.tests.unit.plugins.module_utils._node.conftest import Node

OURS = "localhost/virtops/virt-launcher"
LISTED = f"""\
REF TYPE DIGEST SIZE PLATFORMS LABELS
{OURS}:1 application/vnd.oci.image.manifest.v1+json sha256:aa 121.8 MiB linux/amd64 io.cri-containerd.image=managed
sha256:bb application/vnd.oci.image.manifest.v1+json sha256:aa 121.8 MiB linux/amd64 -
"""
CRICTL = "crictl --timeout 2m --runtime-endpoint unix:///run/crio/crio.sock --image-endpoint unix:///run/crio/crio.sock"


def test_containerd_lists_names_with_their_digests(node: Node) -> None:
    node.has("ctr")
    node.says("ctr", "list", LISTED)
    assert Containerd().records() == [Record(f"{OURS}:1", "sha256:aa"), Record("sha256:bb", "sha256:aa")]
    assert node.calls == ["ctr --namespace k8s.io images list"]


def test_containerd_imports_under_the_repository(node: Node) -> None:
    node.has("k3s")
    Containerd("k3s ctr").load(f"{OURS}:1", "/tmp/a.tar")
    assert node.calls == [f"k3s ctr --namespace k8s.io images import --local --digests --base-name {OURS} /tmp/a.tar"]


def test_containerd_pulls_with_the_settings_of_the_node(node: Node) -> None:
    node.has("ctr")
    Containerd(hosts_directory="/etc/rke2/certs.d").pull(f"{OURS}:1")
    assert node.calls == [f"ctr --namespace k8s.io images pull --hosts-dir /etc/rke2/certs.d {OURS}:1"]


def test_a_password_goes_to_containerds_client_by_stdin_and_not_by_argument(node: Node) -> None:
    node.has("ctr")
    Containerd().pull(f"{OURS}:1", "nodes", "canary pass:word!")
    assert node.typed == "canary pass:word!"
    assert "--user nodes" in node.calls[0]
    assert "canary" not in node.calls[0]


def test_a_password_that_cannot_be_typed_is_refused_and_not_shown(node: Node) -> None:
    node.has("ctr")
    with pytest.raises(BadArgument, match="control characters") as caught:
        Containerd().pull(f"{OURS}:1", "nodes", "canary\x03")
    assert "canary" not in caught.value.message


def test_containerd_removes_names_and_content_and_waits_for_it(node: Node) -> None:
    node.has("ctr")
    node.says("ctr", "list", LISTED)
    assert Containerd().remove(OURS) == [f"{OURS}:1", "sha256:bb"]
    assert node.calls[-1] == f"ctr --namespace k8s.io images remove --sync {OURS}:1 sha256:bb"
    assert Containerd().remove("localhost/virtops/other") == []
    assert node.calls[-1] == "ctr --namespace k8s.io images list"


def test_containerd_waits_for_containers_about_to_be_removed(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    node.has("ctr")
    node.says("ctr", "list", LISTED)
    node.says("ctr", "containers", f"CONTAINER IMAGE RUNTIME\n11 {OURS}:1 io.containerd.runc.v2\n22 other:1 runc\n")
    pauses: list[float] = []

    def the_kubelet_comes_by(seconds: float) -> None:
        pauses.append(seconds)
        node.says("ctr", "containers", "CONTAINER IMAGE RUNTIME\n22 other:1 io.containerd.runc.v2\n")

    monkeypatch.setattr(containerd.time, "sleep", the_kubelet_comes_by)
    Containerd().remove(OURS)
    assert pauses == [1]
    assert node.calls[-1].startswith("ctr --namespace k8s.io images remove")


def test_containerd_does_not_wait_for_ever_for_an_image_in_use(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    node.has("ctr")
    node.says("ctr", "list", LISTED)
    node.says("ctr", "containers", f"CONTAINER IMAGE RUNTIME\n11 {OURS}:1 io.containerd.runc.v2\n")
    monkeypatch.setattr(containerd, "COLLECTED_SECONDS", 0)
    assert Containerd().remove(OURS) == [f"{OURS}:1", "sha256:bb"]


def images(*found: dict[str, object]) -> str:
    return json.dumps({"images": list(found)})


IMAGE = {"id": "cc", "repoTags": [f"{OURS}:1"], "repoDigests": [f"{OURS}@sha256:aa", f"{OURS}@sha256:list"]}


def test_crio_lists_names_with_all_their_digests(node: Node) -> None:
    node.has("crictl")
    node.says("crictl", "images", images(IMAGE, {"id": "dd", "repoTags": None, "repoDigests": None}))
    assert Crio().records() == [
        Record(f"{OURS}:1", "sha256:aa"),
        Record(f"{OURS}:1", "sha256:list"),
        Record(f"{OURS}@sha256:aa", "sha256:aa"),
        Record(f"{OURS}@sha256:list", "sha256:list"),
    ]
    assert node.calls == [f"{CRICTL} images --output json"]


def test_crio_without_images_lists_nothing(node: Node) -> None:
    node.has("crictl")
    node.says("crictl", "images", "{}")
    assert Crio().records() == []


def test_skopeo_imports_into_the_storage_of_crio(node: Node) -> None:
    node.has("skopeo")
    node.has("podman")
    Crio().load(f"{OURS}:1", "/tmp/a.tar")
    assert node.calls == [f"skopeo copy --quiet oci-archive:/tmp/a.tar containers-storage:{OURS}:1"]


def test_podman_imports_without_skopeo(node: Node) -> None:
    node.has("podman")
    node.says("podman", "pull", "cc")
    Crio().load(f"{OURS}:1", "/tmp/a.tar")
    assert node.calls == ["podman pull --quiet oci-archive:/tmp/a.tar", f"podman tag cc {OURS}:1"]


def test_without_skopeo_and_podman_the_error_names_the_remedy(node: Node) -> None:
    with pytest.raises(VirtError, match=r"skopeo or podman is needed to import archives .* install one .* or pull"):
        Crio().load(f"{OURS}:1", "/tmp/a.tar")


def test_a_password_goes_to_crictl_and_not_by_argument(node: Node) -> None:
    node.has("crictl")
    Crio().pull(f"{OURS}:1", "nodes", "canary")
    assert node.creds == "nodes:canary"
    assert node.calls == [f"{CRICTL} pull {OURS}:1"]
    Crio().pull(f"{OURS}:1")
    assert node.creds == ""


def test_crio_removes_an_image_without_other_names_by_its_id(node: Node) -> None:
    node.has("crictl")
    node.says("crictl", "images", images(IMAGE))
    assert Crio().remove(OURS) == [f"{OURS}:1", f"{OURS}@sha256:aa", f"{OURS}@sha256:list"]
    assert node.calls[-1] == f"{CRICTL} rmi cc"


def test_crio_removes_only_our_name_of_an_image_with_others(node: Node) -> None:
    node.has("crictl")
    node.says("crictl", "images", images({**IMAGE, "repoTags": [f"{OURS}:1", "registry.example/copy:1"]}))
    assert Crio().remove(OURS) == [f"{OURS}:1"]


def test_crio_removes_images_of_earlier_builds_under_the_same_tag(node: Node) -> None:
    """CRI-O keeps an image whose tag moved to another one, and lists its former repository."""
    node.has("crictl")
    former = {"id": "dd", "repoTags": [], "repoDigests": [f"{OURS}@sha256:old"]}
    node.says("crictl", "images", images(IMAGE, former))
    assert f"{OURS}@sha256:old" in Crio().remove(OURS)
    assert node.calls[-1] == f"{CRICTL} rmi cc dd"


HELD = 'level=fatal msg="error of removing image \\"cc\\": image used by 11: image is in use by a container"'


def test_crio_retries_until_an_ended_container_is_removed(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """CRI-O does not remove an image that a container uses, even an ended one; the kubelet removes that within a
    minute.
    """
    node.has("crictl")
    node.says("crictl", "images", images(IMAGE))
    node.fails("crictl", "rmi", HELD)
    pauses: list[float] = []

    def the_kubelet_comes_by(seconds: float) -> None:
        pauses.append(seconds)
        node.passes("crictl", "rmi")

    monkeypatch.setattr(crio.time, "sleep", the_kubelet_comes_by)
    assert f"{OURS}:1" in Crio().remove(OURS)
    assert pauses == [1]
    assert [call for call in node.calls if " rmi " in call] == [f"{CRICTL} rmi cc"] * 2


def test_an_image_removed_meanwhile_is_not_removed_again(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    node.has("crictl")
    node.says("crictl", "images", images(IMAGE, {**IMAGE, "id": "dd", "repoTags": [f"{OURS}:2"]}))
    node.fails("crictl", "rmi", HELD)

    def one_went(_seconds: float) -> None:
        node.says("crictl", "images", images(IMAGE))
        node.passes("crictl", "rmi")

    monkeypatch.setattr(crio.time, "sleep", one_went)
    assert {f"{OURS}:1", f"{OURS}:2"} <= set(Crio().remove(OURS))
    assert node.calls[-1] == f"{CRICTL} rmi cc"


def test_an_image_that_stays_in_use_is_an_error_with_a_remedy(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    node.has("crictl")
    node.says("crictl", "images", images(IMAGE))
    node.fails("crictl", "rmi", HELD)
    monkeypatch.setattr(crio, "COLLECTED_SECONDS", 0)
    with pytest.raises(VirtError, match=f"{OURS} is still used on this node.*Pods.*image used by 11"):
        Crio().remove(OURS)


def test_other_errors_of_crictl_are_not_retried(node: Node) -> None:
    node.has("crictl")
    node.says("crictl", "images", images(IMAGE))
    node.fails("crictl", "rmi", "connection refused")
    with pytest.raises(VirtError, match="connection refused"):
        Crio().remove(OURS)


def test_the_error_output_of_a_program_is_shown(node: Node) -> None:
    node.has("ctr")
    node.fails("ctr", "pull", "ctr: failed to resolve: 401 Unauthorized")
    with pytest.raises(VirtError, match="exit code 7: ctr: failed to resolve: 401") as caught:
        Containerd().pull(f"{OURS}:1", "nodes", "canary")
    assert "canary" not in caught.value.message


def test_a_missing_program_is_named(node: Node) -> None:
    with pytest.raises(VirtError, match="cannot run /nowhere/ctr: No such file"):
        Containerd("/nowhere/ctr").records()
    with pytest.raises(BadArgument, match="empty"):
        Containerd(" ").records()

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The modules for images on a node: idempotent, and never half done."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import BadArgument, VirtError
from ansible_collections.virtops.kubevirt.plugins.module_utils._node.containerd import Containerd
from ansible_collections.virtops.kubevirt.plugins.module_utils._node.image import (
    describe,
    ensure,
    image_spec,
    kind_of_runtime,
    runtime_spec,
)
from ansible_collections.virtops.kubevirt.tests.unit.plugins.module_utils._node.conftest import Node

NAME = "localhost/virtops/virt-launcher:1"
HEADER = "REF TYPE DIGEST SIZE PLATFORMS LABELS"


def params(**given: Any) -> dict[str, Any]:
    result = ArgumentSpecValidator(image_spec()).validate({"name": NAME, "runtime": "containerd", **given})
    assert result.error_messages == []
    return result.validated_parameters


@pytest.fixture
def containerd(node: Node) -> Node:
    node.has("ctr")
    node.says("ctr", "list", HEADER)
    return node


def holds(node: Node, *names: tuple[str, str]) -> None:
    node.says("ctr", "list", "\n".join([HEADER, *(f"{name} type {digest} 1 MiB -" for name, digest in names)]))


def verbs(node: Node) -> list[str]:
    return [call.split()[4] for call in node.calls]


def test_the_runtime_is_the_option_or_the_one_with_a_socket() -> None:
    assert kind_of_runtime("auto", lambda path: path == "/run/crio/crio.sock") == "cri-o"
    assert kind_of_runtime("auto", lambda _path: False) == "containerd"
    assert kind_of_runtime("containerd", lambda _path: True) == "containerd"


def test_a_node_is_described(containerd: Node) -> None:
    holds(containerd, (NAME, "sha256:aa"))
    asked = ArgumentSpecValidator(runtime_spec()).validate({"runtime": "containerd"}).validated_parameters
    expected = {"changed": False, "runtime": "containerd", "images": {NAME: ["sha256:aa"]}}
    assert describe(asked, check_mode=False) == expected


def test_an_archive_with_the_same_digest_is_not_imported(containerd: Node) -> None:
    holds(containerd, (NAME, "sha256:aa"))
    result = ensure(params(archive="/tmp/a.tar", digest="sha256:aa"), check_mode=False)
    assert result == {"changed": False, "digest": "sha256:aa"}
    assert verbs(containerd) == ["list"]


def test_another_archive_under_the_same_name_replaces_the_image(
    containerd: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    holds(containerd, (NAME, "sha256:old"))
    containerd.says("ctr", "import", "")
    load = Containerd.load

    def loads(self: Containerd, name: str, archive: str) -> None:
        load(self, name, archive)
        holds(containerd, (NAME, "sha256:new"))

    monkeypatch.setattr(Containerd, "load", loads)
    result = ensure(params(archive="/tmp/a.tar", digest="sha256:new"), check_mode=False)
    assert result == {"changed": True, "digest": "sha256:new"}
    assert verbs(containerd) == ["list", "import", "list"]


def test_an_import_without_effect_is_an_error(containerd: Node) -> None:
    holds(containerd, (NAME, "sha256:old"))
    with pytest.raises(VirtError, match="was loaded and is missing: the node has sha256:old under this name"):
        ensure(params(archive="/tmp/a.tar", digest="sha256:new"), check_mode=False)


def test_check_mode_only_lists(containerd: Node) -> None:
    assert ensure(params(archive="/nowhere", digest="sha256:aa"), check_mode=True) == {
        "changed": True,
        "digest": "sha256:aa",
    }
    assert ensure(params(archive="/nowhere", digest=""), check_mode=True) == {"changed": True, "digest": ""}
    assert ensure(params(), check_mode=True) == {"changed": True, "digest": ""}
    holds(containerd, (NAME, "sha256:aa"))
    assert ensure(params(state="absent"), check_mode=True) == {"changed": True, "removed": [NAME]}
    assert set(verbs(containerd)) == {"list"}


def test_an_image_is_pulled_when_missing_or_always(containerd: Node) -> None:
    holds(containerd, (NAME, "sha256:aa"))
    assert ensure(params(), check_mode=False) == {"changed": False, "digest": "sha256:aa"}
    assert verbs(containerd) == ["list"]
    assert ensure(params(pull="always"), check_mode=False) == {"changed": False, "digest": "sha256:aa"}
    assert verbs(containerd) == ["list", "list", "pull", "list"]


def test_all_records_of_a_repository_are_removed(containerd: Node) -> None:
    holds(containerd, (NAME, "sha256:aa"), ("sha256:bb", "sha256:aa"))
    assert ensure(params(state="absent"), check_mode=False) == {"changed": True, "removed": [NAME, "sha256:bb"]}
    holds(containerd)
    assert ensure(params(state="absent"), check_mode=False) == {"changed": False, "removed": []}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"archive": "/tmp/a.tar"}, "archive needs digest"),
        ({"username": "nodes"}, "username and password go together"),
        ({"password": "canary"}, "username and password go together"),
        ({"username": "a:b", "password": "canary"}, "username has a colon"),
    ],
)
def test_options_that_belong_together_are_required_together(
    containerd: Node, given: dict[str, str], words: str
) -> None:
    with pytest.raises(BadArgument, match=words) as caught:
        ensure(params(**given), check_mode=False)
    assert "canary" not in caught.value.message


def test_a_runtime_that_does_not_respond_is_named_with_the_option(node: Node) -> None:
    with pytest.raises(VirtError, match=r"containerd on this node cannot list.*/nowhere/ctr.*launcher_image_ctr"):
        ensure(params(ctr="/nowhere/ctr"), check_mode=False)
    with pytest.raises(VirtError, match=r"cri-o on this node cannot list.*cannot run crictl.*launcher_image_crictl"):
        ensure(params(runtime="cri-o"), check_mode=False)

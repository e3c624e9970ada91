# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which programs can replace a built one, and the errors for others."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from lab.errors import LabError
from lab.programs.modules import KUBERNETES, MODULES
from lab.programs.named import RULES, Named, check_kubernetes, examine, parse_named, stamp_of

WriteProgram = Callable[[str, str], Path]

# The output of released programs: Debian's packages and our own builds.
ANSWERS = {
    "etcd": ("etcd Version: 3.6.4\nGit SHA: Not provided", "3.6.4"),
    "kubelet": ("Kubernetes v1.36.5", "1.36.5"),
    "kubectl": ("Client Version: v1.36.3\nKustomize Version: v5.8.1", "1.36.3"),
    "containerd": ("containerd github.com/containerd/containerd/v2 v2.3.7 ", "2.3.7"),
    "containerd-shim-runc-v2": ("containerd-shim-runc-v2:\n  Version:  2.1.4~ds1\n  Revision: ", "2.1.4"),
    "ctr": ("ctr github.com/containerd/containerd/v2 2.2.0", "2.2.0"),
    "runc": ("runc version 1.1.5+ds1\ncommit: 1.1.5+ds1-1+deb12u1", "1.1.5"),
    "coredns": ("CoreDNS-1.14.7\nlinux/amd64, go1.26.8, ", "1.14.7"),
    "ptp": ("CNI ptp plugin v1.9.1\nCNI protocol versions supported: 0.1.0, 1.1.0", "1.9.1"),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_a_released_program_is_accepted(name: str, a_program: WriteProgram) -> None:
    answer, version = ANSWERS[name]
    path = a_program(name, answer)
    assert examine(name, path) == Named(name=name, path=path, version=version, stamp=stamp_of(name, path))


@pytest.mark.parametrize(
    ("name", "answer", "text"),
    [
        ("kubelet", "Kubernetes v1.35.9", "its version is 1.35.9; the lab needs 1.36.0 or newer, below 2.0.0"),
        ("containerd", "containerd github.com/containerd/containerd 1.7.24 x", "the lab needs 2.1.0 or newer"),
        ("runc", "runc version 1.0.3", "the lab needs 1.1.0 or newer"),
        ("kubelet", "etcd Version: 3.6.4", "not a kubelet of a release; `.*--version` says: etcd Version: 3.6.4"),
        ("portmap", "CNI ptp plugin v1.9.1", "not a portmap of a release"),
        ("etcd", "", "says: nothing"),
    ],
)
def test_a_wrong_version_is_refused(name: str, answer: str, text: str, a_program: WriteProgram) -> None:
    path = a_program(name, answer)
    with pytest.raises(LabError, match=f"^program {name}={re.escape(str(path))}: .*{text}"):
        examine(name, path)


def test_a_path_without_a_program_is_refused_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no program")
    back = "; `lab build --program etcd=` goes back to the lab's own"
    for path, text in (
        (tmp_path / "absent", "No such file or directory"),
        (tmp_path / "text", "not an executable file"),
        (tmp_path, "not an executable file"),
    ):
        with pytest.raises(LabError, match=re.escape(f"program etcd={path}: {text}{back}")):
            examine("etcd", path)


def test_a_program_of_another_architecture_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "etcd"
    path.write_bytes(b"\x7fELF\x00")
    path.chmod(0o755)
    with pytest.raises(LabError, match="Exec format error"):
        examine("etcd", path)


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("kubelet", "write NAME=PATH, such as kubelet=/usr/local/bin/kubelet"),
        ("kublet=/x", "'kublet' cannot be replaced; these can: .*kubelet"),
        ("init=/x", "'init' cannot be replaced"),
    ],
)
def test_a_malformed_or_unknown_name_is_refused(word: str, text: str) -> None:
    with pytest.raises(LabError, match=f"^--program {word}: {text}"):
        parse_named(word)


def test_an_empty_path_means_the_built_program() -> None:
    assert parse_named("kubelet=") == ("kubelet", None)
    assert parse_named("kubelet=bin/x") == ("kubelet", Path("bin/x").absolute())


def test_kubernetes_programs_are_of_one_minor_version() -> None:
    minor = KUBERNETES.rpartition(".")[0]
    same = [_named("kubelet", f"{minor}.9"), _named("etcd", "3.6.4")]
    check_kubernetes(same)
    check_kubernetes([_named(name, "1.99.0") for name in RULES if name.startswith("kube")])
    with pytest.raises(LabError, match=r"program kubelet=/n/kubelet: .* one minor version, not .*1\.99: kubelet"):
        check_kubernetes([_named("kubelet", "1.99.0")])


def test_all_programs_but_our_own_can_be_named() -> None:
    made = {name for module in MODULES for name in module.programs}
    assert made - set(RULES) == {"init", "pause"}
    assert set(RULES) - made == {"runc"}


def test_a_plugin_is_examined_without_cni_variables(a_program: WriteProgram, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CNI_COMMAND", "ADD")
    path = a_program("ptp", "CNI ptp plugin v1.9.1")
    path.write_text(path.read_text().replace("cat", 'test -z "$CNI_COMMAND" && cat'))
    assert examine("ptp", path).version == "1.9.1"
    assert os.environ["CNI_COMMAND"] == "ADD"


def _named(name: str, version: str) -> Named:
    return Named(name=name, path=Path("/n", name), version=version, stamp="s")

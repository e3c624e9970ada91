# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which records of images are removed with a repository."""

from __future__ import annotations

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._node.records import (
    Record,
    digests_of,
    names_of,
    removable,
    repository_of,
)

OURS = "localhost/virtops/virt-launcher"


@pytest.mark.parametrize(
    ("name", "repository"),
    [
        (f"{OURS}:0.1.0", OURS),
        (OURS, OURS),
        (f"{OURS}@sha256:aa", OURS),
        ("registry.example:5000/vm/virt-launcher:1", "registry.example:5000/vm/virt-launcher"),
        ("registry.example:5000/vm/virt-launcher", "registry.example:5000/vm/virt-launcher"),
    ],
)
def test_a_repository_is_a_name_without_tag_and_digest(name: str, repository: str) -> None:
    assert repository_of(name) == repository


def test_a_name_may_have_several_digests() -> None:
    records = [Record("a:1", "sha256:list"), Record("a:1", "sha256:one"), Record("a:2", "sha256:two")]
    assert digests_of("a:1", records) == ["sha256:list", "sha256:one"]
    assert digests_of("b:1", records) == []


RECORDS = [
    Record(f"{OURS}:0.1.0", "sha256:new"),
    Record(f"{OURS}@sha256:new", "sha256:new"),
    Record(f"{OURS}@sha256:old", "sha256:old"),
    Record("sha256:config-of-new", "sha256:new"),
    Record("sha256:config-of-old", "sha256:old"),
    Record("localhost/virtops/virt-launcher-debug:1", "sha256:debug"),
    Record("sha256:config-of-debug", "sha256:debug"),
]


def test_untagged_records_of_its_content_go_with_a_repository() -> None:
    assert names_of(OURS, RECORDS) == [f"{OURS}:0.1.0", f"{OURS}@sha256:new", f"{OURS}@sha256:old"]
    assert removable(OURS, RECORDS) == [*names_of(OURS, RECORDS), "sha256:config-of-new", "sha256:config-of-old"]


def test_images_under_other_names_stay() -> None:
    records = [*RECORDS, Record("registry.example/copy:1", "sha256:old")]
    assert "sha256:config-of-old" not in removable(OURS, records)
    assert "sha256:config-of-new" in removable(OURS, records)


def test_a_missing_repository_removes_nothing() -> None:
    assert removable("localhost/virtops/none", RECORDS) == []

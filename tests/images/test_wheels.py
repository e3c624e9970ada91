# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lock file of the control plane's packages belongs to the pins of pyproject.toml."""

from __future__ import annotations

import re
import tomllib

import pytest

from images import wheels
from images.build import COLLECTION

LOCK = (COLLECTION / "images/control-plane/requirements.txt").read_text()


def normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_pin_of_the_control_plane_is_locked_as_it_is() -> None:
    pins = tomllib.loads((COLLECTION / "pyproject.toml").read_text())["project"]["optional-dependencies"][
        "controlplane"
    ]
    locked = {normalized(name): version for name, version in re.findall(r"^(\S+)==(\S+) ", LOCK, re.MULTILINE)}
    wanted = {normalized(pin.partition("==")[0]): pin.partition("==")[2] for pin in pins}
    assert wanted.items() <= locked.items(), "run: python3 -m images lock"


def test_every_locked_package_has_a_hash() -> None:
    lines = [line for line in LOCK.splitlines() if not line.startswith("#")]
    assert len(lines) > 20
    assert [line for line in lines if not re.fullmatch(r"\S+==\S+ --hash=sha256:[0-9a-f]{64}", line)] == []


def test_a_report_of_pip_becomes_a_sorted_lock_file() -> None:
    def resolved(name: str, digest: str) -> dict[str, object]:
        return {
            "metadata": {"name": name, "version": "1"},
            "download_info": {"archive_info": {"hashes": {"sha256": digest}}},
        }

    text = wheels.render_lock([resolved("yarl", "b" * 64), resolved("PyYAML", "a" * 64)])
    assert text.splitlines()[1:] == [f"PyYAML==1 --hash=sha256:{'a' * 64}", f"yarl==1 --hash=sha256:{'b' * 64}"]


def test_a_python_without_pip_is_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheels.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(wheels.WheelError, match=r"has no pip to fetch.*apt-get install python3-pip"):
        wheels._pip(["install"])

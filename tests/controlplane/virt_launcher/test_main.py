# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from controlplane.api.launch_plan import PLAN_LIMIT_BYTES, Plan, render_plan
from controlplane.virt_launcher import __main__
from controlplane.virt_launcher.__main__ import Settings

PLAN = Plan(domain="uid", title="ns/vm", grace_period_seconds=30, container_disk_limit_bytes=1 << 30)


def test_the_plan_comes_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "plan").write_text(render_plan(PLAN))
    assert Settings.read({}, str(tmp_path / "plan")) == Settings(PLAN, "INFO")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(None, "cannot read the launch plan: .*No such file", id="none"),
        pytest.param(b"", "Expecting value", id="empty"),
        pytest.param(b"{", "Expecting property name", id="cut"),
        pytest.param(b"{}", "not of version 1", id="other version"),
        pytest.param(b"[" * 100_000, "nested too deeply", id="nested"),
        pytest.param(b" " * (PLAN_LIMIT_BYTES + 1), f"more than {PLAN_LIMIT_BYTES} bytes", id="long"),
    ],
)
def test_what_is_no_plan_is_refused(tmp_path: Path, data: bytes | None, message: str) -> None:
    if data is not None:
        (tmp_path / "plan").write_bytes(data)
    with pytest.raises(ValueError, match=message):
        Settings.read({}, str(tmp_path / "plan"))


def test_last_words_are_left_whatever_names_an_image_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file name need not be text: Python has it with a surrogate, which UTF-8 has not."""
    monkeypatch.setattr(__main__, "TERMINATION_LOG", str(tmp_path / "log"))
    assert __main__._end("InvalidDisk: \udcff" + "x" * 10_000, 1) == 1
    said = (tmp_path / "log").read_bytes()
    assert said.startswith(b"InvalidDisk: \\udcffxx")
    assert len(said) == 4096


def test_nothing_slow_is_imported_before_libvirtd_runs() -> None:
    """The image has neither msgspec nor a Kubernetes client; asyncio and libvirt load while libvirtd starts."""
    program = "import sys; sys.path.insert(0, sys.argv[1]); import controlplane.virt_launcher.__main__"
    root = Path(__file__).parents[3]
    # -S: an environment's own start-up files would load modules that the image does not
    command = [sys.executable, "-I", "-S", "-c", f"{program}; print(sorted(sys.modules))", str(root)]
    told = subprocess.run(command, capture_output=True, check=True, text=True)
    loaded = set(ast.literal_eval(told.stdout))
    assert loaded.isdisjoint({"asyncio", "libvirt", "ctypes", "msgspec", "kubernetes", "ipaddress", "xml.etree"})

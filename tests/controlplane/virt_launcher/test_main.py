# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import ast
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane.api.launch_plan import PLAN_LIMIT_BYTES, LaunchPlan, render_plan
from controlplane.virt_launcher import __main__
from controlplane.virt_launcher.__main__ import Settings
from controlplane.virt_launcher.errors import PreparationError

PLAN = LaunchPlan(domain="uid", title="ns/vm", grace_period_seconds=30, container_disk_limit_bytes=1 << 30)


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


@pytest.fixture
def last_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where a launcher leaves them that has a plan and no libvirtd."""
    monkeypatch.setattr(__main__, "TERMINATION_LOG", str(tmp_path / "log"))
    monkeypatch.setattr(__main__, "never_block_on_stderr", lambda: None)
    monkeypatch.setattr(__main__.logs, "configure", lambda *_unused: None)
    monkeypatch.setattr(__main__.libvirtd, "make_home", lambda: None)
    monkeypatch.setattr(Settings, "read", lambda *_unused: Settings(PLAN, "INFO"))
    before, mask = signal.getsignal(signal.SIGTERM), os.umask(0o022)
    yield tmp_path / "log"
    signal.signal(signal.SIGTERM, before)
    os.umask(mask)


@pytest.mark.parametrize(
    ("trouble", "said"),
    [
        pytest.param(
            PreparationError("InvalidDisk", "volume root: is empty"),
            "InvalidDisk: volume root: is empty",
            id="an image",
        ),
        pytest.param(
            OSError(28, "No space left on device"),
            "PreparationFailed: [Errno 28] No space left on device",
            id="the node",
        ),
    ],
)
def test_a_guest_that_cannot_be_prepared_fails_its_pod_and_says_why(
    trouble: Exception, said: str, last_words: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_unused: LaunchPlan) -> None:
        raise trouble

    monkeypatch.setattr(__main__, "prepare", fail)
    assert __main__.main() == 1
    assert last_words.read_text() == said


def test_a_pod_that_is_ended_while_disks_are_made_ends_at_once(
    last_words: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container's first process that takes no SIGTERM hears of none: the kubelet would wait, then kill."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    monkeypatch.setattr(__main__, "prepare", lambda _unused: os.kill(os.getpid(), signal.SIGTERM))

    assert __main__.main() == 1
    assert last_words.read_text() == "the Pod was ended before its guest ran"


def test_what_it_makes_is_for_its_own_group_at_most(last_words: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = last_words.parent / "made"

    def make(_unused: LaunchPlan) -> None:
        made.touch(0o777)
        raise OSError("enough")

    monkeypatch.setattr(__main__, "prepare", make)
    __main__.main()
    assert made.stat().st_mode & 0o027 == 0


def test_a_log_that_nobody_reads_holds_nothing_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pipe to the container runtime is full when that one stands still, and the guest must not."""
    read, write = os.pipe()
    with open(read, "rb"), open(write, "w") as full:
        monkeypatch.setattr(sys, "stderr", full)
        monkeypatch.setattr(logging, "raiseExceptions", True)
        __main__.never_block_on_stderr()
        assert not os.get_blocking(write)
        logging.StreamHandler(full).emit(logging.makeLogRecord({"msg": "x" * (1 << 20)}))
        os.set_blocking(write, True)
        os.dup2(os.open(os.devnull, os.O_WRONLY), write)


def test_nothing_slow_is_imported_before_libvirtd_runs() -> None:
    """The image has neither msgspec nor a Kubernetes client; asyncio and libvirt load while libvirtd starts."""
    program = "import sys; sys.path[:0] = sys.argv[1:]; import controlplane.virt_launcher.__main__"
    root = Path(__file__).parents[3]
    # -S: an environment's own start-up files would load modules that the image does not
    command = [sys.executable, "-I", "-S", "-c", f"{program}; print(sorted(sys.modules))"]
    command += [str(root), str(root / "plugins/module_utils")]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    loaded = set(ast.literal_eval(done.stdout))
    assert loaded.isdisjoint({"asyncio", "libvirt", "ctypes", "msgspec", "kubernetes", "ipaddress", "xml.etree"})

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
def test_an_invalid_plan_is_refused(tmp_path: Path, data: bytes | None, message: str) -> None:
    if data is not None:
        (tmp_path / "plan").write_bytes(data)
    with pytest.raises(ValueError, match=message):
        Settings.read({}, str(tmp_path / "plan"))


def test_the_termination_message_may_contain_any_file_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file name may not be UTF-8. Python represents it with surrogates, which cannot be encoded."""
    monkeypatch.setattr(__main__, "TERMINATION_LOG", str(tmp_path / "log"))
    assert __main__._end("InvalidDisk: \udcff" + "x" * 10_000, 1) == 1
    message = (tmp_path / "log").read_bytes()
    assert message.startswith(b"InvalidDisk: \\udcffxx")
    assert len(message) == 4096


@pytest.fixture
def last_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The termination message of a launcher with a plan and no libvirtd."""
    monkeypatch.setattr(__main__, "TERMINATION_LOG", str(tmp_path / "log"))
    monkeypatch.setattr(__main__, "never_block_on_stderr", lambda: None)
    monkeypatch.setattr(__main__.logs, "configure", lambda *_unused: None)
    monkeypatch.setattr(__main__.libvirtd, "make_home", lambda _unused: None)
    monkeypatch.setattr(__main__.libvirtd, "spawn", lambda: None)
    monkeypatch.setattr(Settings, "read", lambda *_unused: Settings(PLAN, "INFO"))
    before, mask = signal.getsignal(signal.SIGTERM), os.umask(0o022)
    yield tmp_path / "log"
    signal.signal(signal.SIGTERM, before)
    os.umask(mask)


@pytest.mark.parametrize(
    ("error", "message"),
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
def test_a_failed_preparation_fails_the_pod_with_the_reason(
    error: Exception, message: str, last_words: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_unused: LaunchPlan) -> None:
        raise error

    monkeypatch.setattr(__main__, "prepare", fail)
    assert __main__.main() == 1
    assert last_words.read_text() == message


def test_libvirtd_starts_before_the_disks_are_prepared(last_words: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order = list[str]()

    def prepare(_unused: LaunchPlan) -> None:
        order.append("prepare")
        raise PreparationError("InvalidDisk", "enough")

    monkeypatch.setattr(__main__.libvirtd, "make_home", lambda _unused: order.append("settings"))
    monkeypatch.setattr(__main__.libvirtd, "spawn", lambda: order.append("libvirtd"))
    monkeypatch.setattr(__main__, "prepare", prepare)
    __main__.main()
    assert order == ["settings", "libvirtd", "prepare"]


def test_a_pod_terminated_during_the_preparation_ends_at_once(
    last_words: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel drops an unhandled SIGTERM for PID 1, so the kubelet would wait and then kill the Pod."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    monkeypatch.setattr(__main__, "prepare", lambda _unused: os.kill(os.getpid(), signal.SIGTERM))

    assert __main__.main() == 1
    assert last_words.read_text() == "the Pod was ended before its guest ran"


def test_created_files_are_accessible_to_the_own_group_at_most(
    last_words: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    created = last_words.parent / "made"

    def make(_unused: LaunchPlan) -> None:
        created.touch(0o777)
        raise OSError("enough")

    monkeypatch.setattr(__main__, "prepare", make)
    __main__.main()
    assert created.stat().st_mode & 0o027 == 0


def test_a_log_without_a_reader_blocks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hung container runtime stops reading the pipe. The guest must go on."""
    read, write = os.pipe()
    with open(read, "rb"), open(write, "w") as full:
        monkeypatch.setattr(sys, "stderr", full)
        monkeypatch.setattr(logging, "raiseExceptions", True)
        __main__.never_block_on_stderr()
        assert not os.get_blocking(write)
        logging.StreamHandler(full).emit(logging.makeLogRecord({"msg": "x" * (1 << 20)}))
        os.set_blocking(write, True)
        os.dup2(os.open(os.devnull, os.O_WRONLY), write)


def test_no_slow_module_is_imported_before_libvirtd_runs() -> None:
    """The image has no msgspec and no Kubernetes client. asyncio and libvirt are imported while libvirtd starts."""
    program = "import sys; sys.path[:0] = sys.argv[1:]; import controlplane.virt_launcher.__main__"
    root = Path(__file__).parents[3]
    # -S: start-up files of this environment may import modules that the image does not have
    command = [sys.executable, "-I", "-S", "-c", f"{program}; print(sorted(sys.modules))"]
    command += [str(root), str(root / "plugins/module_utils")]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    loaded = set(ast.literal_eval(done.stdout))
    assert loaded.isdisjoint({"asyncio", "libvirt", "ctypes", "msgspec", "kubernetes", "ipaddress", "xml.etree"})

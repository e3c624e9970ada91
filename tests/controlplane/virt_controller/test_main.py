# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Exit codes of virt-controller distinguish an invalid setup from a bug."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from controlplane.kube.credentials import CredentialsError
from controlplane.virt_controller import __main__


def serve_with(error: Exception | None) -> Callable[[object], object]:
    async def serve(_settings: object) -> None:
        if error is not None:
            raise error

    return serve


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POD_NAMESPACE", "kubevirt")
    monkeypatch.setenv("VIRT_LAUNCHER_IMAGE", "launcher:1")
    monkeypatch.setattr(__main__.logs, "configure", lambda *_unused: None)
    monkeypatch.setattr(__main__, "raise_descriptor_limit", lambda: None)


@pytest.mark.parametrize(
    ("error", "code"),
    [(None, 0), (CredentialsError("no token"), 2), (RuntimeError("a bug"), 1)],
    ids=["signal", "invalid setup", "bug"],
)
def test_exit_codes(monkeypatch: pytest.MonkeyPatch, error: Exception | None, code: int) -> None:
    monkeypatch.setattr(__main__, "_serve", serve_with(error))
    assert __main__.main() == code


def test_a_missing_setting_is_one_sentence_on_stderr(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("VIRT_LAUNCHER_IMAGE")
    monkeypatch.setattr(__main__, "_serve", serve_with(RuntimeError("it started")))
    assert __main__.main() == 2
    assert capsys.readouterr().err == "cannot start virt-controller: VIRT_LAUNCHER_IMAGE is not set\n"

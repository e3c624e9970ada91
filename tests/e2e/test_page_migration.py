# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The console page while its machine moves to another node: the console goes on, and has the keyboard."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.e2e.cluster import Cluster
from tests.e2e.console import LIMIT_SECONDS
from tests.e2e.machines import a_vm
from tests.e2e.page import chromium, proxy

pytestmark = pytest.mark.lab

NAME = "traveller"
LIMIT_MS = LIMIT_SECONDS * 1000


def test_a_console_keeps_its_output_and_the_keyboard_when_its_machine_moves(nodes: Cluster, tmp_path: Path) -> None:
    nodes.apply(a_vm(NAME))
    before = nodes.running(NAME)["status"]["nodeName"]
    elsewhere = next(node for node in nodes.nodes if node != before)
    expect.set_options(timeout=LIMIT_MS)
    with (
        proxy(nodes, nodes.kubeconfig, tmp_path / "proxy.socket") as socket,
        chromium([socket]) as (browser, [address]),
    ):
        page = browser.new_page()
        page.set_default_timeout(LIMIT_MS)
        page.goto(f"{address}#/default/{NAME}/console")
        rows = page.locator(".xterm-rows")
        expect(rows).to_contain_text("login:")
        page.get_by_role("button", name="Migrate", exact=True).click()
        expect(page.locator(".xterm-helper-textarea")).to_be_focused()
        expect(rows).to_contain_text(f"-- moved to {elsewhere} --")
        expect(rows).to_contain_text("login:")  # of before
        page.keyboard.type("root\n")
        expect(rows).to_contain_text("Password:")
        assert len(nodes.list("vmim", "-n", "default", "-l", f"kubevirt.io/vmi-name={NAME}")) == 1

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The console page in a browser, through `kubectl proxy`, on a real cluster.

UPDATE_PICTURES=1 writes the pictures of the guide.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.e2e.cluster import Cluster
from tests.e2e.console import LIMIT_SECONDS
from tests.e2e.machines import a_vm, with_domain, with_grace
from tests.e2e.page import LIT, chromium, picture, proxy, user

pytestmark = pytest.mark.lab

NAME, REVOKED, HUGE = "web", "db", "report"
LOGIN_ON_SCREEN = "#!/bin/sh\ngetty -L 38400 tty1 linux &\n"
LIMIT_MS = LIMIT_SECONDS * 1000


@dataclass(frozen=True)
class Pages:
    """The page, as several users open it."""

    cluster: Cluster
    browser: Browser
    admin: str
    viewer: str

    def open(self, where: str, address: str | None = None) -> Page:
        """Open a view. where: what follows `#` in its address."""
        context = self.browser.new_context(viewport={"width": 1280, "height": 800}, color_scheme="dark")
        page = context.new_page()
        page.set_default_timeout(LIMIT_MS)
        page.goto(f"{address or self.admin}#{where}")
        return page


@pytest.fixture(scope="module")
def revoked(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Pages, Page]]:
    """The pages, and one whose user has a screen open and has lost the right to it.

    The server reviews rights each minute. The other tests run meanwhile.
    """
    expect.set_options(timeout=LIMIT_MS)
    folder = tmp_path_factory.mktemp("users")
    cluster.apply(with_grace(a_vm(NAME, user_data=LOGIN_ON_SCREEN), 0), with_grace(a_vm(REVOKED), 0))
    cluster.apply(with_domain(a_vm(HUGE), memory={"guest": "4Ti"}))
    with ExitStack() as stack:
        users = {
            "admin": cluster.kubeconfig,
            "viewer": stack.enter_context(user(cluster, "viewer", "view", folder)),
            "former": stack.enter_context(user(cluster, "former", "edit", folder)),
        }
        sockets = [stack.enter_context(proxy(cluster, users[name], folder / f"{name}.socket")) for name in users]
        browser, (admin, viewer, former) = stack.enter_context(chromium(sockets))
        pages = Pages(cluster, browser, admin, viewer)
        cluster.running(NAME)
        cluster.running(REVOKED)
        page = pages.open(f"/default/{REVOKED}/screen", former)
        expect(device(page)).to_have_attribute("data-state", "open")
        cluster.kubectl("delete", "rolebinding", "former")
        yield pages, page


@pytest.fixture(scope="module")
def pages(revoked: tuple[Pages, Page]) -> Pages:
    return revoked[0]


@pytest.fixture(autouse=True)
def closed(revoked: tuple[Pages, Page]) -> Iterator[None]:
    """Close what a test has opened, and with it its sessions."""
    yield
    pages, kept = revoked
    for context in pages.browser.contexts:
        if context is not kept.context:
            context.close()


def device(page: Page) -> Locator:
    """The console or screen that is shown."""
    return page.locator(".panel:not([hidden]) .device")


def saved(page: Page, button: str) -> bytes:
    """Click a button that saves a file. Return what the file has."""
    with page.expect_download() as download:
        page.get_by_role("button", name=button).click()
    return Path(download.value.path()).read_bytes()


def test_the_list_shows_machines_and_follows_them(pages: Pages) -> None:
    page = pages.open("/default")
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name=NAME, exact=True))
    expect(row).to_contain_text("Running")
    expect(page.get_by_role("row").filter(has_text=HUGE)).to_contain_text("Waits for a node")
    picture(page, "list")
    page.get_by_label("Filter").fill("no such machine")
    expect(page.get_by_text("No machine matches the filter")).to_be_visible()
    page.get_by_label("Filter").fill("")
    pages.cluster.apply(a_vm("late", runStrategy="Halted"))
    expect(page.get_by_role("row").filter(has_text="late")).to_contain_text("Stopped")
    pages.cluster.kubectl("delete", "vm", "late")
    expect(page.get_by_role("row").filter(has_text="late")).to_have_count(0)
    row.get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(NAME)


def test_a_machine_says_why_it_waits(pages: Pages) -> None:
    page = pages.open(f"/default/{HUGE}")
    why = page.locator(".why")
    expect(why).to_contain_text("Waits for a node")
    expect(why).to_contain_text("too little free memory")
    expect(page.locator(".timeline")).to_contain_text("FailedScheduling")
    expect(page.get_by_role("button", name="Pause", exact=True)).to_have_attribute("title", "Its guest does not run.")
    picture(page, "why")


def test_a_user_logs_in_on_the_console_and_another_takes_it_over(pages: Pages) -> None:
    page = pages.open(f"/default/{NAME}/console")
    rows = page.locator(".xterm-rows")
    expect(rows).to_contain_text("virtops-guest")
    assert b"login:" in saved(page, "Save the output as a text file")  # of the boot: the page opened later
    page.locator(".xterm-screen").click()
    page.keyboard.press("Enter")
    expect(rows).to_contain_text("login:")
    page.keyboard.type("root\n")
    expect(rows).to_contain_text("Password:")
    page.keyboard.type("virtops\n")
    expect(rows).to_contain_text("# ")
    page.keyboard.type("echo $((1234 * 5678))\n")
    expect(rows).to_contain_text("7006652")
    picture(page, "console")
    page.get_by_label("Search the output").fill("virtops")
    expect(page.locator(".hits")).to_have_text(re.compile(r"^\d+ of \d+$"))
    page.get_by_label("Search the output").fill("")
    expect(page.locator(".hits")).to_be_empty()

    other = pages.open(f"/default/{NAME}/console")
    expect(device(other)).to_have_attribute("data-state", "open")
    expect(device(page)).to_contain_text("Taken over by lab-admin.")
    page.get_by_role("button", name="Take it back").click()
    expect(device(page)).to_have_attribute("data-state", "open")
    expect(device(other)).to_contain_text("Taken over by lab-admin.")


def test_keys_appear_on_the_screen(pages: Pages) -> None:
    page = pages.open(f"/default/{NAME}/screen")
    expect(device(page)).to_have_attribute("data-state", "open")
    page.wait_for_function(f"() => document.querySelector('.screen canvas')?.width > 0 && ({LIT})() > 50")
    before = page.evaluate(LIT)
    page.keyboard.type("M" * 20)
    page.wait_for_function(f"(before) => ({LIT})() > before + 300", arg=before)  # a cursor that blinks is less
    picture(page, "screen")
    assert saved(page, "Save the screen as a PNG file").startswith(b"\x89PNG")


def test_buttons_stop_and_start_a_machine(pages: Pages) -> None:
    page = pages.open(f"/default/{NAME}")
    page.get_by_role("button", name="Stop", exact=True).click()
    question = page.get_by_role("dialog")
    expect(question).to_contain_text("It stays off until somebody starts it.")
    question.get_by_role("button", name="Stop").click()
    expect(page.locator(".why")).to_contain_text("Its run strategy is Halted")
    asked_for = re.compile(r"Not ready|VMI (is|was) deleted")
    expect(page.locator("li[data-tone=bad]", has_text=asked_for)).to_have_count(0)
    page.get_by_role("tab", name="Console").click()
    expect(device(page)).to_contain_text("It is stopped.")
    device(page).get_by_role("button", name="Start").click()
    expect(page.locator(".head .status")).to_have_text("Running")
    expect(page.locator(".xterm-rows")).to_contain_text("login:")  # opened before the guest has booted


def test_a_machine_that_does_not_exist_has_no_facts_and_no_console(pages: Pages) -> None:
    page = pages.open("/default/nobody")
    expect(page.locator(".why")).to_contain_text("Does not exist")
    expect(page.locator(".overview h2")).to_have_count(3)
    expect(page.locator(".overview h2:visible")).to_have_count(0)
    page.get_by_role("tab", name="Screen").click()
    expect(device(page)).to_contain_text("This machine does not exist.")


def test_a_viewer_reads_what_is_missing_for_more(pages: Pages) -> None:
    page = pages.open("/-", pages.viewer)
    expect(page.get_by_text("You may not list the machines of all namespaces")).to_be_visible()
    page.get_by_label("Namespace").fill("default")
    page.get_by_label("Namespace").press("Enter")
    page.get_by_role("link", name=NAME, exact=True).click()
    stop = page.get_by_role("button", name="Stop", exact=True)
    expect(stop).to_have_attribute("aria-disabled", "true")
    expect(stop).to_have_attribute(
        "title",
        "You may not stop it: this needs the right to update virtualmachines/stop in this namespace, "
        "which the role edit has.",
    )
    page.get_by_role("tab", name="Console").click()
    expect(device(page)).to_contain_text("You may not open the console")


def test_a_right_that_is_taken_away_ends_a_session_with_words(revoked: tuple[Pages, Page]) -> None:
    expect(device(revoked[1])).to_contain_text("your right was taken away", timeout=75_000)


def test_a_screenshot_needs_a_right_that_the_role_edit_lacks(revoked: tuple[Pages, Page]) -> None:
    screenshot = revoked[1].get_by_role("button", name="Save the screen as a PNG file")
    expect(screenshot).to_have_attribute("aria-disabled", "true")
    expect(screenshot).to_have_attribute("title", re.compile("which the role admin has"))

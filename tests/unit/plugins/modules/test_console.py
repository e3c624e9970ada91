# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""kubevirt_console as Ansible runs it: what was sent in secret is not shown, however the guest repeats it."""

from __future__ import annotations

import pytest
from aiohttp import WSMsgType, web
from ansible_collections.virtops.kubevirt.tests.unit.plugins.modules.test_modules import run

from tests.support import http_server

PATH = "/apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachineinstances/web/console"
SECRET = "cat > key <<EOF\nMIIEvQIBADANBg\nkqhkiG9w0BAQEF\nEOF"


async def shell(request: web.Request) -> web.WebSocketResponse:
    """Echo each line, and show a prompt for the next."""
    stream = web.WebSocketResponse(protocols=("plain.kubevirt.io",))
    await stream.prepare(request)
    async for message in stream:
        if message.type is WSMsgType.BINARY:
            await stream.send_bytes(b"# " + message.data.replace(b"\n", b"\r\n> ") + b"\r\ndone\r\n")
    return stream


@pytest.mark.parametrize("pattern", ["(?s).*done", "never"])
def test_no_line_of_a_secret_is_shown_when_the_guest_echoes_it_between_prompts(pattern: str) -> None:
    with http_server.serving({PATH: shell}) as url:
        step = {"send_secret": SECRET, "expect": pattern, "timeout": 2}
        result, output = run("kubevirt_console", host=url, name="web", namespace="default", steps=[step])
    assert "done" in result["transcript"]
    assert not [line for line in SECRET.splitlines() if len(line) > 3 and line in output]

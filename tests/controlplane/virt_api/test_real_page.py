# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The console page through a real API server and `kubectl proxy`, and which web pages may open streams there."""

from __future__ import annotations

import base64
import json
import ssl
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import Message
from urllib.error import HTTPError
from urllib.request import HTTPSHandler, Request, build_opener

import pytest
import websocket
import yaml
from kubevirt_api.names import CONSOLE_ORIGINS

from controlplane.virt_api.http.console_page import CONTENT_SECURITY_POLICY, TYPES, read_page
from tests.controlplane.policies.cluster import RBAC, wait
from tests.controlplane.policies.replay import Replay
from tests.controlplane.virt_api.test_manifests import render
from tests.controlplane.virt_api.test_real_api import GROUP, INSTALL_NAMESPACE, Installed, installing

pytestmark = pytest.mark.component

PAGE = f"{GROUP}/console/"
CONSOLE = f"{GROUP}/namespaces/default/virtualmachineinstances/missing/console"
NOBODY = "somebody-without-rights"


@dataclass
class Response:
    status: int
    headers: Message
    body: bytes


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    with installing("console-page", tmp_path_factory.mktemp("page"), controllers=False) as api:
        replay = Replay(api.lab)
        for body in render("rbac-users.yaml.j2"):
            replay.admin("POST", f"{RBAC}/{body['kind'].lower()}s", body)
        replay.close()
        yield api


@pytest.fixture(scope="module")
def proxy(installed: Installed) -> Iterator[str]:
    """The address of a `kubectl proxy` of a user without any rights."""
    command = [installed.kubectl, "--kubeconfig", installed.kubeconfig, "proxy", "--port=0", f"--as={NOBODY}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield "http://" + process.stdout.readline().strip().rpartition(" ")[2]
        process.terminate()


def fetch(url: str, method: str = "GET", context: ssl.SSLContext | None = None, **headers: str) -> Response:
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    opener = build_opener(HTTPSHandler(context=context))
    try:
        with opener.open(Request(url, headers=fields, method=method), timeout=60) as response:
            return Response(response.status, response.headers, response.read())
    except HTTPError as error:
        return Response(error.code, error.headers, error.read())


@pytest.fixture(scope="module", autouse=True)
def is_allowed(proxy: str) -> None:
    """Wait until the API server knows the roles."""
    wait("the page is allowed", lambda: fetch(proxy + PAGE).status != 403)


def test_an_authenticated_user_without_rights_gets_every_file(proxy: str) -> None:
    for path, file in read_page().files.items():
        response = fetch(f"{proxy}{PAGE}{path}")
        assert (response.status, response.headers.get_content_type()) == (200, file.content_type), path
        assert response.headers["Content-Security-Policy"] == CONTENT_SECURITY_POLICY, path
        if file.content_type != TYPES[".html"]:  # which the API server writes anew
            assert response.body == file.body, path
    assert fetch(f"{proxy}/apis/kubevirt.io/v1/virtualmachines").status == 403


def test_the_address_without_its_last_slash_leads_to_the_page(proxy: str) -> None:
    response = fetch(proxy + PAGE.removesuffix("/"))
    assert (response.status, b'content="0; url=console/"' in response.body) == (200, True)


@pytest.mark.parametrize("path", ["", "index.html", "xterm/package/lib/xterm.mjs"])
def test_a_browser_validates_what_it_keeps(proxy: str, path: str) -> None:
    head = fetch(proxy + PAGE + path, "HEAD", Accept_Encoding="gzip")
    assert (head.status, head.body) == (200, b"")
    caching = {word.strip() for value in head.headers.get_all("Cache-Control") or [] for word in value.split(",")}
    assert "no-cache" in caching
    assert "no-store" not in caching
    assert fetch(proxy + PAGE + path, If_None_Match=head.headers["ETag"]).status == 304
    assert fetch(proxy + PAGE + path, Accept_Encoding="gzip").status == 200


def test_a_file_that_the_page_does_not_have_is_unknown(proxy: str) -> None:
    response = fetch(f"{proxy}{PAGE}missing.js")
    assert (response.status, json.loads(response.body)["message"]) == (404, "the console page has no file 'missing.js'")


def test_who_is_not_authenticated_gets_nothing(installed: Installed) -> None:
    addresses, certificates = installed.lab.describe().addresses, installed.lab.state.certificates
    context = ssl.create_default_context(cafile=str(certificates / "ca.crt"))
    for path in ("", "index.html", "xterm/package/lib/xterm.mjs"):
        assert fetch(f"{addresses.server}{PAGE}{path}", context=context).status in {401, 403}


def test_pages_of_listed_origins_may_open_streams(installed: Installed) -> None:
    """No machine exists: who may ask for its stream gets 404."""
    assert open_console(installed)[0] == 404
    assert open_console(installed, origin="http://127.0.0.1:8001")[0] == 404
    server = installed.lab.describe().addresses.server  # as a browser that has loaded the page from there
    code, words = open_console(installed, origin=server)
    assert code == 403
    assert f"a web page of {server} may not open it" in words
    assert open_console(installed, origin=server, site="same-origin")[0] == 404

    kubevirt = {
        "apiVersion": "kubevirt.io/v1",
        "kind": "KubeVirt",
        "metadata": {"name": "kubevirt", "annotations": {CONSOLE_ORIGINS: server}},
    }
    replay = Replay(installed.lab)
    replay.admin("POST", f"/apis/kubevirt.io/v1/namespaces/{INSTALL_NAMESPACE}/kubevirts", kubevirt)
    replay.close()

    wait("the origin is allowed", lambda: open_console(installed, origin=server)[0] == 404)
    assert open_console(installed, origin="https://evil.example")[0] == 403


def open_console(installed: Installed, origin: str | None = None, site: str = "") -> tuple[int, str]:
    """Open a console as the lab's administrator, as a browser does. Return the code and the message of the refusal."""
    config = yaml.safe_load(installed.kubeconfig.read_text())
    cluster, certificates = config["clusters"][0]["cluster"], installed.lab.state.certificates
    context = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
    context.load_cert_chain(certificates / "admin.crt", certificates / "admin.key")
    try:
        websocket.create_connection(
            cluster["server"].replace("https:", "wss:") + CONSOLE,
            timeout=60,
            subprotocols=["plain.kubevirt.io"],
            sslopt={"context": context},
            origin=origin,
            suppress_origin=origin is None,
            header=[f"Sec-Fetch-Site: {site}"] if site else [],
        ).close()
    except websocket.WebSocketBadStatusException as error:
        return error.status_code, json.loads(error.resp_body or b"{}").get("message", "")
    return 101, ""

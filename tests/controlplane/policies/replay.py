# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests to a real API server as any user, by impersonation that includes the node of a token."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from kubevirt_api.names import HANDLER_ACCOUNT

from controlplane.virt_handler.__main__ import COMPONENT
from lab import Lab

Json = dict[str, Any]
Facts = Mapping[str, Json]
"""The objects that rows refer to, as the API server has them, by path."""

INSTALL_NAMESPACE = "virt"
"""The namespace of the control plane."""
PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{INSTALL_NAMESPACE}/leases"
VMIS = "/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances"

_TYPES = {
    "POST": "application/json",
    "PUT": "application/json",
    "DELETE": "application/json",
    "PATCH": "application/merge-patch+json",
    "STRATEGIC": "application/strategic-merge-patch+json",
    "APPLY": "application/apply-patch+yaml",
    "JSON": "application/json-patch+json",
}
_METHODS = {"STRATEGIC": "PATCH", "APPLY": "PATCH", "JSON": "PATCH"}


@dataclass(frozen=True)
class Who:
    """A user or service account that sends requests."""

    user: str
    node: str = ""
    """The node that the token names."""
    groups: tuple[str, ...] = ()

    @property
    def unbound(self) -> Who:
        """The same account with all RBAC rights, so that only the policies can refuse."""
        return Who(self.user, self.node, ("system:masters", "system:authenticated"))

    @property
    def manager(self) -> str:
        """The field manager of the account's program; empty if it sets none."""
        return COMPONENT if self.user.endswith(f":{HANDLER_ACCOUNT}") else ""

    def headers(self) -> list[tuple[str, str]]:
        headers = [("Impersonate-User", self.user), *(("Impersonate-Group", group) for group in self.groups)]
        key = quote("authentication.kubernetes.io/node-name", safe="")
        return [*headers, (f"Impersonate-Extra-{key}", self.node)] if self.node else headers


@dataclass(frozen=True)
class Request:
    """One request. The body may depend on existing objects."""

    who: Who
    verb: str
    path: str
    body: Json | list[Json] | Callable[[Facts], Json] | None = None
    manager: str | None = None
    """Overrides the field manager of the sender; empty: none."""

    def query(self, *, for_real: bool) -> str:
        """Return the query string. A dry run always has one."""
        manager = self.who.manager if self.manager is None else self.manager
        parameters = {} if for_real else {"dryRun": "All"}
        parameters |= {"fieldManager": manager} if manager and self.verb != "DELETE" else {}
        parameters |= {"force": "true"} if self.verb == "APPLY" else {}
        return f"?{urlencode(parameters)}" if parameters else ""


@dataclass(frozen=True)
class Answer:
    status: int
    body: Json

    @property
    def is_taken(self) -> bool:
        return 200 <= self.status < 300

    @property
    def message(self) -> str:
        return str(self.body.get("message", ""))


class Replay:
    """A connection of the lab's administrator."""

    def __init__(self, lab: Lab) -> None:
        parts = urlsplit(lab.describe().addresses.server)
        certificates = lab.state.certificates
        self._tls = ssl.create_default_context(cafile=str(certificates / "ca.crt"))
        self._anonymous = ssl.create_default_context(cafile=str(certificates / "ca.crt"))
        self._tls.load_cert_chain(certificates / "admin.crt", certificates / "admin.key")
        self._host, self._port = parts.hostname or "", parts.port or 443
        self._connection = http.client.HTTPSConnection(self._host, self._port, timeout=300, context=self._tls)

    def __call__(self, request: Request, facts: Facts | None = None, *, for_real: bool = False) -> Answer:
        """Send the request as its sender. Without `for_real` it is a dry run."""
        body = request.body(facts or {}) if callable(request.body) else request.body
        path = request.path + request.query(for_real=for_real)
        if request.verb == "DELETE" and isinstance(body, dict) and not for_real:
            body = {**body, "dryRun": ["All"]}  # The options in a body override the query.
        return self._send(self._connection, request.verb, path, body, request.who.headers())

    def admin(self, verb: str, path: str, body: Json | None = None) -> Json:
        """Send a request as administrator, assert its success and return the object."""
        response = self._send(self._connection, verb, path, body, [])
        assert response.is_taken, f"{verb} {path}: {response.message}"
        return response.body

    def exists(self, path: str) -> bool:
        return self._send(self._connection, "GET", path, None, []).status != 404

    def with_token(self, token: str, request: Request) -> Answer:
        """Send a request with a token and with the field manager of its sender."""
        assert isinstance(request.body, dict)
        connection = http.client.HTTPSConnection(self._host, self._port, timeout=300, context=self._anonymous)
        try:
            path, proof = request.path + request.query(for_real=False), [("Authorization", f"Bearer {token}")]
            return self._send(connection, request.verb, path, request.body, proof)
        finally:
            connection.close()

    def close(self) -> None:
        self._connection.close()

    def _send(
        self,
        connection: http.client.HTTPSConnection,
        verb: str,
        path: str,
        body: Json | list[Json] | None,
        headers: list[tuple[str, str]],
    ) -> Answer:
        text = "" if body is None else json.dumps(body)
        connection.putrequest(_METHODS.get(verb, verb), path)
        for name, value in (*headers, ("Content-Length", str(len(text.encode())))):
            connection.putheader(name, value)
        if body is not None:
            connection.putheader("Content-Type", _TYPES[verb])
        connection.endheaders(text.encode())
        response = connection.getresponse()
        content = response.read()
        if response.getheader("Content-Type", "").startswith("text/plain"):
            return Answer(response.status, {"message": content.decode()})
        return Answer(response.status, json.loads(content or b"{}"))

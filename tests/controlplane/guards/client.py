# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The way to the API server: preconditions arrive, errors mean what they say, paths are what they seem."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_CLIENT = "controlplane/kube/client.py"
_ERRORS = "controlplane/kube/errors.py"
_ACCESS = "controlplane/kube/access.py"
_BY_CLIENT = ("tests/controlplane/kube/test_client.py",)
_BY_ACCESS = ("tests/controlplane/kube/test_access.py",)

_TRANSPORT = "controlplane/kube/transport.py"

GUARDS: tuple[Guard, ...] = (
    Guard(
        file="controlplane/kube/events.py",
        line='    identity = "\\0".join((meta.get("uid", ""), component,',
        without='    identity = "\\0".join((component,',
        because="Of an object nothing would be told that was told of a former one of its name.",
        tests=("tests/controlplane/kube/test_events.py",),
    ),
    Guard(
        file="controlplane/kube/errors.py",
        line="    if retry_after and retry_after.isdigit():",
        without="    if retry_after:",
        because="A proxy that names a date would end the watch that it answers, and with it the process.",
        tests=("tests/controlplane/kube/test_client.py",),
    ),
    Guard(
        file=_CLIENT,
        line='        metadata["resourceVersion"] = resource_version',
        without="        pass",
        because="A precondition that is not sent is none.",
        tests=_BY_CLIENT,
    ),
    Guard(
        file=_CLIENT,
        line='        metadata["uid"] = uid\n',
        without="        pass\n",
        because="A precondition that is not sent is none.",
        tests=_BY_CLIENT,
    ),
    Guard(
        file=_CLIENT,
        line='{"uid": uid} | ({"resourceVersion": resource_version} if resource_version else {})',
        without='{"uid": uid}',
        because="A delete decided on an older state must not meet a newer one.",
        tests=_BY_CLIENT,
    ),
    Guard(
        file=_CLIENT,
        line='{"uid": uid} | ({"resourceVersion": resource_version} if resource_version else {})',
        without='({"resourceVersion": resource_version} if resource_version else {})',
        because="A delete means the object that was seen, not whoever has its name.",
        tests=_BY_CLIENT,
    ),
    Guard(
        file=_CLIENT,
        line='            if uid is not None and causes_field(error, "metadata.uid"):',
        without="            if False:",
        because="Another object of the name is a conflict, not a refused content to tell the user about.",
        tests=_BY_CLIENT,
    ),
    Guard(
        file=_CLIENT,
        line=(
            '        """Send a JSON merge patch; Conflict when the object is another version or another '
            'object by now."""\n'
            "        self.guard()\n"
        ),
        without="",
        because="Who leads no more must not write.",
        tests=_BY_CLIENT,
    ),
    Guard(
        file=_CLIENT,
        line=(
            '        """Delete exactly the object with this UID; NotFound when it is gone, Conflict when '
            'it is another."""\n'
            "        self.guard()\n"
        ),
        without="",
        because="Who leads no more must not delete.",
        tests=_BY_CLIENT,
    ),
    Guard(
        file=_CLIENT,
        line="dry_run: bool = False) -> Json:\n        self.guard()\n",
        without="dry_run: bool = False) -> Json:\n",
        because="Who leads no more must not create.",
        tests=_BY_CLIENT,
    ),
    Guard(
        file=_CLIENT,
        line='        can be limited to it.\n        """\n        self.guard()\n',
        without='        can be limited to it.\n        """\n',
        because="Who leads no more must not make a Secret.",
        tests=_BY_CLIENT,
    ),
    Guard(
        file=_CLIENT,
        line="    if resource.namespaced and not key.namespace:",
        without="    if False:",
        because="A key without a namespace would address a collection.",
        tests=_BY_CLIENT,
    ),
    Guard(
        file=_CLIENT,
        line='    if text in {"", ".", ".."}:',
        without="    if False:",
        because="A name must not address another path.",
        tests=_BY_CLIENT,
    ),
    Guard(
        file=_CLIENT,
        line='    return quote(text, safe="")',
        without="    return text",
        because="A name must not address another path.",
        tests=_BY_CLIENT,
    ),
    Guard(
        file=_CLIENT,
        line='            "allowWatchBookmarks": "true",\n',
        without="",
        because="Without bookmarks a quiet watch does not know how far it has read.",
        tests=_BY_CLIENT,
    ),
    Guard(
        file=_CLIENT,
        line='({"dryRun": "All"} if dry_run else {})',
        without="{}",
        because="A dry run must not write.",
        tests=_BY_CLIENT,
    ),
    Guard(
        file=_ERRORS,
        line='    if kind is NotFound and status.kind != "Status":',
        without="    if False:",
        because="A proxy's 404 is not the API server's word that an object is gone.",
        tests=_BY_CLIENT,
    ),
    Guard(
        file=_ERRORS,
        line="    kind = _BY_CODE.get(code, Unavailable)",
        without="    kind = _BY_CODE.get(code, Invalid)",
        because="From an answer that nobody knows, nothing may be concluded.",
        tests=_BY_CLIENT,
    ),
    Guard(
        file=_ERRORS,
        line='    if kind is Conflict and status.reason == "AlreadyExists":',
        without="    if False:",
        because="A name that is taken is something else than a precondition that failed.",
        tests=_BY_CLIENT,
    ),
    Guard(
        file=_ERRORS,
        line="status.message[:MAX_MESSAGE_CHARACTERS]",
        without="status.message",
        because="What a server echoes must not flood logs and conditions.",
        tests=_BY_CLIENT,
    ),
    Guard(
        file=_ERRORS,
        line="    410: Gone,\n",
        without="",
        because="A position that is too old must end in a new list.",
        tests=_BY_CLIENT,
    ),
    Guard(
        file=_ERRORS,
        line="    429: Throttled,\n",
        without="",
        because="To be turned away is to be told so, with the time to wait.",
        tests=_BY_CLIENT,
    ),
    Guard(
        file=_ACCESS,
        line='status.get("allowed") is True and status.get("denied") is not True',
        without='status.get("allowed") is True',
        because="What one authorizer denies, no other may allow.",
        tests=_BY_ACCESS,
    ),
    Guard(
        file=_ACCESS,
        line='status.get("allowed") is True and status.get("denied") is not True',
        without='bool(status.get("allowed")) and status.get("denied") is not True',
        because="Only a plain yes is a yes.",
        tests=_BY_ACCESS,
    ),
    Guard(
        file=_ACCESS,
        line='        raise Unavailable("cannot review',
        without='        return Decision(allowed=True)\n        raise Unavailable("cannot review',
        because="An answer without a decision is none.",
        tests=_BY_ACCESS,
    ),
    Guard(
        file=_TRANSPORT,
        line="allow_redirects=False,",
        without="allow_redirects=True,",
        because="Whoever could answer once would have our token sent wherever he says.",
        tests=_BY_CLIENT,
    ),
    Guard(
        file=_TRANSPORT,
        line="            self.credentials.reload_trust()\n",
        without="",
        because="After the cluster's authority was exchanged no process would find its way back by itself.",
        tests=("tests/controlplane/kube/test_transport.py",),
    ),
)

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of modules: what would be sent as something else, carried out otherwise than it reads, or shown."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_UNITS = "tests/unit/plugins/module_utils"
_REDACT = "plugins/module_utils/_client/redact.py"
_BY_REDACT = (f"{_UNITS}/_client/test_redact.py",)
_BY_ARGUMENTS = (f"{_UNITS}/_client/test_redact_arguments.py",)
_TRANSPORT = "plugins/module_utils/_client/transport.py"
_BY_DEADLINE = (f"{_UNITS}/_client/test_deadline.py",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file="plugins/module_utils/_client/timely.py",
        line="            if left <= 0:\n",
        without="            if False:\n",
        because="An answer that comes byte by byte would be read for ever, and the task with it.",
        tests=_BY_DEADLINE,
    ),
    Guard(
        file="plugins/module_utils/_client/api.py",
        line="                _expect_likeness(",
        without="                (lambda *_unused: None)(",
        because="A list of what is no object would end in a traceback.",
        tests=(f"{_UNITS}/_client/test_objects.py",),
    ),
    Guard(
        file="plugins/module_utils/_client/api.py",
        line="            if token and token == before:",
        without="            if False:",
        because="A list that names itself as its next page would be read until memory is full.",
        tests=(f"{_UNITS}/_client/test_objects.py",),
        may_hang=True,
    ),
    Guard(
        file="plugins/module_utils/_client/waiter.py",
        line="is_well = is_last or self._version is not None",
        without="is_well = True",
        because="A collection without a version would be read as often as the server can bear.",
        tests=(f"{_UNITS}/_client/test_objects.py",),
        may_hang=True,
    ),
    Guard(
        file="plugins/module_utils/_vm/whole.py",
        line=" and not ownership.is_unrecorded(live, FIELD_MANAGER, clean)",
        without="",
        because="What was written beside a null would never be taken back where a controller acts at once, as ours.",
        tests=(f"{_UNITS}/_vm/test_nothing_is_lost.py",),
    ),
    Guard(
        file="plugins/module_utils/_vm/writing.py",
        line=" or not ownership.is_unrecorded(written, FIELD_MANAGER, write.then.body)",
        without=" or True",
        because="A machine that was replaced would keep its fields for ever where a controller wrote at once.",
        tests=(f"{_UNITS}/_vm/test_nothing_is_lost.py",),
    ),
    Guard(
        file="plugins/module_utils/_client/redact.py",
        line="    if isinstance(value, (int, float)) and not isinstance(value, bool):",
        without="    if False:",
        because="A password of digits, which YAML reads as a number, would be shown where a text is asked for.",
        tests=("tests/unit/plugins/module_utils/_client/test_redact_arguments.py",),
    ),
    Guard(
        file=_REDACT,
        line="yield from _beside(inner, harmless[name]) if name in harmless else _texts(inner)",
        without="yield from _beside(inner, harmless[name]) if name in harmless else ()",
        because="A token at a misspelt name of an inline kubeconfig would be shown in what the task says.",
        tests=_BY_ARGUMENTS,
    ),
    Guard(
        file="plugins/module_utils/_client/kubeconfig.py",
        line="        kubeconfig_shape.check(config, where, is_templated=True)\n    elif isinstance(source, str):\n",
        without="    elif isinstance(source, str):\n",
        because="What stands in a kubeconfig of a variable would be guessed, and what is none ends in a traceback.",
        tests=("tests/unit/plugins/module_utils/_client/test_kubeconfig_shape.py",),
    ),
    Guard(
        file="plugins/module_utils/_client/kubeconfig_shape.py",
        line="    return WORDS[value.lower()] if isinstance(value, str) else bool(value)\n",
        without="    return bool(value)\n",
        because='A check of the server that is not to be skipped ("false") would be skipped.',
        tests=("tests/unit/plugins/module_utils/_client/test_kubeconfig_shape.py",),
    ),
    Guard(
        file="plugins/module_utils/_client/shapes.py",
        line="    if kind in _TEXTS and isinstance(value, (Mapping, list)):",
        without="    if False:",
        because="A guest would be given what Python calls its user data, and set up by none of it.",
        tests=(f"{_UNITS}/_client/test_shapes.py",),
    ),
    Guard(
        file="plugins/module_utils/_vm/request.py",
        line="        if states and states.isdisjoint(use.states):",
        without="        if False:",
        because="A guest that was to be given time would be ended with its machine, without a word.",
        tests=(f"{_UNITS}/_vm/test_request.py",),
    ),
    Guard(
        file="plugins/module_utils/_service/exposure.py",
        line="    if empty:  # with the name alone, any Service is deleted",
        without="    if False:",
        because="A variable that is empty would leave the name alone, which deletes whatever has it.",
        tests=(f"{_UNITS}/_service/test_expose.py",),
    ),
    Guard(
        file=_REDACT,
        line="        for _user, password in _PASSWORD.findall(value):",
        without="        for _user, password in ():",
        because="Ansible would print the password in a disk's address with the task's arguments.",
        tests=_BY_REDACT,
    ),
    Guard(
        file=_REDACT,
        line="        return _PASSWORD.sub(lambda found: found[1] + _mark(found[2], old), value)",
        without="        return value",
        because="What the server has would be shown with the password in an address.",
        tests=_BY_REDACT,
    ),
    Guard(
        file=_REDACT,
        line='        "kubevirt.io/ignitiondata",',
        without="",
        because="Ignition is user data: passwords and keys of the guest.",
        tests=_BY_REDACT,
    ),
    Guard(
        file=_REDACT,
        line='                yield from _environment(inner.get("env"))\n',
        without="",
        because="A credential that is written as a mapping would be shown with what is refused for it.",
        tests=_BY_REDACT,
    ),
    Guard(
        file=_REDACT,
        line='        yield from _misplaced(option["options"], value) if option.get("options") else ()\n    else:\n',
        without="        return\n    else:\n",
        because="Secrets of one of many machines would be shown where one of the task's only is not.",
        tests=_BY_ARGUMENTS,
    ),
    Guard(
        file=_REDACT,
        line="    else:\n        yield from _texts(value)\n\n\ndef _in_kubeconfig",
        without="\n\ndef _in_kubeconfig",
        because="User data in a list where a mapping belongs would be shown with what is refused for it.",
        tests=_BY_ARGUMENTS,
    ),
    Guard(
        file=_REDACT,
        line="                if _plain(key) in _OBJECTS:\n                    yield from _bare(inner)\n",
        without="",
        because="The server refuses a volume that is a text, and its user data would be shown with the refusal.",
        tests=_BY_ARGUMENTS,
    ),
    Guard(
        file=_REDACT,
        line="        yield from _texts(value)\n\n\ndef redacted",
        without="        yield from ()\n\n\ndef redacted",
        because="A token in a user that is no mapping would be shown.",
        tests=_BY_ARGUMENTS,
    ),
    Guard(
        file="plugins/module_utils/_service/ensure.py",
        line='"result": redact.redacted(after or {})}',
        without='"result": after or {}}',
        because="A Service's annotations may hold an address with a password.",
        tests=(f"{_UNITS}/_service/test_expose.py",),
    ),
    Guard(
        file=_TRANSPORT,
        line="        if self.deadline is not None and time.monotonic() + seconds > self.deadline:",
        without="        if False:",
        because="Each request after the end of a wait would be tried again for half a minute.",
        tests=_BY_DEADLINE,
    ),
    Guard(
        file=_TRANSPORT,
        line="        return min(TIMEOUT_SECONDS, left)",
        without="        return TIMEOUT_SECONDS",
        because="A server that says nothing would hold a task for half a minute after its wait.",
        tests=_BY_DEADLINE,
    ),
    Guard(
        file="plugins/module_utils/_vm/waiting.py",
        line="    with api.bounded(deadline):  # to find out why not, too",
        without="    if True:",
        because="To find out why a wait was in vain would take longer than the wait.",
        tests=_BY_DEADLINE,
    ),
    Guard(
        file="plugins/module_utils/_client/waiter.py",
        line="            if isinstance(error, TimeIsUp) and seen.trouble:",
        without="            if False:",
        because="That there was no time would be told in the place of what the server did with it.",
        tests=_BY_DEADLINE,
    ),
    Guard(
        file="plugins/module_utils/_vm/diagnose.py",
        line="        instance, unread = None, error.message",
        without="        instance = None",
        because="Of a guest that could not be looked at, it would be said that it is not there.",
        tests=(f"{_UNITS}/_vm/test_diagnose.py",),
    ),
    Guard(
        file="plugins/module_utils/_cluster/serving.py",
        line="                with api.bounded(deadline):  # to say what is missing, too",
        without="                if True:",
        because="To say what is missing would take longer than the wait.",
        tests=(f"{_UNITS}/_cluster/test_serving.py",),
    ),
)

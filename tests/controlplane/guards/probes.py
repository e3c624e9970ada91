# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Probes of guests: what is let in, and what may end a guest."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_RULES = "controlplane/api/admission/validate/probes.py"
_POD = "controlplane/virt_controller/vmi/probes.py"
_DESK = "controlplane/virt_launcher/probes.py"
_ASKER = "controlplane/virt_launcher/probe.py"
_EXEC = "controlplane/virt_launcher/agent_exec.py"
_BY_RULES = (
    "tests/controlplane/api/admission/validate/test_probes.py",
    "tests/controlplane/api/admission/test_verdict.py",
    "tests/controlplane/api/admission/validate/test_check.py",
)
_BY_POD = ("tests/controlplane/virt_controller/vmi/test_probes.py",)
_BY_DESK = ("tests/controlplane/virt_launcher/test_probes.py",)
_BY_EXEC = ("tests/controlplane/virt_launcher/test_agent_exec.py",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file=_RULES,
        line="    elif len(probe.handlers) > 1:",
        without="    elif False:",
        because="Kubernetes refuses the Pod of a probe that asks in two ways, long after it was let in.",
        tests=_BY_RULES,
    ),
    Guard(
        file=_RULES,
        line="    if size > COMMAND_BYTES:",
        without="    if size < 0:",
        because="What is let in must fit into the plan, or its machine never starts.",
        tests=_BY_RULES,
    ),
    Guard(
        file=_RULES,
        line="    elif interface.ports and port not in {",
        without="    elif False and port not in {",
        because="A liveness probe of a port that is not forwarded ends its guest again and again.",
        tests=_BY_RULES,
    ),
    Guard(
        file=_RULES,
        line="    if liveness is not None and liveness.success_threshold > 1:",
        without="    if False:",
        because="Kubernetes refuses the Pod, long after the machine was let in.",
        tests=_BY_RULES,
    ),
    Guard(
        file=_POD,
        line="    return probe.exec is not None or probe.guest_agent_ping is not None",
        without="    return probe.guest_agent_ping is not None",
        because="A user's command would run in the launcher instead of in the guest.",
        tests=_BY_POD,
    ),
    Guard(
        file=_POD,
        line="    return liveness is not None and not _is_agent_asked(liveness)",
        without="    return liveness is None",
        because="A migration's target would be ended before its guest has come.",
        tests=_BY_POD,
    ),
    Guard(
        file=_DESK,
        line="    if probe.name == STARTUP:",
        without='    if probe.name == "":',
        because="The liveness of a guest without an agent would never be asked for again once it has moved.",
        tests=_BY_DESK,
    ),
    Guard(
        file=_DESK,
        line="    if state.life is Life.PAUSED:",
        without="    if state.life is None:",
        because="A guest that a person has paused would be ended for its agent's silence.",
        tests=_BY_DESK,
    ),
    Guard(
        file=_DESK,
        line="    if guest is None or state is None or not state.life.is_up:",
        without="    if guest is None or state is None:",
        because="A launcher whose guest has not been started yet would be ended.",
        tests=_BY_DESK,
    ),
    Guard(
        file=_DESK,
        line="    return Answer(0 if probe.name == LIVENESS else 1, because)",
        without="    return Answer(1, because)",
        because="A libvirtd that is away would end its guest.",
        tests=_BY_DESK,
    ),
    Guard(
        file=_DESK,
        line="    except _NOBODY_ASKED as error:\n        return _unheard(probe, str(error))\n",
        without="",
        because="A libvirtd that goes away while it is asked would end its guest.",
        tests=_BY_DESK,
    ),
    Guard(
        file=_DESK,
        line='    except TimeoutError:\n        return _unheard(probe, "libvirtd does not answer")\n',
        without='    except TimeoutError:\n        return Answer(1, "")\n',
        because="A libvirtd that hangs would end its guest before the launcher has put another in its place.",
        tests=_BY_DESK,
    ),
    Guard(
        file=_DESK,
        line='    return Answer(min(ended.exit_code, 255), f"the command',
        without='    return Answer(ended.exit_code, f"the command',
        because="An exit code of 256 is 0 to the kubelet.",
        tests=_BY_DESK,
    ),
    Guard(
        file=_DESK,
        line="        if name in self._asked:",
        without="        if name is None:",
        because="A guest that does not answer would gather questions without end.",
        tests=_BY_DESK,
    ),
    Guard(
        file=_ASKER,
        line="        return 0 if name == LIVENESS else 1, f",
        without="        return 1, f",
        because="A launcher that cannot be asked proves nothing of its guest.",
        tests=_BY_DESK,
    ),
    Guard(
        file=_EXEC,
        line="    if len(answer) > ANSWER_LIMIT:",
        without="    if len(answer) < 0:",
        because="What a guest says is bounded before it is parsed.",
        tests=_BY_EXEC,
    ),
    Guard(
        file=_EXEC,
        line=" or isinstance(number, bool) or",
        without=" or",
        because="What a guest says is no number because it ought to be one.",
        tests=_BY_EXEC,
    ),
    Guard(
        file=_EXEC,
        line='    if said.get("exited") is not True:',
        without='    if not said.get("exited"):',
        because="A command that has not ended has no exit code.",
        tests=_BY_EXEC,
    ),
    Guard(
        file=_DESK,
        line="NoSuchDomain, WrongState, InvalidDomain)",
        without="NoSuchDomain, WrongState)",
        because="A machine that has no channel for its agent would be ended for not answering.",
        tests=("tests/controlplane/virt_launcher/test_probes.py",),
    ),
    Guard(
        file=_DESK,
        line="            except HypervisorError:\n                await self._drop()\n                raise",
        without="            except HypervisorError:\n                raise",
        because="After one death of libvirtd no machine of that launcher would ever be Ready again.",
        tests=("tests/controlplane/virt_launcher/test_probes.py",),
    ),
)

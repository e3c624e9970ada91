# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest's agent: what it can cost, and how much of what it says there can be."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_CALLS = "controlplane/hypervisor/calls.py"
_GUEST = "controlplane/hypervisor/guest.py"
_AGENT = "controlplane/virt_handler/launchers/agent.py"
_OBSERVATION = "controlplane/virt_handler/launchers/observation.py"
_PACE = "controlplane/virt_handler/launchers/pace.py"
_WORDS = "controlplane/domain/agent.py"
_DETAILS = "controlplane/domain/guest_details.py"
_INQUIRY = "controlplane/virt_handler/inquiry.py"
_API_INQUIRY = "controlplane/virt_api/inquiry.py"
_BY_DETAILS = ("tests/controlplane/domain/test_guest_details.py",)
_BY_INQUIRY = ("tests/controlplane/virt_handler/test_inquiry.py",)
_BY_API_INQUIRY = ("tests/controlplane/virt_api/test_inquiry.py",)
_ANSWER = "controlplane/domain/agent_answer.py"
_TOLD = "controlplane/virt_handler/vmi/guest_told.py"
_STATUS = "controlplane/virt_handler/vmi/status.py"
_BY_AGENT = ("tests/controlplane/virt_handler/launchers/test_agent.py",)
_BY_OBSERVATION = ("tests/controlplane/virt_handler/launchers/test_observation.py",)
_BY_PACE = ("tests/controlplane/virt_handler/launchers/test_pace.py",)
_BY_WORDS = ("tests/controlplane/domain/test_agent.py",)
_BY_TOLD = ("tests/controlplane/virt_handler/vmi/test_guest_told.py", "tests/controlplane/test_what_guests_say.py")
_BY_HYPERVISOR = ("tests/controlplane/hypervisor/test_agent.py",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file=_PACE,
        line="        rest = 0.0 if 0 < self.silences <= _SILENCES else took / _SHARE",
        without="        rest = took / _SHARE",
        because="A guest that boots on a busy node and is silent once would be asked again after minutes.",
        tests=_BY_PACE,
    ),
    Guard(
        file=_AGENT,
        line="rounds = Rounds(silences=rounds.silences)",
        without="rounds = Rounds()",
        because="A silent agent that comes and goes would be taken for a new one each time, and asked thrice as often.",
        tests=_BY_AGENT,
    ),
    Guard(
        file=_AGENT,
        line="                told = known  # which",
        without="                pass  # which",
        because="What an agent has answered before it fell silent would be lost.",
        tests=_BY_AGENT,
    ),
    Guard(
        file=_TOLD,
        line="    if told.os is not None or not told.is_connected:",
        without="    if True:",
        because="A virt-handler that begins anew wipes what a paused guest's agent has said.",
        tests=_BY_TOLD,
    ),
    Guard(
        file="controlplane/virt_handler/launchers/freeze.py",
        line="                if self._left() == 0.0:  # nobody has thawed it, or frozen it anew, in the meantime",
        without="                if True:",
        because="What a person has frozen anew, for a backup, would be thawed at the end of what was frozen before.",
        tests=("tests/controlplane/virt_handler/launchers/test_freeze.py",),
    ),
    Guard(
        file=_AGENT,
        line="                if now < self._silent_until:\n",
        without="                if False:\n",
        because="Silent agents, and whoever asks without end, would have all of a node's questions.",
        tests=_BY_AGENT,
    ),
    Guard(
        file=_PACE,
        line="        return max(self.short.next(now), self.long.next(now))",
        without="        return self.short.next(now)",
        because="A launcher that says something else each time would have its status written twice a second for ever.",
        tests=_BY_PACE,
    ),
    Guard(
        file=_CALLS,
        line="            work.end_by(until)\n",
        without="            pass\n",
        because="Each question whose asker went away would leave a thread, for as long as the launcher is silent.",
        tests=_BY_HYPERVISOR,
    ),
    Guard(
        file=_GUEST,
        line="        if len(answer) > ANSWER_LIMIT:",
        without="        if not answer:",
        because="An agent's answer of megabytes would be parsed, and hold up every other machine of the node.",
        tests=_BY_HYPERVISOR,
    ),
    Guard(
        file=_AGENT,
        line="        return await asyncio.shield(task)",
        without="        return await task",
        because="Whoever asks and goes away, again and again, would have any number of answers under way.",
        tests=_BY_AGENT,
    ),
    Guard(
        file=_AGENT,
        line="        async with self._one_at_a_time, self._questions:",
        without="        async with self._one_at_a_time:",
        because="A hundred agents that answer with megabytes at once would take all of virt-handler's memory.",
        tests=_BY_AGENT,
    ),
    Guard(
        file=_AGENT,
        line="        async with self._one_at_a_time, self._questions:",
        without="        async with self._questions:",
        because="One launcher that is silent would have all the questions of its node.",
        tests=_BY_AGENT,
    ),
    Guard(
        file=_AGENT,
        line="                if (wait := self._turns.next(self._clock.monotonic())) > 0:",
        without="                if (wait := 0.0) > 0:",
        because="A guest that opens and closes its channel would have a status written each time.",
        tests=_BY_AGENT,
    ),
    Guard(
        file=_AGENT,
        line=(
            "        if guest is None:\n"
            "            self._tell(replace(self._told, is_connected=True))\n"
            "            return None\n"
        ),
        without="        assert guest is not None\n",
        because="A guest that is paused would be asked, and counted as silent.",
        tests=_BY_AGENT,
    ),
    Guard(
        file=_AGENT,
        line=" or not before.is_whole\n",
        without="\n",
        because="An agent that was silent at first would be without a system for half an hour.",
        tests=_BY_AGENT,
    ),
    Guard(
        file=_AGENT,
        line="        except AnswerTooLong:\n            interfaces = Interfaces(is_cut=True)\n",
        without="        except ZeroDivisionError:\n            interfaces = Interfaces(is_cut=True)\n",
        because="A guest with very many interfaces would not say that they are left out.",
        tests=_BY_AGENT,
    ),
    Guard(
        file=_PACE,
        line="usual * 2.0 ** min(max(excess, 0), 10), rest)",
        without="usual, rest)",
        because="An agent that is silent, or says something else each time, would be asked like any other.",
        tests=_BY_PACE,
    ),
    Guard(
        file=_PACE,
        line="10), rest))",
        without="10), 0.0))",
        because="An agent that answers slowly would hold a question of its node for most of the time.",
        tests=_BY_PACE,
    ),
    Guard(
        file=_OBSERVATION,
        line="or any(isinstance(one, AgentChanged) for one in happened)",
        without="or False",
        because="An agent that comes would be seen at the next look without an event, minutes later.",
        tests=_BY_OBSERVATION,
    ),
    Guard(
        file=_OBSERVATION,
        line=("        self._is_stale = False\n        try:\n            return await guest.described(read_domain)\n"),
        without=(
            "        try:\n"
            "            text = await guest.described(str)\n"
            "            self._is_stale = False\n"
            "            return read_domain(text)\n"
        ),
        because="An agent that comes while another look is under way would be lost.",
        tests=_BY_OBSERVATION,
    ),
    Guard(
        file=_OBSERVATION,
        line="        except BaseException:\n            self._is_stale = True\n            raise\n",
        without="        except BaseException:\n            raise\n",
        because="An agent that comes when libvirt does not answer would be lost.",
        tests=_BY_OBSERVATION,
    ),
    Guard(
        file=_ANSWER,
        line="    except (ValueError, RecursionError) as error:",
        without="    except ValueError as error:",
        because="An answer that nests deeply would be taken for a bug of ours, and end what the agent tells.",
        tests=_BY_WORDS,
    ),
    Guard(
        file=_WORDS,
        line=' or "%" in said:',
        without=":",
        because="An address with a zone of the guest's would stand in a status, with any text behind it.",
        tests=_BY_WORDS,
    ),
    Guard(
        file=_ANSWER,
        line="if one.isprintable()).strip()",
        without="if one).strip()",
        because="What turns the direction of writing would reach people's terminals.",
        tests=_BY_WORDS,
    ),
    Guard(
        file=_ANSWER,
        line=".strip()[:limit]",
        without=".strip()",
        because="A guest's name of 1024 characters would have the whole status refused.",
        tests=_BY_WORDS,
    ),
    Guard(
        file=_WORDS,
        line="    for said in listed[:_INTERFACES_LIMIT]:",
        without="    for said in listed:",
        because="A guest with thousands of interfaces would have them all looked at, each time.",
        tests=_BY_WORDS,
    ),
    Guard(
        file=_WORDS,
        line="_addresses(told[:ADDRESSES_LIMIT])",
        without="_addresses(told)",
        because="An interface with more addresses than a status takes would have it refused.",
        tests=_BY_WORDS,
    ),
    Guard(
        file=_TOLD,
        line="*only[:limit])",
        without="*only)",
        because="A guest with more interfaces than a status takes would have it refused.",
        tests=_BY_TOLD,
    ),
    Guard(
        file=_TOLD,
        line="    if is_cut:\n",
        without="    if False:\n",
        because="Nobody would know that a guest has more than its status shows.",
        tests=_BY_TOLD,
    ),
    Guard(
        file=_STATUS,
        line="is_told = isinstance(verdict, Alive) and new.phase == RUNNING and told is not None",
        without="is_told = new.phase == RUNNING and told is not None",
        because="Without contact a status would be changed by what was heard before.",
        tests=_BY_TOLD,
    ),
    Guard(
        file=_AGENT,
        line=">= FRESH_SECONDS:",
        without=">= 0:",
        because="Whoever may look at a machine could keep its launcher busy, and have its connection cut.",
        tests=_BY_AGENT,
    ),
    Guard(
        file=_AGENT,
        line="            self._answers.clear()\n",
        without="            pass\n",
        because="A guest that was started anew would be answered for by what it was before.",
        tests=_BY_AGENT,
    ),
    Guard(
        file=_DETAILS,
        line="is_number and 0 <= value < _SECONDS_LIMIT",
        without="is_number",
        because="A number of four hundred digits would be an error of ours.",
        tests=_BY_DETAILS,
    ),
    Guard(
        file=_DETAILS,
        line=" and abs(offset) <= _DAY_SECONDS",
        without="",
        because="A number of four thousand digits would be shown to people.",
        tests=_BY_DETAILS,
    ),
    Guard(
        file=_DETAILS,
        line="    while len(msgspec.json.encode(details)) > limit_bytes:",
        without="    while keep < 0:",
        because="A guest that tells much would have virt-api take its node's answer for none.",
        tests=_BY_DETAILS,
    ),
    Guard(
        file=_INQUIRY,
        line=" or not is_own(session.launcher(), guest.vmi_uid):",
        without=":",
        because="A Pod that only looks like a launcher would answer for a guest.",
        tests=_BY_INQUIRY,
    ),
    Guard(
        file=_API_INQUIRY,
        line="            return _untold(bounded(why) or",
        without="            return _untold(why or",
        because="A captured node would write on people's terminals.",
        tests=_BY_API_INQUIRY,
    ),
    Guard(
        file=_API_INQUIRY,
        line="        if vmi.status.phase != RUNNING:",
        without="        if False:",
        because="A guest that does not run would be asked for.",
        tests=_BY_API_INQUIRY,
    ),
)

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects that cannot be read: each costs itself and no other, and nothing of it is retried for ever."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_WATCH = "controlplane/kube/watch.py"
_STORE = "controlplane/kube/cache.py"
_UNREADABLE = "controlplane/kube/unreadable.py"
_TRANSPORT = "controlplane/kube/transport.py"
_CLIENT = "controlplane/kube/client.py"
_BY_WATCH = ("tests/controlplane/kube/test_watch.py",)
_BY_STORE = ("tests/controlplane/kube/test_cache.py",)

_FOLLOW = "controlplane/kube/follow.py"
_MEMORY = "controlplane/virt_controller/vmi/memory.py"
_BY_FOLLOW = ("tests/controlplane/kube/test_follow.py",)
_BY_REASONS = ("tests/controlplane/virt_controller/vmi/test_reconciler.py",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file="controlplane/api/reading.py",
        line="        with _making:\n            _DECODERS[kind] =",
        without="        if True:\n            _DECODERS[kind] =",
        because="Two threads that read the first objects of a type at once would end their process.",
        tests=("tests/controlplane/api/objects/test_first_reads.py",),
    ),
    Guard(
        file="controlplane/api/reading.py",
        line="    with _making:\n        return inspect",
        without="    if True:\n        return inspect",
        because="A thread that finds out how a type is built, beside one that reads it first, would end its process.",
        tests=("tests/controlplane/api/objects/test_first_reads.py",),
    ),
    Guard(
        file=_FOLLOW,
        line="                if isinstance(error, Gone) or error.reason in IN_THE_WAY:",
        without="                if isinstance(error, Gone):",
        because="A line that can never be read would end every stream that is opened before it.",
        tests=_BY_FOLLOW,
    ),
    Guard(
        file=_FOLLOW,
        line="            except UnreadableError:\n                continue",
        without="            except ZeroDivisionError:\n                continue",
        because="An object that cannot be read would end virt-controller.",
        tests=_BY_FOLLOW,
    ),
    Guard(
        file=_FOLLOW,
        line="        if began == self._position and self._clock.monotonic() - opened < SHORTEST_STREAM_SECONDS:",
        without="        if False:",
        because="A server that ends every stream at once would be asked without end.",
        tests=_BY_FOLLOW,
    ),
    Guard(
        file=_FOLLOW,
        line="        if began == self._position and self._clock.monotonic() - opened < SHORTEST_STREAM_SECONDS:",
        without="        if began == self._position:",
        because="Events come without bookmarks: on a quiet cluster every stream would be a failure, and paused for.",
        tests=_BY_FOLLOW,
    ),
    Guard(
        file=_MEMORY,
        line="bounded(event.message)",
        without="event.message",
        because="Whoever may make an Event would fill our memory, and statuses that are then refused.",
        tests=_BY_REASONS,
    ),
    Guard(
        file=_MEMORY,
        line=" or event.reason not in TOLD_IN_EVENTS:",
        without=":",
        because="A Pod's status says the rest, and says when it is over.",
        tests=_BY_REASONS,
    ),
    Guard(
        file=_WATCH,
        line="                if error.reason in IN_THE_WAY:\n                    self._pass_line()\n",
        without="",
        because="A line that can never be read would be read again for ever, and stop the cache for everybody.",
        tests=_BY_WATCH,
    ),
    Guard(
        file=_WATCH,
        line='self._list_at, self._from_quorum = float("-inf"), True',
        without='self._list_at = float("-inf")',
        because="A list from a server that lags would end before the line that cannot be read.",
        tests=_BY_WATCH,
    ),
    Guard(
        file=_WATCH,
        line="        self._failures = max(self._failures, self._passed_lines)\n",
        without="",
        because="Whoever can make one line that cannot be read must not make us list without end.",
        tests=_BY_WATCH,
    ),
    Guard(
        file=_WATCH,
        line="        if None not in seen:",
        without="        if True:",
        because="An item that does not show what it is may be any of those that are missed.",
        tests=_BY_WATCH,
    ),
    Guard(
        file=_WATCH,
        line="            return identity.key if identity else None",
        without="            return Key('', '')",
        because="An object that cannot be read is not absent.",
        tests=_BY_WATCH,
    ),
    Guard(
        file=_WATCH,
        line='        if kind == "DELETED":\n            self._unreadable',
        without="        if False:\n            self._unreadable",
        because="An object that cannot be read would be held for ever after its end.",
        tests=_BY_WATCH,
    ),
    Guard(
        file=_WATCH,
        line="            if number_of(self.version(identity.key)) <= version:\n",
        without="            if True:\n",
        because="A late word about an earlier object of the name must not remove the present one.",
        tests=_BY_WATCH,
    ),
    Guard(
        file=_UNREADABLE,
        line="NOT_DECODED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)",
        without="NOT_DECODED = (msgspec.DecodeError, UnicodeDecodeError)",
        because="One object that is nested too deep would end the process, in each of its lives.",
        tests=(*_BY_WATCH, *_BY_STORE),
    ),
    Guard(
        file=_UNREADABLE,
        line="    except RecursionError:\n        return await asyncio.to_thread(_split_event, line)\n",
        without="",
        because="An object that is nested too deep would cost a list each time that it changes.",
        tests=_BY_WATCH,
    ),
    Guard(
        file="controlplane/kube/shallow.py",
        line="""+"?+'""",
        without="""+"'""",
        because="Half a text that is full of quotes would be looked through once for each of them.",
        tests=("tests/controlplane/test_patterns.py",),
    ),
    Guard(
        file=_STORE,
        line="    if shallow.is_deeper(kept, MOST_LEVELS):",
        without="    if False:",
        because="What is kept must be readable by everybody, however deep in the stack they read it.",
        tests=_BY_STORE,
    ),
    Guard(
        file=_TRANSPORT,
        line='raise Unavailable(f"cannot {attempt}: {why}", reason=ANSWER_TOO_LARGE)',
        without='raise Unavailable(f"cannot {attempt}: {why}")',
        because="A line that is too long would end the stream at the same place for ever.",
        tests=_BY_WATCH,
    ),
    Guard(
        file=_TRANSPORT,
        line="MAX_LINE_BYTES = 32 * 1024 * 1024",
        without="MAX_LINE_BYTES = 8 * 1024 * 1024",
        because="What an API server stores it must be able to tell us, six bytes for each < of it.",
        tests=_BY_WATCH,
    ),
    Guard(
        file=_CLIENT,
        line="        return await asyncio.to_thread(_split_page, answer)",
        without="        raise",
        because="One object that is nested too deep must not cost the whole list.",
        tests=_BY_WATCH,
    ),
    Guard(
        file=_MEMORY,
        line="        if memory.pod_uids and uid not in memory.pod_uids:",
        without="        if False:",
        because="Words about a Pod that is not there would take the place of those about the one that is.",
        tests=_BY_REASONS,
    ),
    Guard(
        file=_MEMORY,
        line="        if uid in memory.heard and not is_said_again and monotonic - memory.heard_at < STANDS_SECONDS:",
        without="        if False:",
        because="Each Event of who makes any number of them would be a write, and two volumes would take turns.",
        tests=_BY_REASONS,
    ),
    Guard(
        file="controlplane/virt_controller/vmi/status.py",
        line="find_start_trouble(pod, world.heard.get(pod.uid) or _heard_before(world))",
        without="find_start_trouble(pod, world.heard.get(pod.uid))",
        because="A new leader would take back what the one before it had heard.",
        tests=_BY_REASONS,
    ),
)

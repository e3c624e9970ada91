# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The launchers of one node, as a cache shows them: a fake session each, behind the real Verbs. As the registry."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from msgspec import structs

from controlplane.api.objects.decode import decode
from controlplane.api.objects.pod import Pod
from controlplane.api.objects.resources import Key
from controlplane.virt_handler.launchers.verbs import Verbs
from controlplane.virt_handler.vmi.ports import CannotLook
from controlplane.virt_handler.vmi.world import Launcher, Traces
from tests.controlplane.simulation.cache import LaggingCache
from tests.controlplane.simulation.calls import LOOK, Call
from tests.controlplane.simulation.node import Node
from tests.controlplane.simulation.session import FakeSession


class FakeSessions:
    """The launcher Pods of a node, as a cache shows them; a session each. As the real registry."""

    def __init__(
        self,
        pods: LaggingCache,
        node: Node,
        changed: Callable[[Key], None],
        spawn: Callable[[Key, Coroutine[Any, Any, None]], None],
        complain: Callable[[str], None] = lambda _unused: None,
    ) -> None:
        """spawn runs a verb beside the passes; the real Verbs see to it that there is one at a time.

        complain: said what is asked for too early.
        """
        self._complain = complain
        self._pods = pods
        self._node = node
        self._changed = changed
        self._spawn = spawn
        self._sessions: dict[str, FakeSession] = {}
        self._verbs: dict[str, Verbs] = {}
        pods.subscribe(self._take)

    node_trouble = None

    @property
    def synced(self) -> bool:
        return self._pods.synced

    def session(self, pod_uid: str) -> Verbs | None:
        return self._verbs.get(pod_uid)

    def launchers_of(self, vmi_uid: str) -> tuple[Launcher, ...]:
        return self._select(lambda pod: pod.owner is not None and pod.owner.uid == vmi_uid)

    def launchers_named(self, key: Key) -> tuple[Launcher, ...]:
        return self._select(lambda pod: pod.vmi_key == key)

    def pause_left(self, pod_uid: str) -> float:
        """Tell how long to wait yet after a verb of which nothing came."""
        one = self._sessions.get(pod_uid)
        return 0.0 if one is None else one.pause_left()

    def keys(self) -> set[Key]:
        """List the VMIs that have, or had, a launcher here."""
        return {one.pod.vmi_key for one in self._sessions.values() if one.pod.vmi_key is not None}

    async def find_traces(self, pod_uid: str) -> Traces:
        return await Call(LOOK, "launcher", Key("", pod_uid), lambda: self._traces(pod_uid), CannotLook)  # type: ignore[no-any-return]

    def steps(self) -> list[Callable[[], None]]:
        """List what the sessions' own tasks can do now."""
        self._drop_ended()
        return [step for one in self._sessions.values() for step in one.steps()]

    def _traces(self, pod_uid: str) -> Traces:
        there = self._node.launchers.get(pod_uid)
        if there is None:
            return Traces(has_directory=False, processes=0)
        emulators = 1 if there.is_running_guest else 0
        return Traces(there.has_directory, 2 if there.is_up else 0, emulators)

    def _take(self, _unused: Key, before: bytes | None, after: bytes | None) -> None:
        old, new = _read(before), _read(after)
        if old is not None and (new is None or new.uid != old.uid):
            self._gone(old.uid)
        if new is not None:
            self._seen(new)

    def _seen(self, pod: Pod) -> None:
        session = self._sessions.get(pod.uid)
        if pod.owner is None and session is not None:  # it stays the launcher of the VMI that it was
            owners = session.pod.metadata.owner_references
            pod = structs.replace(pod, metadata=structs.replace(pod.metadata, owner_references=owners))
        if (key := pod.vmi_key) is None:
            return
        if session is None:
            session = self._sessions[pod.uid] = FakeSession(pod, self._node, lambda: self._changed(key), self._complain)
            self._verbs[pod.uid] = Verbs(
                session, self._node.clock, lambda verb: self._spawn(key, verb), lambda: self._changed(key)
            )
        else:
            session.pod, session.is_gone = pod, False  # it may be listed again
        self._changed(key)

    def _gone(self, pod_uid: str) -> None:
        session = self._sessions.get(pod_uid)
        if session is None or session.pod.vmi_key is None:
            return
        session.is_gone = True
        self._changed(session.pod.vmi_key)

    def _drop_ended(self) -> None:
        for uid, one in tuple(self._sessions.items()):
            if one.is_gone and not one.is_connected and not self._verbs[uid].is_busy:
                del self._sessions[uid], self._verbs[uid]
                if one.pod.vmi_key is not None:
                    self._changed(one.pod.vmi_key)

    def _select(self, is_wanted: Callable[[Pod], bool]) -> tuple[Launcher, ...]:
        return tuple(self._verbs[uid].launcher() for uid, one in self._sessions.items() if is_wanted(one.pod))


def _read(raw: bytes | None) -> Pod | None:
    return None if raw is None else decode(raw, Pod)

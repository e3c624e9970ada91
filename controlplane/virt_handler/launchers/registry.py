# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sessions of this node: adds and removes one for each launcher Pod. No decisions."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection

from msgspec import structs

from controlplane.api.objects.decode import DecodeError, decode
from controlplane.api.objects.pod import Pod
from controlplane.api.objects.resources import Key
from controlplane.domain.statistics import Statistics
from controlplane.engine.ports import Cache
from controlplane.virt_handler.launchers.ports import NodeError
from controlplane.virt_handler.launchers.session import Session
from controlplane.virt_handler.launchers.statistics_reader import StatisticsReader
from controlplane.virt_handler.launchers.tools import Tools
from controlplane.virt_handler.vmi.ports import CannotLook
from controlplane.virt_handler.vmi.world import Launcher, NodeTrouble, Traces

log = logging.getLogger(__name__)
_AFTER_BUG_SECONDS = 5.0


class Registry:
    """Watches the cache of launcher Pods of this node. Implements vmi.ports.Sessions."""

    def __init__(self, pods: Cache, tools: Tools, changed: Callable[[Key], None]) -> None:
        """changed: called with a VMI's key whenever one of its launchers has changed."""
        self._pods = pods
        self._tools = tools
        self._changed = changed
        self._sessions: dict[str, Session] = {}
        self._statistics = StatisticsReader(tools.clock)
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._uid_by_name: dict[Key, str] = {}
        """UID of the launcher, by its Pod's key."""
        self._is_following = False
        self._node_away_since: float | None = tools.clock.monotonic()
        tools.node.subscribe(self._node_changed)

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def connected(self) -> int:
        return sum(1 for session in self._sessions.values() if session.record.status.is_connected)

    @property
    def synced(self) -> bool:
        return self._is_following and self._pods.synced

    @property
    def node_trouble(self) -> NodeTrouble | None:
        why, since = self._tools.node.trouble, self._node_away_since
        return NodeTrouble(why, since) if why and since is not None else None

    async def find_traces(self, pod_uid: str) -> Traces:
        """Look for a Pod's directory and processes on the node. CannotLook."""
        try:
            return await self._tools.node.find_traces(pod_uid)
        except NodeError as error:
            raise CannotLook(f"cannot look for Pod {pod_uid} on this node: {error}") from error

    def session(self, pod_uid: str) -> Session | None:
        return self._sessions.get(pod_uid)

    def launchers(self) -> tuple[Launcher, ...]:
        """Return all launchers of this node."""
        return self._select(lambda _unused: True)

    def launchers_of(self, vmi_uid: str) -> tuple[Launcher, ...]:
        """Return the launchers that the VMI of this UID controls."""
        return self._select(lambda pod: pod.owner is not None and pod.owner.uid == vmi_uid)

    def launchers_named(self, key: Key) -> tuple[Launcher, ...]:
        """Return the launchers that a VMI of this name controls or controlled."""
        return self._select(lambda pod: pod.vmi_key == key)

    def keys(self) -> Collection[Key]:
        return {
            session.record.pod.vmi_key for session in self._sessions.values() if session.record.pod.vmi_key is not None
        }

    async def statistics(self) -> dict[Key, Statistics]:
        """Return libvirt's counters of each guest that is up and whose launcher answers in time, by its VMI's key."""
        connected = (session for session in self._sessions.values() if session.record.status.is_connected)
        return await self._statistics.read(
            [(key, session.connection) for session in connected if (key := session.record.pod.vmi_key) is not None]
        )

    async def run(self) -> None:
        """Run the sessions until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._pods.subscribe(lambda key, _before, after: self._take(group, key, after))
            for key in self._pods.keys():  # noqa: SIM118 - a Cache is no dict
                self._take(group, key, self._pods.get(key))
            self._is_following = True
            await asyncio.Event().wait()

    def _node_changed(self) -> None:
        """Enqueue every VMI when virt-node connects or disconnects: its status may depend on virt-node."""
        is_away = self._tools.node.trouble != ""
        self._node_away_since = self._tools.clock.monotonic() if is_away else None
        for key in self.keys():
            self._changed(key)

    def _take(self, group: asyncio.TaskGroup, key: Key, after: bytes | None) -> None:
        """Handle the current Pod of a name. The watch may have missed a deletion and another creation."""
        pod, former_uid = _read(after), self._uid_by_name.get(key)
        if after is not None and pod is None:
            return  # an unreadable Pod still exists: keep its session
        if former_uid is not None and (pod is None or pod.uid != former_uid):
            del self._uid_by_name[key]
            self._mark_gone(former_uid)
        if pod is not None:
            self._update(group, key, pod)

    def _update(self, group: asyncio.TaskGroup, name: Key, pod: Pod) -> None:
        session, task = self._sessions.get(pod.uid), self._tasks.get(pod.uid)
        if session is None:
            if pod.owner is None or pod.vmi_key is None:
                return
            session = self._add(group, pod, pod.owner.uid, pod.vmi_key)
            self._begin(group, session)
        else:
            was_gone, session.record.is_gone = session.record.is_gone, False  # a Pod may reappear in the list
            session.record.pod = pod if pod.owner is not None else _with_owners_of(session.record.pod, pod)
            if was_gone and not _is_running(task):  # its operation or connection was about to end
                self._begin(group, session, after=task)
            else:
                self._end_if_over(session)
        self._uid_by_name[name] = pod.uid
        self._enqueue(session)

    def _add(self, group: asyncio.TaskGroup, pod: Pod, vmi_uid: str, key: Key) -> Session:
        def ended() -> None:
            self._drop_if_over(pod.uid)
            self._changed(key)

        session = Session(pod, vmi_uid, self._tools, lambda: self._changed(key), spawn=group.create_task, ended=ended)
        self._sessions[pod.uid] = session
        return session

    def _mark_gone(self, pod_uid: str) -> None:
        session = self._sessions.get(pod_uid)
        if session is None:
            return
        session.record.is_gone = True
        self._end_if_over(session)
        self._drop_if_over(pod_uid)
        self._enqueue(session)

    def _enqueue(self, session: Session) -> None:
        if (key := session.record.pod.vmi_key) is not None:
            self._changed(key)

    def _drop_if_over(self, pod_uid: str) -> None:
        """Drop the session of a Pod that is gone, once its connection and its operation have ended."""
        session = self._sessions.get(pod_uid)
        if session is not None and session.record.is_gone and pod_uid not in self._tasks and not session.is_busy:
            del self._sessions[pod_uid]

    def _end_if_over(self, session: Session) -> None:
        """Stop waiting for a launcher that is over. An open connection stays until the peer closes it."""
        task = self._tasks.get(session.record.pod.uid)
        if task is not None and session.record.is_over and not session.record.status.is_connected:
            task.cancel()

    def _begin(self, group: asyncio.TaskGroup, session: Session, after: asyncio.Task[None] | None = None) -> None:
        """Start a session's task. after: the former task of this session, which has to end first."""
        uid = session.record.pod.uid

        def ended(task: asyncio.Task[None]) -> None:
            if self._tasks.get(uid) is task:  # not if the Pod came back and has a newer task
                del self._tasks[uid]
                self._drop_if_over(uid)

        self._tasks[uid] = group.create_task(self._keep(session, after))
        self._tasks[uid].add_done_callback(ended)

    async def _keep(self, session: Session, after: asyncio.Task[None] | None) -> None:
        """Run a session. A bug in it must not end the process: the session is restarted after a pause."""
        if after is not None:
            await asyncio.wait({after})
        while not session.record.is_over:
            try:
                await session.run()
            except Exception:
                log.exception("bug in a launcher's session", extra={"pod": session.record.pod.metadata.name})
                await asyncio.sleep(_AFTER_BUG_SECONDS)

    def _select(self, is_wanted: Callable[[Pod], bool]) -> tuple[Launcher, ...]:
        return tuple(session.launcher() for session in self._sessions.values() if is_wanted(session.record.pod))


def _is_running(task: asyncio.Task[None] | None) -> bool:
    """Tell whether a task still runs. The callback of a finished task may not have run yet."""
    return task is not None and not task.done() and not task.cancelling()


def _with_owners_of(former: Pod, pod: Pod) -> Pod:
    """Return a Pod that lost its owners (`kubectl delete vmi --cascade=orphan`) with its former owners."""
    owners = former.metadata.owner_references
    return structs.replace(pod, metadata=structs.replace(pod.metadata, owner_references=owners))


def _read(raw: bytes | None) -> Pod | None:
    if raw is None:
        return None
    try:
        return decode(raw, Pod)
    except DecodeError as error:
        log.warning("a Pod cannot be read", extra={"error": str(error)})
        return None

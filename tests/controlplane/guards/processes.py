# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a process begins and ends, whichever it is."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_BY_MAINS = ("tests/controlplane/test_mains.py",)

_MANY = tuple(
    Guard(
        file=f"controlplane/{process}/__main__.py",
        line="        allow_many()\n",
        without="",
        because=because,
        tests=_BY_MAINS,
    )
    for process, because in (
        ("virt_api", "A few hundred peers would take the descriptors that virt-api needs to read its objects."),
        ("virt_controller", "A few hundred peers would take the descriptors that virt-controller writes over."),
        ("virt_handler", "With a few hundred launchers there would be no descriptor left for one more."),
        ("virt_node", "With a few hundred launchers whose sockets are waited for there would be no descriptor left."),
    )
)

_CONTROLLER = "controlplane/virt_controller/process.py"
_BY_CONTROLLER = ("tests/controlplane/virt_controller/test_process.py",)
_BY_WAKES = ("tests/controlplane/virt_controller/test_process_wakes.py",)


def _wired(line: str, without: str, because: str, tests: tuple[str, ...] = _BY_CONTROLLER) -> Guard:
    return Guard(file=_CONTROLLER, line=line, without=without, because=because, tests=tests)


_WIRING = (
    _wired(
        "client.guarded(self._leadership.require)",
        "client",
        "Who leads no more would go on writing beside the next leader.",
    ),
    _wired(
        "            await cache.wait_synced()",
        "            pass",
        "What is not listed yet would be taken for absent, and made a second time.",
    ),
    _wired("        self._nodes.begin()\n", "", "No silent node would ever be taken off the list."),
    _wired("        self._quarantine.begin()\n", "", "Nodes would not be judged, nor let go.", _BY_WAKES),
    _wired(
        "        api = RememberingApi(self._client, overlays)\n",
        "        api = self._client\n",
        "Who does not know its own writes makes them again while its watch is late.",
    ),
    _wired(
        "Overlay(cache) for resource, cache in self._caches.items()}",
        "Overlay(cache) for resource, cache in self._caches.items() if resource != POD} | {POD: Overlay(WatchCache("
        "self._client, Selection(POD), self._clock))}",
        "The cache that is looked into must be the one that is watched.",
    ),
    _wired(
        "            data_volumes=data_volumes,\n            kept_from=self._marked,\n",
        "            data_volumes=data_volumes,\n",
        "Machines would be sent to nodes in quarantine.",
    ),
    _wired(
        "        connect_configuration(overlays[KUBEVIRT], vmis, runners[1].add)\n",
        "",
        "A Pod that was made by the former configuration may wait for ever.",
        _BY_WAKES,
    ),
    _wired(
        "        connect_claims(claims=claims, vms=vms, vmis=vmis, wake_vm=runners[0].add, wake_vmi=runners[1].add)\n",
        "",
        "A machine would not hear that the claim that it waits for has come.",
        _BY_WAKES,
    ),
    _wired(
        "        self._optional.on_change(changed)\n",
        "",
        "Nobody would be told that the cluster has lost CDI.",
        _BY_WAKES,
    ),
    _wired(
        "        connect_nodes(nodes, self._caches[LEASE], runners[3].add)\n",
        "",
        "No Node would be looked at, silent or not.",
        _BY_WAKES,
    ),
    _wired(
        "        connect_replica_sets(replica_sets=replica_sets, vmis=vmis, wake=runners[4].add)\n",
        "",
        "A set would not hear that one of its instances is over.",
        _BY_WAKES,
    ),
    _wired(
        "        self._quarantine.wake_by(runners[5].add)\n",
        "",
        "A node that deserves it would go unjudged.",
        _BY_WAKES,
    ),
    _wired(
        "        overlays[KUBEVIRT].subscribe(lambda _key, _before, _after: runners[5].add(ALL_NODES))\n",
        "",
        "A quarantine that a person has switched off would last.",
        _BY_WAKES,
    ),
    _wired(
        "            vmi_of=vmi.vmi_of,\n",
        "            vmi_of=lambda _key: None,\n",
        "A Pod that has lost its owner would end unseen.",
        _BY_WAKES,
    ),
    _wired("            group.create_task(self._events.run())\n", "", "Users would be told nothing."),
    _wired("            group.create_task(self._follower.run())\n", "", "Why a Pod does not start would go unheard."),
    _wired(
        "            group.create_task(keep_certificates(self._client, self._settings.namespace, self._clock))\n",
        "",
        "The certificates would run out, and no write of a user be admitted.",
    ),
    _wired(
        "if not cache.synced]",
        "if False]",
        "A rollout would go on over replicas that cannot take the lead.",
    ),
)

_HANDLER = "controlplane/virt_handler/__main__.py"
_BY_HANDLER = ("tests/controlplane/virt_handler/test_process.py",)

_HANDLERS_WIRING = tuple(
    Guard(file=_HANDLER, line=line, without=without, because=because, tests=_BY_HANDLER)
    for line, without, because in (
        (
            'Selection(VIRTUAL_MACHINE_INSTANCE, field_selector=f"status.nodeName={self._settings.node}")',
            "Selection(VIRTUAL_MACHINE_INSTANCE)",
            "Every node would read every machine; its account may not, and nothing would be known.",
        ),
        (
            ', field_selector=f"spec.nodeName={self._settings.node}"',
            "",
            "Every node would look for every node's launchers.",
        ),
        (
            "        await self._vmis.wait_synced()\n",
            "",
            "A guest whose machine is not listed yet would be taken for one that nobody wants.",
        ),
        (
            "        await self._pods.wait_synced()\n",
            "",
            "A launcher that is not listed yet would be taken for one that is gone.",
        ),
        (
            "RememberingApi(client, {VIRTUAL_MACHINE_INSTANCE: known})",
            "client",
            "Who does not know its own writes makes them again while its watch is late.",
        ),
        (
            "        self._callers.subscribe(lambda _unused, __, after: take_authority(self._door_tls, after))\n",
            "",
            "Nobody would be let in as virt-api, or by an authority that was exchanged.",
        ),
        (
            "settings.is_on_control_plane or not node.is_for_control_plane(found)",
            "True",
            "A tenant's machine would run beside the cluster's own control plane.",
        ),
        (
            "            await self._leave()\n",
            "            pass\n",
            "Machines would be sent to a node whose virt-handler has ended, until its Lease is over.",
        ),
    )
)

_BY_CLEARING = ("tests/controlplane/virt_handler/test_process_clearing.py",)

_CLEARINGS_WIRING = tuple(
    Guard(file=file, line=line, without=without, because=because, tests=_BY_CLEARING)
    for file, line, without, because in (
        (
            _HANDLER,
            '        """Start what has waited, and be listed."""\n        self._enqueue_all()\n',
            "",
            "A machine that waited until its node was clear would wait on.",
        ),
        (
            _HANDLER,
            "        self._heartbeat.resumed.set()\n",
            "",
            "A node that is clear would take no machines for another minute.",
        ),
        (
            _HANDLER,
            "        await self._wait_synced()\n        await self._clearing.run()\n",
            "        await self._clearing.run()\n",
            "A node that does not know its launchers yet would ask about none, and take itself for clear.",
        ),
        (
            _HANDLER,
            "self._heartbeat, held=lambda: self._clearing.held)",
            'self._heartbeat, held=lambda: "")',
            "Machines would be sent to a node that is not clear of what is no longer its own.",
        ),
        (
            "controlplane/virt_handler/clearing.py",
            "        heard.subscribe(self.wake)\n",
            "",
            "A node whose host was suspended would be cleared only when a timer ends that stood still meanwhile.",
        ),
    )
)

GUARDS: tuple[Guard, ...] = (
    *_MANY,
    *_WIRING,
    *_HANDLERS_WIRING,
    *_CLEARINGS_WIRING,
    Guard(
        file="controlplane/until_told.py",
        line="        loop.add_signal_handler(number, serving.cancel)\n",
        without="        loop.add_signal_handler(number, loop.stop)\n",
        because="A process that is told to end must let go of what it holds: its Lease, its node, its listeners.",
        tests=("tests/controlplane/test_until_told.py",),
    ),
)

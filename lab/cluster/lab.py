# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A lab: start, repair and remove it, import images. The public class of this package.

    with Lab(name="my-tests").running(nodes=1) as lab:
        subprocess.run(["kubectl", "--kubeconfig", lab.kubeconfig, "get", "nodes"])

`up` compares what runs with the description and starts what is missing. So it also repairs a lab, at any time.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from lab.cluster import description, preflight
from lab.cluster.api import Api
from lab.cluster.description import DEFAULT_NODE_GRACE_SECONDS, Description
from lab.cluster.last_words import last_words
from lab.errors import LabError
from lab.images import imports
from lab.images.archive import keep, read_archive
from lab.locks import locked
from lab.machines import cgroup, loops, network
from lab.machines.addresses import node_name
from lab.machines.machine import Machine, control_plane_machine, node_machine
from lab.parallel import in_parallel
from lab.paths import DEFAULT_NAME, Cache, State
from lab.programs.choice import recall
from lab.programs.ensure import Programs, ensure_programs
from lab.programs.modules import MINOR
from lab.progress import Progress, silent


class Lab:
    """One lab by name. The object keeps no state; every method reads the machine's state."""

    def __init__(self, name: str = DEFAULT_NAME, *, cache: Cache | None = None, progress: Progress = silent) -> None:
        self.state = State(name=name)
        self.cache = cache or Cache.from_environment()
        self._progress = progress

    @property
    def name(self) -> str:
        return self.state.name

    @property
    def kubeconfig(self) -> Path:
        return self.state.kubeconfig

    @property
    def audit_log(self) -> Path:
        return self.state.audit_log

    def describe(self) -> Description:
        """Return the description. Raises LabError if there is no such lab."""
        stored = description.load(self.state)
        if stored is None:
            raise LabError(f"there is no lab {self.name!r}; start it with `lab up --name {self.name}`")
        return stored

    def exists(self) -> bool:
        return description.load(self.state) is not None

    @property
    def control_plane(self) -> Machine:
        return control_plane_machine(self.state)

    def node(self, name: str) -> Machine:
        """Return a node. Raises LabError if the lab has no node of this name."""
        names = self.node_names()
        if name not in names:
            raise LabError(f"lab {self.name!r} has no node {name!r}; it has {', '.join(names) or 'none'}")
        return node_machine(self.state, name)

    def node_names(self) -> list[str]:
        return [node_name(number) for number in range(1, self.describe().nodes + 1)]

    def nodes(self) -> list[Machine]:
        return [self.node(name) for name in self.node_names()]

    def api(self) -> Api:
        """Return a client with all permissions, for a few objects. Use a real client for more."""
        return Api(self.describe().addresses.server, self.state.certificates)

    def up(
        self,
        nodes: int | None = None,
        *,
        images: Sequence[Path] = (),
        node_grace_seconds: int | None = None,
        controllers: bool = True,
        kubernetes: str | None = None,
        feature_gates: Mapping[str, bool] | None = None,
        like: str | None = None,
    ) -> None:
        """Start or repair the lab. Returns when its nodes are Ready and Pods can be created.

        nodes: 0 means only a control plane; None keeps the current number, 1 for a new lab.
        images: OCI archives that every node has from its start.
        node_grace_seconds: time without a heartbeat after which a node is NotReady.
        controllers: False omits controller manager, scheduler and storage, for tests that need only an API server.
        kubernetes: the minor version, such as 1.35, of a new lab. It is built on first use, in about 5 minutes.
        feature_gates: gates of the API server and the kubelets, in addition to those of earlier calls.
        like: the distribution whose settings a new lab has, such as k3s (distributions.py).
        """
        # This import loads half of the package, and Ansible runs `lab node exec` for every task on a node.
        from lab.cluster.start import Starter  # noqa: PLC0415

        preflight.check_machine(own={program.name for program in recall(self.cache)})
        preflight.check_inotify(self._to_start(nodes))
        programs = self._programs(kubernetes)
        with self._lock():
            target = self._want(nodes, node_grace_seconds, kubernetes, feature_gates or {}, like)
            archives = [read_archive(path) for path in images]
            imported = {archive.digest: archive.reference for archive in archives}
            target = replace(target, images={**target.images, **imported}, programs=programs.named)
            starter = Starter(self.state, target, programs, cache=self.cache, progress=self._progress)
            starter.run(archives, controllers=controllers)
            description.save(self.state, target)

    @contextlib.contextmanager
    def running(self, nodes: int = 1, **options: object) -> Iterator[Lab]:
        """Run a new lab during the block, and remove it afterwards.

        An exception gets the last output of those programs of the control plane that have ended.
        """
        self.down()  # a killed process may have left a lab of this name
        try:
            self.up(nodes, **options)  # type: ignore[arg-type]
            yield self
        except Exception as error:
            for words in last_words(self.control_plane):
                error.add_note(words)
            raise
        finally:
            self.down()

    def down(self) -> None:
        """Remove every process, link, mount, cgroup, loop device and file of the lab. Does nothing without a lab."""
        with self._lock():
            for machine in sorted(cgroup.machines(self.name)):
                cgroup.kill(cgroup.machine_group(self.name, machine))
            for machine in cgroup.machines(self.name):
                cgroup.remove(cgroup.machine_group(self.name, machine))
            cgroup.remove(cgroup.lab_group(self.name))
            cgroup.remove_if_empty(cgroup.PARENT)
            with contextlib.suppress(LabError):
                network.remove_link(self.describe().addresses.host_link)
            loops.detach_below(self.state.root)
            if self.state.root.exists():
                # Does not enter a remaining mount, and is twice as fast as Python with large images.
                subprocess.run(["rm", "-rf", "--one-file-system", self.state.root], check=True)
            with contextlib.suppress(OSError):
                self.state.root.parent.rmdir()

    def import_image(self, path: Path, *, reference: str | None = None) -> str:
        """Import an OCI archive's image on every node and return its reference. A second import does nothing."""
        archive = read_archive(path, reference=reference)
        with self._lock():
            current = self.describe()
            targets = [machine for machine in self.nodes() if not imports.has_imported(machine, archive)]
            if archive.digest in current.images and not targets:
                return archive.reference
            client, socket = self._programs().node("ctr"), current.distribution.runtime_socket
            self._progress(f"importing {archive.reference} into {len(targets)} nodes")
            stored = keep(archive, self.state.archives)
            description.save(self.state, replace(current, images={**current.images, archive.digest: archive.reference}))
            # A node that is down or frozen gets the image when `up` brings it back.
            reachable = [machine for machine in targets if machine.pid() is not None and not machine.is_frozen()]
            in_parallel([partial(imports.import_into, machine, stored, client, socket) for machine in reachable])
        return archive.reference

    def image_references(self) -> dict[str, list[str]]:
        """Return the images of each running node."""
        client, socket = self._programs().node("ctr"), self.describe().distribution.runtime_socket
        return {
            machine.name: imports.list_references(machine, client, socket)
            for machine in self.nodes()
            if machine.pid() is not None
        }

    def _to_start(self, nodes: int | None) -> list[str]:
        """Return the machines that do not run yet. nodes: as for `up`."""
        current = description.load(self.state)
        count = nodes if nodes is not None else 1 if current is None else current.nodes
        names = [node_name(number) for number in range(1, count + 1)]
        machines = [self.control_plane, *(node_machine(self.state, name) for name in names)]
        return [machine.name for machine in machines if machine.pid() is None]

    def _programs(self, kubernetes: str | None = None) -> Programs:
        """Return the programs of the lab's minor version of Kubernetes. kubernetes: that of a new lab."""
        stored = description.load(self.state)
        return ensure_programs(
            self.cache, self._progress, kubernetes=stored.kubernetes if stored else kubernetes or MINOR
        )

    def _want(
        self,
        nodes: int | None,
        node_grace_seconds: int | None,
        kubernetes: str | None,
        feature_gates: Mapping[str, bool],
        like: str | None,
    ) -> Description:
        current = description.load(self.state)
        if current is None:
            return description.allocate(
                self.cache,
                self.state,
                self._progress,
                nodes=1 if nodes is None else nodes,
                node_grace_seconds=node_grace_seconds or DEFAULT_NODE_GRACE_SECONDS,
                kubernetes=kubernetes or MINOR,
                feature_gates=dict(feature_gates),
                like=like or "",
            )
        if kubernetes not in (None, current.kubernetes):
            raise self._cannot(f"runs Kubernetes {current.kubernetes}, not {kubernetes}")
        if like not in (None, current.like):
            raise self._cannot(f"is like {current.like or 'no distribution'}, not {like}")
        target = replace(
            current,
            nodes=current.nodes if nodes is None else nodes,
            node_grace_seconds=node_grace_seconds or current.node_grace_seconds,
            feature_gates={**current.feature_gates, **feature_gates},
        )
        description.check_node_count(target.nodes)
        if target.nodes < current.nodes:
            raise self._cannot(f"has {current.nodes} nodes and cannot shrink to {target.nodes}")
        description.save(self.state, target)
        return target

    def _cannot(self, what: str) -> LabError:
        return LabError(f"lab {self.name!r} {what}; remove it with `lab down --name {self.name}` and start it again")

    def _lock(self) -> contextlib.AbstractContextManager[None]:
        return locked(self.cache, f"lab-{self.name}", self._progress)

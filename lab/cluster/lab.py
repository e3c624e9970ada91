# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A lab as a whole: bring it up, repair it, tell how it is, take it down. The library's front door.

    with Lab(name="my-tests").running(nodes=1) as lab:
        subprocess.run(["kubectl", "--kubeconfig", lab.kubeconfig, "get", "nodes"])

`up` looks at what runs and does what is missing, so it is also the repair: it may be called at any time.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator, Sequence
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
from lab.programs.ensure import ensure_programs
from lab.progress import Progress, silent


class Lab:
    """One lab by name. Making the object does nothing; every method looks at the machine anew."""

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
        """Raise LabError when there is no such lab."""
        found = description.load(self.state)
        if found is None:
            raise LabError(f"there is no lab {self.name!r}; start it with `lab up --name {self.name}`")
        return found

    def exists(self) -> bool:
        return description.load(self.state) is not None

    @property
    def control_plane(self) -> Machine:
        return control_plane_machine(self.state)

    def node(self, name: str) -> Machine:
        """Raise LabError when the lab has no node of this name."""
        names = self.node_names()
        if name not in names:
            raise LabError(f"lab {self.name!r} has no node {name!r}; it has {', '.join(names) or 'none'}")
        return node_machine(self.state, name)

    def node_names(self) -> list[str]:
        return [node_name(number) for number in range(1, self.describe().nodes + 1)]

    def nodes(self) -> list[Machine]:
        return [self.node(name) for name in self.node_names()]

    def api(self) -> Api:
        """A client with all rights, for a few objects; use a real client for more."""
        return Api(self.describe().addresses.server, self.state.certificates)

    def up(
        self,
        nodes: int | None = None,
        *,
        images: Sequence[Path] = (),
        node_grace_seconds: int | None = None,
        controllers: bool = True,
    ) -> None:
        """Start or repair the lab and return when its nodes are Ready and Pods can be made.

        nodes: 0 is a control plane only; None keeps the number it has, 1 for a new lab.
        images: OCI archives that every node has from its first moment.
        node_grace_seconds: how long a node may be silent before it is NotReady.
        controllers: False leaves controller manager, scheduler and storage out: for tests of an API server only.
        """
        # Half of what the package loads is for this alone, and Ansible runs `lab node exec` for every task on a node.
        from lab.cluster.start import Starter  # noqa: PLC0415

        preflight.check_machine(own={each.name for each in recall(self.cache)})
        programs = ensure_programs(self.cache, self._progress)
        with self._lock():
            wanted = self._want(nodes, node_grace_seconds)
            archives = [read_archive(path) for path in images]
            imported = {each.digest: each.reference for each in archives}
            wanted = replace(wanted, images={**wanted.images, **imported}, programs=programs.named)
            starter = Starter(self.state, wanted, programs, cache=self.cache, progress=self._progress)
            starter.run(archives, controllers=controllers)
            description.save(self.state, wanted)

    @contextlib.contextmanager
    def running(self, nodes: int = 1, **options: object) -> Iterator[Lab]:
        """Have the lab up inside the block, begun from nothing, and nothing of it left after.

        An error that leaves it is told what the control plane's programs that have ended said last.
        """
        self.down()  # whoever was killed in this block left one of this name, with all that ran on it
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
        """Remove every process, link, mount, cgroup, loop device and file of the lab. No lab is no error."""
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
                # Never into a mount, should one be left; and twice as fast as Python where images are large.
                subprocess.run(["rm", "-rf", "--one-file-system", self.state.root], check=True)
            with contextlib.suppress(OSError):
                self.state.root.parent.rmdir()

    def import_image(self, path: Path, *, reference: str | None = None) -> str:
        """Put an OCI archive's image on every node and return its reference. A second import does nothing."""
        archive = read_archive(path, reference=reference)
        with self._lock():
            known = self.describe()
            targets = [each for each in self.nodes() if not imports.has_imported(each, archive)]
            if archive.digest in known.images and not targets:
                return archive.reference
            client = ensure_programs(self.cache, self._progress).node("ctr")
            self._progress(f"importing {archive.reference} into {len(targets)} nodes")
            kept = keep(archive, self.state.archives)
            description.save(self.state, replace(known, images={**known.images, archive.digest: archive.reference}))
            # A node that is down or frozen gets the image when `up` brings it back.
            reachable = [each for each in targets if each.pid() is not None and not each.is_frozen()]
            in_parallel([partial(imports.import_into, each, kept, client) for each in reachable])
        return archive.reference

    def image_references(self) -> dict[str, list[str]]:
        """The images of each node that runs."""
        client = ensure_programs(self.cache, self._progress).node("ctr")
        return {each.name: imports.list_references(each, client) for each in self.nodes() if each.pid() is not None}

    def _want(self, nodes: int | None, node_grace_seconds: int | None) -> Description:
        known = description.load(self.state)
        if known is None:
            return description.allocate(
                self.cache,
                self.state,
                nodes=1 if nodes is None else nodes,
                node_grace_seconds=node_grace_seconds or DEFAULT_NODE_GRACE_SECONDS,
                progress=self._progress,
            )
        wanted = replace(
            known,
            nodes=known.nodes if nodes is None else nodes,
            node_grace_seconds=node_grace_seconds or known.node_grace_seconds,
        )
        description.check_node_count(wanted.nodes)
        if wanted.nodes < known.nodes:
            raise LabError(
                f"lab {self.name!r} has {known.nodes} nodes and cannot shrink to {wanted.nodes};"
                f" remove it with `lab down --name {self.name}` and start it again"
            )
        description.save(self.state, wanted)
        return wanted

    def _lock(self) -> contextlib.AbstractContextManager[None]:
        return locked(self.cache, f"lab-{self.name}", self._progress)

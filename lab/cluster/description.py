# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stored description of a lab: its index, its nodes, its imported images."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from lab.cluster.distributions import DISTRIBUTIONS, Distribution
from lab.cluster.kubeconfig import write_private
from lab.errors import LabError
from lab.locks import locked
from lab.machines import network
from lab.machines.addresses import MAX_NODES, Addresses, choose_index
from lab.paths import STATE_ROOT, Cache, State
from lab.programs.modules import MINOR
from lab.progress import Progress

DEFAULT_NODE_GRACE_SECONDS = 20
"""Longer than a busy two-core machine delays a kubelet, shorter than Kubernetes' 50."""


@dataclass(frozen=True, kw_only=True)
class Description:
    index: int
    nodes: int
    node_grace_seconds: int = DEFAULT_NODE_GRACE_SECONDS
    images: dict[str, str] = field(default_factory=dict)
    """Reference by digest of each imported archive, in the order of import."""
    kubernetes: str = MINOR
    """The minor version that the lab runs."""
    feature_gates: dict[str, bool] = field(default_factory=dict)
    """Feature gates of the API server and the kubelets that differ from their defaults."""
    like: str = ""
    """The distribution whose settings the lab has, a name of DISTRIBUTIONS."""
    programs: dict[str, str] = field(default_factory=dict)
    """Path and version, by name, of the programs that the user has named instead of built ones."""

    @property
    def addresses(self) -> Addresses:
        return Addresses(index=self.index)

    @property
    def distribution(self) -> Distribution:
        return DISTRIBUTIONS[self.like]


def load(state: State) -> Description | None:
    """Return the description, None if there is no such lab."""
    try:
        fields: dict[str, Any] = json.loads(state.description.read_text())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise LabError(f"{state.description} is damaged ({error}); run `lab down --name {state.name}`") from error
    return Description(**fields)


def save(state: State, description: Description) -> None:
    write_private(state.description, json.dumps(asdict(description)))


def allocate(cache: Cache, state: State, progress: Progress, *, nodes: int, **settings: Any) -> Description:
    """Reserve an address range for a new lab. A lock keeps two new labs from the same range.

    settings: other fields of the description.
    """
    check_node_count(nodes)
    with locked(cache, "labs", progress):
        index = choose_index(used=_used_indexes(), host_networks=network.host_networks())
        description = Description(index=index, nodes=nodes, **settings)
        state.root.mkdir(parents=True, exist_ok=True, mode=0o755)
        save(state, description)
    return description


def check_node_count(nodes: int) -> None:
    if not 0 <= nodes <= MAX_NODES:
        raise LabError(f"--nodes {nodes}: use 0 (control plane only) to {MAX_NODES}")


def _used_indexes() -> list[int]:
    descriptions = [load(State(name=path.parent.name)) for path in STATE_ROOT.glob("*/lab.json")]
    return [description.index for description in descriptions if description is not None]

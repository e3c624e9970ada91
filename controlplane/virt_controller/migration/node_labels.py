# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads node labels from the cache, to choose nodes that a guest can go to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from controlplane.api.objects.decode import decode
from controlplane.api.objects.node import Node
from controlplane.api.objects.resources import Key
from controlplane.engine.ports import Cache


def node_label_reader(nodes: Cache) -> Callable[[str], Mapping[str, str]]:
    """Return a function from a node's name to its labels; empty for an unknown node."""

    def labels_of(name: str) -> Mapping[str, str]:
        raw = nodes.get(Key("", name))
        return {} if raw is None else decode(raw, Node).metadata.labels

    return labels_of


def other_nodes_reader(nodes: Cache) -> Callable[[str], Iterator[Mapping[str, str]]]:
    """Return a function from a node's name to the labels of each other node."""

    labels_of = node_label_reader(nodes)

    def labels_of_others(name: str) -> Iterator[Mapping[str, str]]:
        for key in nodes.keys():  # noqa: SIM118 - a cache is no dict
            if key.name != name:
                yield labels_of(key.name)

    return labels_of_others

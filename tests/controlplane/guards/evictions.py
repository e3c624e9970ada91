# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What keeps a guest when somebody evicts its Pod, and what lets a node go all the same."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_JUDGE = "controlplane/virt_api/eviction.py"
_BY_JUDGE = ("tests/controlplane/virt_api/test_eviction.py",)
_ANSWER = "controlplane/virt_api/evictions.py"
_BY_ANSWER = ("tests/controlplane/virt_api/test_evictions.py",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file=_JUDGE,
        line="    if vmi is None or pod.owner is None or pod.owner.uid != vmi.metadata.uid:\n",
        without="    if vmi is None or pod.owner is None:\n",
        because="A Pod of a run that is gone would keep its node for another run's strategy.",
        tests=_BY_JUDGE,
    ),
    Guard(
        file=_JUDGE,
        line="""    if not node or vmi.status.node_name not in ("", node):\n""",
        without="    if not node:\n",
        because="A Pod that a guest is on its way to would be taken for the one it leaves.",
        tests=_BY_JUDGE,
    ),
    Guard(
        file=_JUDGE,
        line="    if vmi.status.evacuation_node_name == node:\n",
        without="    if vmi.status.evacuation_node_name:\n",
        because="A mark of a node that it has left would keep it for ever on the next one.",
        tests=_BY_JUDGE,
    ),
    Guard(
        file=_ANSWER,
        line="            if vmi.metadata.annotations.get(EVICTION_SOURCE) != source:",
        without="            if source:",
        because="What a person asks for would count as the descheduler's, which had asked before.",
        tests=_BY_ANSWER,
    ),
    Guard(
        file="controlplane/virt_controller/vmi/status.py",
        line="    node = status.evacuation_node_name\n    if not node:",
        without="    node = status.evacuation_node_name\n    if status.node_name:",
        because="Nobody would see that a drain waits for this machine.",
        tests=("tests/controlplane/virt_controller/vmi/test_status.py",),
    ),
    Guard(
        file=_ANSWER,
        line="why if is_proven else to_anybody",
        without="why",
        because="Whoever reaches virt-api learns of anybody's machine whose it is, and by which disk it cannot move.",
        tests=_BY_ANSWER,
    ),
    Guard(
        file=_ANSWER,
        line='why = str(error) if is_proven else "its log says why"',
        without="why = str(error)",
        because="What virt-api could not read has a name that whoever asks need not know.",
        tests=_BY_ANSWER,
    ),
    Guard(
        file=_ANSWER,
        line="and not asked.is_dry:\n",
        without=":\n",
        because="A dry run must write nothing.",
        tests=_BY_ANSWER,
    ),
    Guard(
        file=_ANSWER,
        line='        except (ApiError, DecodeError) as error:\n            log.warning("cannot judge an eviction"',
        without='        except DecodeError as error:\n            log.warning("cannot judge an eviction"',
        because="A guest is not given up, and nothing ends in a bug's words, because nobody could be asked.",
        tests=_BY_ANSWER,
    ),
    Guard(
        file=_ANSWER,
        line="        if not self._of_namespaces.take(peer, asked.namespace, 1):",
        without='        if not self._of_namespaces.take(peer, "", 1):',
        because="A tenant that evicts without end keeps everybody's drains from their answers.",
        tests=_BY_ANSWER,
    ),
    Guard(
        file=_ANSWER,
        line='patch, subresource="status", uid=uid)',
        without='patch, subresource="status")',
        because="The next run of a machine would be marked as one that is to leave a node on which it is not.",
        tests=_BY_ANSWER,
    ),
    Guard(
        file=_ANSWER,
        line="            self._of_namespaces.give_back(peer, asked.namespace, 1)\n",
        without="            pass\n",
        because="Places that are never given back end all evictions of a namespace.",
        tests=_BY_ANSWER,
    ),
    Guard(
        file=_ANSWER,
        line="            self._places.give_back(peer, 1)\n",
        without="            pass\n",
        because="After so many reviews no eviction of that API server would be answered any more.",
        tests=_BY_ANSWER,
    ),
    Guard(
        file="controlplane/virt_api/evacuation.py",
        line="                resource_version=vmi.metadata.resource_version,\n",
        without="",
        because="The mark of another node, set meanwhile, would be taken off in its place.",
        tests=_BY_ANSWER,
    ),
    Guard(
        file=_ANSWER,
        line="        except NotFound:\n            return None\n",
        without="        except (NotFound, DecodeError):\n            return None\n",
        because="A guest whose instance cannot be read would be given up as one that is gone.",
        tests=_BY_ANSWER,
    ),
)

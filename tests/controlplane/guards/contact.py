# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is believed of a launcher, and how long: what it says that is no text, and when it is gone or back."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_BY_HOSTILE = ("tests/controlplane/hypervisor/test_hostile.py",)
_REGISTRY = "controlplane/virt_handler/launchers/registry.py"
_BY_REGISTRY = ("tests/controlplane/virt_handler/launchers/test_registry.py",)
_BY_RECONCILER = ("tests/controlplane/virt_handler/vmi/test_reconciler.py",)
_BY_LOOK = ("tests/controlplane/virt_handler/launchers/test_session_look.py",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file="controlplane/virt_handler/launchers/session.py",
        line="        async with self._looking:\n            connection = self._require()",
        without="        if True:\n            connection = self._require()",
        because="A QEMU that is there for a moment, while its start fails, would be a run, and its going the end.",
        tests=("tests/controlplane/virt_handler/launchers/test_session_start.py",),
    ),
    Guard(
        file="controlplane/hypervisor/calls.py",
        line="            failure = translate_text_error(self._doing, error) or error\n",
        without="            failure = error\n",
        because="A launcher that answers in bytes that are no text is taken for a bug of ours.",
        tests=_BY_HOSTILE,
    ),
    Guard(
        file="controlplane/hypervisor/errors.py",
        line="    said = error.__cause__ if isinstance(error, SystemError) else error\n",
        without="    said = error\n",
        because="Of a failure whose reason is no text the binding raises another error than of an answer.",
        tests=_BY_HOSTILE,
    ),
    Guard(
        file="controlplane/hypervisor/events.py",
        line="    except UnicodeError:\n",
        without="    except KeyError:\n",
        because="A launcher must not write a traceback into our log with each event that it sends.",
        tests=_BY_HOSTILE,
    ),
    Guard(
        file="controlplane/virt_handler/launchers/observation.py",
        line="        except (UnreadableError, NotText) as error:\n",
        without="        except UnreadableError as error:\n",
        because="A launcher whose description is no text must not cost a new contact at each look.",
        tests=_BY_LOOK,
    ),
    Guard(
        file="controlplane/virt_launcher/image.py",
        line="    if not names[0].isprintable():",
        without="    if False:",
        because="A report with a path that is no text is refused by its reader, who can only say that it is wrong.",
        tests=("tests/controlplane/virt_launcher/test_image.py",),
    ),
    Guard(
        file=_REGISTRY,
        line="    return task is not None and not task.done() and not task.cancelling()\n",
        without="    return task is not None and not task.cancelling()\n",
        because="A Pod that is listed again when its contact has just ended would never be contacted again.",
        tests=_BY_REGISTRY,
    ),
    Guard(
        file=_REGISTRY,
        line="session.pod = pod if pod.owner is not None else _with_owners_of(session.pod, pod)",
        without="session.pod = pod",
        because="A launcher whose VMI was deleted with cascade=orphan would be nobody's, and remembered for ever.",
        tests=_BY_REGISTRY,
    ),
    Guard(
        file=_REGISTRY,
        line="        if after is not None and pod is None:\n            return  # it is there, and no more is known\n",
        without="",
        because="A Pod that cannot be read is taken for gone, and its guest for one that is to be ended.",
        tests=_BY_REGISTRY,
    ),
    Guard(
        file=_REGISTRY,
        line="        for key in self.keys():\n            self._changed(key)\n",
        without="",
        because="What is said of a virt-node that was away would stand long after it is back.",
        tests=_BY_REGISTRY,
    ),
    Guard(
        file="controlplane/virt_handler/vmi/memory.py",
        line="memory is None or memory.uid != vmi.metadata.uid:",
        without="memory is None:",
        because="Who takes a VMI's name would have its grace period, and what was found of its launcher.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file="controlplane/virt_handler/vmi/reconciler.py",
        line="                self.memories.forget(key)\n",
        without="",
        because="A VMI that is gone would be remembered for as long as the process lives.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file="controlplane/virt_handler/vmi/reconciler.py",
        line="        if not self._vmis.synced:\n            raise Unavailable",
        without="        if not self._vmis.synced:\n            return None\n            raise Unavailable",
        because="What happened while VMIs could not be listed would be looked at when something else happens.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file="controlplane/virt_handler/vmi/decide.py",
        line="    if not world.are_launchers_known:\n        plan = Plan(",
        without="    if False:\n        plan = Plan(",
        because="A launcher that is lost while Pods cannot be listed would not be looked for when they can again.",
        tests=("tests/controlplane/virt_handler/vmi/test_decide.py",),
    ),
    Guard(
        file="controlplane/virt_handler/vmi/status.py",
        line="told is not None and told.reason == VIRT_NODE_NOT_READY and world.node_trouble is None",
        without="False",
        because="A machine must not say that virt-node is missed when it is back.",
        tests=("tests/controlplane/virt_handler/vmi/test_status.py",),
    ),
    Guard(
        file="controlplane/hypervisor/connection.py",
        line="KEEPALIVE_SECONDS = 15\n",
        without="KEEPALIVE_SECONDS = 2\n",
        because="A hundred idle guests would wake their node a hundred times a second for nothing.",
        tests=_BY_HOSTILE,
    ),
    Guard(
        file="controlplane/virt_handler/launchers/session.py",
        line="beside = (self._agent.follow, self._freeze.follow, self._network.follow, self._taking.follow)",
        without="beside = (self._agent.follow, self._freeze.follow, self._taking.follow)",
        because="Rules that somebody flushed would be missing until virt-handler is started anew.",
        tests=("tests/controlplane/virt_handler/launchers/test_session_verbs.py",),
    ),
    Guard(
        file="controlplane/virt_handler/launchers/network.py",
        line="        except (NodeAway, NotThere):",
        without="        except NotThere:",
        because="A roll-out of virt-node would be told as the lost network of every guest.",
        tests=("tests/controlplane/virt_handler/launchers/test_network.py",),
    ),
    Guard(
        file="controlplane/virt_handler/launchers/network.py",
        line="TAP_GONE if told.is_tap_open is False and self._has_guest() else",
        without="TAP_GONE if False else",
        because="A guest whose tap was deleted under it would have no network, and nothing would say so.",
        tests=("tests/controlplane/virt_handler/launchers/test_network.py",),
    ),
    Guard(
        file="controlplane/virt_handler/launchers/session.py",
        line="self._sighting.is_connected and _is_up(self._sighting.state)",
        without="True",
        because="A machine that is about to start would be told to have lost its network.",
        tests=("tests/controlplane/virt_handler/launchers/test_session_verbs.py",),
    ),
    Guard(
        file="controlplane/virt_handler/vmi/status.py",
        line="        case Alive() if world.launcher is not None and world.launcher.sighting.network_trouble:\n",
        without="        case Alive() if False:\n",
        because="A guest without its network would look as if all were well.",
        tests=("tests/controlplane/virt_handler/vmi/test_status.py",),
    ),
    Guard(
        file="controlplane/virt_node/network/nft.py",
        line="    if wanted in _read_back and _read(table) == _read_back[wanted]:\n",
        without="    if wanted in _read_back:\n",
        because="Rules that were written once in some Pod would be taken for those that are there in every one.",
        tests=("tests/controlplane/virt_node/network/test_nft.py",),
    ),
)

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Between the process that is root and the one that is nobody: each takes the other for captured."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_SERVER = "controlplane/virt_node/server.py"
_CHANNEL = "controlplane/node_link/channel.py"
_UNWANTED = "controlplane/node_link/unwanted.py"
_CLIENT = "controlplane/virt_handler/node_client.py"
_REPORTS = "controlplane/virt_handler/report_file.py"
_SERVICE = "controlplane/virt_node/service.py"
_WORKERS = "controlplane/virt_node/workers.py"
_MASQUERADE = "controlplane/virt_node/network/masquerade.py"
_BY_MASQUERADE = ("tests/controlplane/virt_node/network/test_masquerade.py",)
_BY_HOSTILE_NODE = ("tests/controlplane/virt_handler/test_hostile_virt_node.py",)
_BY_WORKERS = ("tests/controlplane/virt_node/test_workers.py",)
_BY_SERVICE = ("tests/controlplane/virt_node/test_service.py",)
_BY_SERVER = ("tests/controlplane/virt_node/test_server.py",)
_BY_CHANNEL = ("tests/controlplane/node_link/test_channel.py",)
_BY_UNWANTED = ("tests/controlplane/node_link/test_unwanted.py",)
_BY_CLIENT = ("tests/controlplane/virt_handler/test_node_client.py",)

_INOTIFY = "controlplane/virt_node/inotify.py"
_BY_INOTIFY = ("tests/controlplane/virt_node/test_inotify.py",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file="controlplane/domain/network.py",
        line="    if not is_usable(network):\n",
        without="    if False:\n",
        because="A captured virt-handler gives a guest the addresses of its Pod's localhost.",
        tests=_BY_SERVICE,
    ),
    Guard(
        file=_REPORTS,
        line="        except BaseException:\n            self._unwanted.add(descriptor)\n            raise\n",
        without="        except BaseException:\n            raise\n",
        because="A report for which nobody waits any more, while every thread is busy, stays open for good.",
        tests=_BY_CLIENT,
    ),
    Guard(
        file=_REPORTS,
        line='            own_thread.begin("report", lambda: self._read(descriptor), settle)\n',
        without=(
            "            asyncio.get_running_loop().run_in_executor(None, self._read, descriptor).add_done_callback(\n"
            "                lambda one: settle(one.result(), None)\n"
            "            )\n"
        ),
        because="Reports that come to no end take the threads that everything else on the node needs.",
        tests=_BY_CLIENT,
        may_hang=True,
    ),
    Guard(
        file=_REPORTS,
        line="            async with asyncio.timeout(self._seconds):\n",
        without="            if True:\n",
        because="A start waits for ever for a report that comes to no end.",
        tests=_BY_CLIENT,
        may_hang=True,
    ),
    Guard(
        file=_REPORTS,
        line="            await self._places.acquire()\n",
        without="            pass\n",
        because="Each report that comes to no end is a thread more.",
        tests=_BY_CLIENT,
    ),
    Guard(
        file=_REPORTS,
        line="            self._places.release()\n            self._unwanted.add(descriptor)\n",
        without="            self._unwanted.add(descriptor)\n",
        because="A node that was short of threads for a moment reads no report any more.",
        tests=_BY_CLIENT,
        may_hang=True,
    ),
    Guard(
        file=_CLIENT,
        line="            await asyncio.sleep(0)  # whoever talks",
        without="            pass  # whoever talks",
        because="A virt-node that talks without a pause has virt-handler's loop for itself.",
        tests=_BY_HOSTILE_NODE,
    ),
    Guard(
        file=_CLIENT,
        line="        if not isinstance(greeting, Hello):\n            raise",
        without="        if False:\n            raise",
        because="Who has not said which version it speaks is believed.",
        tests=_BY_HOSTILE_NODE,
    ),
    Guard(
        file=_CLIENT,
        line='                    raise ProtocolError("virt-node greeted twice")',
        without="                    pass",
        because="Whoever waits for virt-node is woken by each greeting.",
        tests=_BY_HOSTILE_NODE,
    ),
    Guard(
        file=_MASQUERADE,
        line="ip saddr != {{ 0.0.0.0, {guest} }} drop;",
        without="ip saddr != {{ 0.0.0.0, {guest} }} accept;",
        because="A guest speaks to its Pod, or to the world, with another's address.",
        tests=_BY_MASQUERADE,
    ),
    Guard(
        file=_MASQUERADE,
        line="ip daddr 127.0.0.0/8 drop;",
        without="ip daddr 127.0.0.1 drop;",
        because="A guest reaches what listens on its Pod's localhost.",
        tests=_BY_MASQUERADE,
    ),
    Guard(
        file=_CLIENT,
        line="                if not one.done():\n",
        without="                if one is not None:\n",
        because="Somebody who gives up in the moment in which the connection ends would end virt-handler.",
        tests=_BY_HOSTILE_NODE,
    ),
    Guard(
        file=_CLIENT,
        line="    except BaseException:\n        connection.close()\n        raise",
        without="    except BaseException:\n        raise",
        because="While virt-node is away every dial would hold a descriptor until somebody collects garbage.",
        tests=_BY_CLIENT,
    ),
    Guard(
        file="controlplane/node_link/messages.py",
        line="_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)",
        without="_UNREADABLE = (msgspec.MsgspecError, RecursionError)",
        because="A byte that is no text, sent by one end, is the end of the other end's process.",
        tests=("tests/controlplane/node_link/test_messages.py",),
    ),
    Guard(
        file=_SERVER,
        line='    except* Exception:\n        log.exception("bug in a conversation with virt-handler")',
        without='    except* LookupError:\n        log.exception("bug in a conversation with virt-handler")',
        because="A bug that one request meets is the end of root's process.",
        tests=_BY_SERVER,
    ),
    Guard(
        file=_SERVER,
        line="        channel.close(left)\n",
        without="        channel.close()\n        left()\n",
        because="Where the kernel takes what nobody asked for, a captured virt-handler has ever more threads wait.",
        tests=_BY_SERVER,
    ),
    Guard(
        file=_SERVER,
        line="if message.id in self._open or len(self._open) >= OUTSTANDING:",
        without="if message.id in self._open:",
        because="A captured virt-handler asks until root has no memory.",
        tests=_BY_SERVER,
    ),
    Guard(
        file=_SERVER,
        line="if message.id in self._open or len(self._open) >= OUTSTANDING:",
        without="if len(self._open) >= OUTSTANDING:",
        because="A request that is forgotten goes on for ever, and cannot be taken back.",
        tests=_BY_SERVER,
        may_hang=True,
    ),
    Guard(
        file=_SERVER,
        line="                task.add_done_callback(lambda _done: self._open.pop(number))",
        without="                task.add_done_callback(lambda _done: None)",
        because="Requests that ended count as open, until no more are taken.",
        tests=_BY_SERVER,
    ),
    Guard(
        file=_SERVER,
        line="        if not isinstance(greeting, Hello) or greeting.protocol != PROTOCOL:",
        without="        if not isinstance(greeting, Hello):",
        because="A virt-handler of another release is misunderstood.",
        tests=_BY_SERVER,
    ),
    Guard(
        file=_CHANNEL,
        line="        if is_cut or len(descriptors) > self._takes:\n            self._unwanted.add(*descriptors)",
        without="        if is_cut or len(descriptors) > self._takes:",
        because="Descriptors that come unasked stay open.",
        tests=_BY_CHANNEL,
    ),
    Guard(
        file="controlplane/virt_node/launcher_process.py",
        line="        refuse_descriptors(client)  #",
        without="        #",
        because="A launcher keeps a thread of virt-node's for as long as it likes.",
        tests=("tests/controlplane/virt_node/test_launcher_process.py",),
    ),
    Guard(
        file="controlplane/virt_node/stillness.py",
        line="            faulthandler.dump_traceback_later(seconds, exit=True)\n",
        without="            faulthandler.dump_traceback_later(seconds)\n",
        because="A virt-node whose loop stands still stays so for good, and nothing starts on its node.",
        tests=("tests/controlplane/virt_node/test_stillness.py",),
        may_hang=True,
    ),
    Guard(
        file=_UNWANTED,
        line='own_thread.begin("close", self._close, self._settle, interrupt_after=_PATIENCE_SECONDS)\n',
        without="self._settle(self._close(), None)\n",
        because="A captured virt-handler stops virt-node for good with a socket whose close waits.",
        tests=_BY_UNWANTED,
    ),
    Guard(
        file="controlplane/own_thread.py",
        line="    if interrupt_after is not None:\n",
        without="    if False:\n",
        because="A captured virt-handler keeps its successor out for as long as it likes.",
        tests=_BY_UNWANTED,
    ),
    Guard(
        file=_CHANNEL,
        line="CMSG_SPACE(253 *",
        without="CMSG_SPACE(4 *",
        because="What there is no room for is closed by whoever receives, which may take for ever.",
        tests=_BY_UNWANTED,
    ),
    Guard(
        file=_CHANNEL,
        line="            self._unwanted.add(self._socket.detach())\n",
        without="            self._socket.close()\n",
        because="A captured virt-handler stops virt-node for good with what it sent before it was left.",
        tests=_BY_UNWANTED,
    ),
    Guard(
        file=_CHANNEL,
        line="            refuse_descriptors(connection)\n",
        without="            pass\n",
        because="A captured virt-handler has virt-node wait for what it closes, though the kernel could refuse it.",
        tests=_BY_UNWANTED,
    ),
    Guard(
        file=_SERVER,
        line="        refuse_descriptors(server)\n",
        without="",
        because="What is sent before anybody is let in would come along, though the kernel could refuse it.",
        tests=_BY_SERVER,
    ),
    Guard(
        file=_CLIENT,
        line=" or found.st_uid != layout.UID or not is_named:\n",
        without=" or found.st_uid != layout.UID:\n",
        because="A virt-node gone wrong has virt-handler wait for as long as it likes when a contact ends.",
        tests=_BY_CLIENT,
    ),
    Guard(
        file=_CLIENT,
        line="            if len(self._unwanted) > _UNWANTED:\n",
        without="            if False:\n",
        because="A virt-node gone wrong fills virt-handler with descriptors faster than they can be closed.",
        tests=_BY_CLIENT,
    ),
    Guard(
        file=_CHANNEL,
        line="        is_cut = bool(flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC))",
        without="        is_cut = bool(flags & socket.MSG_CTRUNC)",
        because="Half a message is taken for one.",
        tests=_BY_CHANNEL,
    ),
    Guard(
        file=_CLIENT,
        line="        if not stat.S_ISSOCK(found.st_mode) or found.st_uid",
        without="        if found.st_uid",
        because="Something else than a launcher's socket is dialled.",
        tests=_BY_CLIENT,
    ),
    Guard(
        file=_CLIENT,
        line="        if waiting is None or waiting.done():\n            self._drop(descriptor)",
        without="        if waiting is None or waiting.done():\n            pass",
        because="An answer that nobody waits for any more leaves its descriptor open.",
        tests=_BY_CLIENT,
    ),
    Guard(
        file=_WORKERS,
        line="            await turn.lock.acquire()\n            stack.callback(turn.lock.release)\n",
        without="",
        because="One Pod takes as many threads of root's as it is asked about.",
        tests=_BY_WORKERS,
    ),
    Guard(
        file=_WORKERS,
        line="                forget(result, error)\n            elif",
        without="                pass\n            elif",
        because="Of each request that is taken back root keeps a descriptor, until it has none left.",
        tests=_BY_WORKERS,
    ),
    Guard(
        file=_WORKERS,
        line="            stack.callback(turn.lock.release)\n",
        without="",
        because="A Pod whose request was taken back while it waited for a place is never looked at again.",
        tests=_BY_WORKERS,
        may_hang=True,
    ),
    Guard(
        file=_WORKERS,
        line="        except RuntimeError:  # the node has no thread for it\n            leave()\n",
        without="        except RuntimeError:  # the node has no thread for it\n",
        because="A Pod whose thread could not begin is never looked at again, and its place is lost.",
        tests=_BY_WORKERS,
        may_hang=True,
    ),
    Guard(
        file=_CHANNEL,
        line='self.end()\n                    raise Closed(f"cannot send',
        without='pass\n                    raise Closed(f"cannot send',
        because="A packet that cannot be sent leaves both ends waiting for ever.",
        tests=_BY_CHANNEL,
    ),
    Guard(
        file=_CHANNEL,
        line="            remove(self._socket.fileno())",
        without="            pass",
        because="The loop goes on waiting for a number that is another socket's by then.",
        tests=_BY_CHANNEL,
    ),
    Guard(
        file=_SERVICE,
        line=(
            "        has_directory = self.pods.has_run(request.pod_uid)\n"
            "        processes, emulators = count_processes(request.pod_uid, self.proc)\n"
        ),
        without=(
            "        processes, emulators = count_processes(request.pod_uid, self.proc)\n"
            "        has_directory = self.pods.has_run(request.pod_uid)\n"
        ),
        because="A process that is started between the two looks is missed: a Pod that lives is taken for gone.",
        tests=_BY_SERVICE,
    ),
    Guard(
        file=_SERVICE,
        line='return _failed(request, "gone", str(error))',
        without='return _failed(request, "failed", str(error))',
        because="A libvirtd that is being restarted must not be told to its user as a start that failed.",
        tests=_BY_SERVICE,
    ),
    Guard(
        file=_SERVICE,
        line="            except OSError:\n                os.close(found)\n                raise\n",
        without="            except OSError:\n                raise\n",
        because="Each socket to which nobody can be admitted stays open in root's process, until it has none left.",
        tests=_BY_SERVICE,
    ),
    Guard(
        file=_CLIENT,
        line="            await self._offer.become(None)\n",
        without="",
        because="What a virt-node that left offered is taken for what its successor offers.",
        tests=_BY_CLIENT,
    ),
    Guard(
        file=_CLIENT,
        line="            failures = 0 if self._offer.state is not None else failures\n",
        without="            failures = 0\n",
        because="A virt-node of another release is called ten times a second for all of an upgrade.",
        tests=_BY_CLIENT,
    ),
    Guard(
        file=_INOTIFY,
        line="armed is not None and armed[0] == identity and not armed[1].done()",
        without="armed is not None and not armed[1].done()",
        because="A launcher's socket would be waited for above the directory in which it appears, for ever.",
        tests=_BY_INOTIFY,
    ),
    Guard(
        file=_INOTIFY,
        line="self._wake(list(self._waiting) if watch == _OVERFLOW else [watch])",
        without="self._wake([watch])",
        because="What the kernel had no room to tell would be waited for for ever.",
        tests=_BY_INOTIFY,
    ),
    Guard(
        file=_SERVICE,
        line="        async with asyncio.timeout(_NETWORK_SECONDS):",
        without="        async with asyncio.timeout(None):",
        because="A network that is never ready would keep its launcher's start waiting without a word.",
        tests=_BY_SERVICE,
    ),
    Guard(
        file=_SERVER,
        line=".close(places.release)\n",
        without=".close()\n",
        because="Four that are turned away would keep virt-handler out for good.",
        tests=_BY_SERVER,
    ),
    Guard(
        file=_CLIENT,
        line="            self._here.clear()\n",
        without="",
        because="Who waits for virt-node would ask without a pause, and nobody else would have the loop.",
        tests=_BY_CLIENT,
        may_hang=True,
    ),
    Guard(
        file=_CLIENT,
        line="None if is_patient else _DEADLINE_SECONDS",
        without="_DEADLINE_SECONDS",
        because="A launcher whose image takes half a minute to come would never be waited for.",
        tests=_BY_CLIENT,
    ),
)

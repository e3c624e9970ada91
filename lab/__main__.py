# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command `lab`: arguments, exit codes and errors. The work is in other modules."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from lab.cluster import faults
from lab.cluster.distributions import DISTRIBUTIONS
from lab.cluster.inventory import render_inventory
from lab.cluster.lab import Lab
from lab.cluster.status import collect_status, render_status
from lab.errors import LabError
from lab.paths import DEFAULT_NAME, STATE_ROOT, Cache
from lab.programs.choice import choose
from lab.programs.ensure import ensure_programs
from lab.programs.modules import MINOR
from lab.programs.releases import RELEASES
from lab.progress import silent, to_stderr


def parser() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--name", default=DEFAULT_NAME, help="which lab (default: %(default)s)")
    common.add_argument("--quiet", action="store_true", help="no progress lines")
    top = argparse.ArgumentParser(prog="lab", description="A real Kubernetes on this machine, in seconds.")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def add(name: str, text: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=text, description=text, parents=[common])

    build = add("build", "build the programs into the cache; seconds when nothing has changed")
    text = "use this program in all labs instead of a built one; NAME= reverts; repeatable; stored for later builds"
    build.add_argument("--program", action="append", default=[], metavar="NAME=PATH", help=text)
    up = add("up", "start the lab, or repair and complete a running one")
    up.add_argument("--nodes", type=int, help="how many nodes; 0 is a control plane only (default: 1, or as it is)")
    up.add_argument("--image", type=Path, action="append", default=[], help="OCI archive for every node; repeatable")
    up.add_argument("--node-grace", type=int, metavar="SECONDS", help="silence after which a node is NotReady")
    up.add_argument(
        "--kubernetes", metavar="MINOR", help=f"{', '.join(RELEASES)}; built on first use (default: {MINOR})"
    )
    text = "a feature gate of the API server and the kubelets, such as ImageVolume=true; repeatable"
    up.add_argument("--feature-gate", type=feature_gate, action="append", default=[], metavar="NAME=BOOL", help=text)
    text = "a new lab with the settings of this distribution, such as the root of its kubelets; see its README"
    up.add_argument("--like", choices=[*filter(None, DISTRIBUTIONS)], help=text)
    up.add_argument("--no-controllers", action="store_true", help="API server and etcd only; use with --nodes 0")
    down = add("down", "remove the lab and everything that it created")
    down.add_argument("--all", action="store_true", help="every lab of this machine")
    status = add("status", "print the state of the lab")
    status.add_argument("--output", choices=("text", "json"), default="text")
    add("kubeconfig", "print the path of the kubeconfig")
    add("inventory", "print an Ansible inventory with the nodes in group kubevirt_nodes")
    kubectl = add("kubectl", "run kubectl on the lab")
    kubectl.add_argument("argv", nargs=argparse.REMAINDER, metavar="ARGUMENTS")
    _add_image_commands(commands, common)
    _add_node_commands(commands, common)
    kill = add("kill", "kill -9 one program; the lab starts it again")
    kill.add_argument("program", help="etcd, kube-apiserver, kubelet, containerd, ...")
    kill.add_argument("--node", help="on which node")
    return top


def feature_gate(text: str) -> tuple[str, bool]:
    """Parse NAME=true or NAME=false."""
    name, _unused, value = text.partition("=")
    if not name.isalnum() or value not in ("true", "false"):
        raise argparse.ArgumentTypeError(f"{text!r}: write NAME=true or NAME=false, such as ImageVolume=true")
    return name, value == "true"


def _add_image_commands(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], common: argparse.ArgumentParser
) -> None:
    image = commands.add_parser("image", help="put images on the nodes, or list them")
    verbs = image.add_subparsers(dest="verb", required=True, metavar="VERB")
    load = verbs.add_parser("import", help="put an OCI archive's image on every node", parents=[common])
    load.add_argument("file", type=Path)
    load.add_argument("--reference", help="name of the image instead of the archive's")
    verbs.add_parser("list", help="list each node's images", parents=[common])


def _add_node_commands(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], common: argparse.ArgumentParser
) -> None:
    node = commands.add_parser("node", help="run commands on a node, or break it")
    verbs = node.add_subparsers(dest="verb", required=True, metavar="VERB")
    texts = {
        "exec": "run a command on the node",
        "kill": "cut its power; `lab up` starts it again",
        "freeze": "stop all its processes",
        "thaw": "continue them",
        "cut": "disconnect its network",
        "heal": "reconnect its network",
    }
    for verb, text in texts.items():
        command = verbs.add_parser(verb, help=text, parents=[common])
        command.add_argument("node")
        if verb == "exec":
            command.add_argument(
                "argv", nargs="*", metavar="-- COMMAND", help="with its arguments; streams and exit code are passed"
            )


def split_command(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split the arguments at the first `--`. The rest, with its options, is the command to run."""
    words = list(arguments)
    at = words.index("--") if "--" in words else len(words)
    return words[:at], words[at + 1 :]


def main(arguments: Sequence[str] | None = None) -> int:
    before_dashes, command = split_command(sys.argv[1:] if arguments is None else arguments)
    options = parser().parse_args(before_dashes)
    if command:
        options.argv = [*getattr(options, "argv", []), *command]
    try:
        return _run(options)
    except LabError as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1
    except PermissionError as error:
        print(f"lab: {error}; the lab belongs to root: run the same command with sudo", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("lab: interrupted; `lab up` continues, `lab down` removes the lab", file=sys.stderr)
        return 130


def _run(options: argparse.Namespace) -> int:
    progress = silent if options.quiet else to_stderr
    lab = Lab(options.name, progress=progress)
    match options.command:
        case "build":
            choose(lab.cache, options.program)
            programs = ensure_programs(lab.cache, progress)
            built = (programs.kube_directory, programs.etcd_directory, programs.node_directory)
            print(*(directory for directory in built if directory.is_dir()), sep="\n")
            for name, path in sorted(programs.named.items()):
                print(f"not built: {name} from {path}")
        case "up":
            lab.up(
                options.nodes,
                images=options.image,
                node_grace_seconds=options.node_grace,
                controllers=not options.no_controllers,
                kubernetes=options.kubernetes,
                feature_gates=dict(options.feature_gate),
                like=options.like,
            )
        case "down":
            for name in all_names() if options.all else [options.name]:
                Lab(name, progress=progress).down()
        case "status":
            status = collect_status(lab)
            print(json.dumps(status, indent=1) if options.output == "json" else render_status(status))
        case "kubeconfig":
            lab.describe()
            print(lab.kubeconfig)
        case "inventory":
            print(render_inventory(lab))
        case "kubectl":
            _kubectl(lab, options)
        case "image":
            _image(lab, options)
        case "node":
            _node(lab, options)
        case "kill":
            faults.kill_program(lab, options.program, node=options.node)
    return 0


def all_names() -> list[str]:
    """Return the names of all labs of this machine, running or not."""
    return sorted(path.name for path in STATE_ROOT.iterdir() if path.is_dir()) if STATE_ROOT.is_dir() else []


def _kubectl(lab: Lab, options: argparse.Namespace) -> None:
    program = str(
        ensure_programs(Cache.from_environment(), silent, kubernetes=lab.describe().kubernetes).kube("kubectl")
    )
    os.environ["KUBECONFIG"] = str(lab.kubeconfig)
    os.execv(program, [program, *options.argv])  # noqa: S606  kubectl takes over: its output, its exit code


def _image(lab: Lab, options: argparse.Namespace) -> None:
    if options.verb == "import":
        print(lab.import_image(options.file, reference=options.reference))
        return
    for node, references in lab.image_references().items():
        for reference in references:
            print(f"{node}  {reference}")


def _node(lab: Lab, options: argparse.Namespace) -> None:
    if options.verb == "exec":
        if not options.argv:
            raise LabError("give a command after --, such as: lab node exec node-1 -- ps aux")
        command = lab.node(options.node).command(options.argv)
        sys.stdout.flush()
        os.execvp(command[0], command)  # noqa: S606 -- its streams and exit code are to be this process's
    action = {
        "kill": faults.kill_node,
        "freeze": faults.freeze_node,
        "thaw": faults.thaw_node,
        "cut": faults.cut_node,
        "heal": faults.heal_node,
    }[options.verb]
    action(lab, options.node)


if __name__ == "__main__":
    sys.exit(main())

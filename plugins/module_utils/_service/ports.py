# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ports of a Service: as a task declares them, of a machine's interfaces, and over those of a live Service. Pure.

A port is the same one if number and protocol are equal: its name may change. The server assigns another nodePort to a
port that gets its first name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .._client.errors import BadArgument
from .._client.shapes import shape

_PORTS = range(1, 65536)

Object = dict[str, Any]


def declared(listed: list[Mapping[str, Any]]) -> list[Object]:
    """Return the ports that a task lists. Raises BadArgument for an invalid one."""
    return [_port(f"ports[{index}]", port, is_only=len(listed) == 1) for index, port in enumerate(listed)]


def _port(where: str, options: Mapping[str, Any], *, is_only: bool) -> Object:
    for option in ("port", "node_port"):
        if options.get(option) is not None and options[option] not in _PORTS:
            raise BadArgument(f"{where}.{option} is {options[option]}: a port is between 1 and 65535")
    if not is_only and not options.get("name"):
        raise BadArgument(f"{where}: a name is missing; each port of a Service with several ports needs one")
    port: Object = {"port": options["port"], "protocol": options.get("protocol") or "TCP"}
    port["targetPort"] = _target_port(where, options)
    if options.get("name"):
        port["name"] = options["name"]
    if options.get("node_port"):
        port["nodePort"] = options["node_port"]
    return port


def _target_port(where: str, options: Mapping[str, Any]) -> int | str:
    target = options.get("target_port")
    if target is None:
        target = options["port"]
    elif isinstance(target, str) and target.isdigit():
        target = int(target)
    if isinstance(target, bool) or not isinstance(target, (int, str)) or target == "":
        raise BadArgument(f"{where}.target_port: must be a port's number or name, not {shape(target)}")
    return target


def of_guest(listed: list[Mapping[str, Any]]) -> list[Object]:
    """Return ports for those that interfaces forward. Several get a name each, since a Service needs one."""
    result: list[Object] = []
    for port in listed:
        protocol, number = port.get("protocol") or "TCP", port["port"]
        name = port.get("name")
        if len(listed) > 1:
            name = _unused(name or f"port-{number}", protocol, {other["name"] for other in result})
        result.append({**({"name": name} if name else {}), "port": number, "protocol": protocol, "targetPort": number})
    return result


def _unused(name: str, protocol: str, taken: set[str]) -> str:
    """Return a name that no other port has. TCP and UDP of one number are usual: DNS, SIP, QUIC."""
    candidates = (name, f"{name}-{protocol.lower()}", *(f"{name}-{number}" for number in range(2, len(taken) + 3)))
    return next(candidate for candidate in candidates if candidate not in taken)


def over(live: list[Object], wanted: list[Object]) -> list[Object]:
    """Return the declared ports with the other fields of the live ones, such as nodePort, in live order."""
    former = {_key(port): port for port in live}
    positions = {key: position for position, key in enumerate(former)}
    taken = {(_key(port)[1], port["nodePort"]) for port in wanted if "nodePort" in port}
    merged = [{**_kept(former[_key(port)], taken), **port} if _key(port) in former else port for port in wanted]
    return sorted(merged, key=lambda port: positions.get(_key(port), len(live)))


def _key(port: Mapping[str, Any]) -> tuple[int, str]:
    return port["port"], port.get("protocol") or "TCP"


def _kept(port: Object, taken: Iterable[tuple[str, int]]) -> Object:
    """Return a live port, without its nodePort if the task gives that to another port."""
    if (_key(port)[1], port.get("nodePort")) in taken:
        return {name: value for name, value in port.items() if name != "nodePort"}
    return port

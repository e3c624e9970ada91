# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The messages of the kubelet's device plugin API v1beta1 that are used here, as protobuf bytes. No sockets.

Source: k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1/api.proto. One message is read and three are written, all of
strings and lists, so neither a code generator nor a protobuf runtime is needed. Unknown fields are skipped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

VERSION = "v1beta1"
EMPTY = b""
_LENGTH_DELIMITED = 2


def register_request(endpoint: str, resource_name: str) -> bytes:
    """RegisterRequest{version=1, endpoint=2, resource_name=3}."""
    return _text(1, VERSION) + _text(2, endpoint) + _text(3, resource_name)


def device_list(identifiers: Iterable[str], *, is_healthy: bool) -> bytes:
    """ListAndWatchResponse{devices=1: Device{ID=1, health=2}}."""
    health = _text(2, "Healthy" if is_healthy else "Unhealthy")
    return b"".join(_bytes(1, _text(1, identifier) + health) for identifier in identifiers)


def containers_of_allocate_request(data: bytes) -> int:
    """Count container_requests (1) of an AllocateRequest. All devices are equal, so their names do not matter."""
    return sum(1 for number, _unused in fields(data) if number == 1)


def allocate_response(containers: int, container_path: str, host_path: str, permissions: str) -> bytes:
    """AllocateResponse{container_responses=1: {devices=3: {container_path=1, host_path=2, permissions=3}}}."""
    device = _text(1, container_path) + _text(2, host_path) + _text(3, permissions)
    return _bytes(1, _bytes(3, device)) * containers


def _text(number: int, value: str) -> bytes:
    return _bytes(number, value.encode())


def _bytes(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | _LENGTH_DELIMITED) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield (number, content) of each length-delimited field. ValueError when the bytes end too early."""
    offset = 0
    while offset < len(data):
        key, offset = _read_varint(data, offset)
        kind = key & 7
        if kind == _LENGTH_DELIMITED:
            length, offset = _read_varint(data, offset)
            if offset + length > len(data):
                raise ValueError("a message of the kubelet ends in the middle of a field")
            yield key >> 3, data[offset : offset + length]
            offset += length
        elif kind == 0:
            _unused, offset = _read_varint(data, offset)
        elif kind in (1, 5):
            offset += 8 if kind == 1 else 4
        else:
            raise ValueError(f"a message of the kubelet has a field of unknown kind {kind}")


def _read_varint(data: bytes, offset: int) -> tuple[int, int]:
    value = shift = 0
    while offset < len(data) and shift < 64:
        byte = data[offset]
        value |= (byte & 0x7F) << shift
        offset += 1
        shift += 7
        if byte < 0x80:
            return value, offset
    raise ValueError("a message of the kubelet ends in the middle of a number")

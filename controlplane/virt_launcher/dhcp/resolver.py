# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Pod's /etc/resolv.conf, for the guest. Pure."""

from __future__ import annotations

import socket
from dataclasses import dataclass

LIMIT_BYTES = 65536
_SERVERS, _DOMAINS = 3, 32
_LOOPBACK = 127


@dataclass(frozen=True, slots=True)
class Resolver:
    """DNS servers (IPv4, four bytes each) and search domains."""

    servers: tuple[bytes, ...]
    search: tuple[str, ...]


def parse_resolver(text: str) -> Resolver:
    """Parse a resolv.conf. It omits servers that a guest cannot reach (IPv6, the Pod's loopback)."""
    servers: list[bytes] = []
    search: list[str] = []
    for line in text[:LIMIT_BYTES].splitlines():
        fields = line.split("#")[0].split(";")[0].split()
        if len(fields) > 1 and fields[0] == "nameserver":
            servers += _reachable(fields[1])
        elif len(fields) > 1 and fields[0] in ("search", "domain"):
            search = [domain for domain in fields[1:] if domain != "."]  # the last line wins, as in libc
    return Resolver(tuple(servers[:_SERVERS]), tuple(search[:_DOMAINS]))


def search_with(service_domain: str, search: tuple[str, ...]) -> tuple[str, ...]:
    """Return the search domains, first the one of the machine's subdomain, which the kubelet adds to no resolv.conf.

    service_domain: without the cluster's domain, which need not be cluster.local. The Pod's search domains
    contain it; if they do not (dnsPolicy None or Default), the guest does not use the cluster's DNS, and nothing is
    added.
    """
    subdomain, _dot, of_namespace = service_domain.partition(".")
    known = next((domain for domain in search if of_namespace and domain.startswith(f"{of_namespace}.")), "")
    return tuple(dict.fromkeys((f"{subdomain}.{known}", *search))) if known else search


def _reachable(server: str) -> list[bytes]:
    try:
        address = socket.inet_pton(socket.AF_INET, server)
    except OSError:
        return []
    return [] if address[0] == _LOOPBACK else [address]

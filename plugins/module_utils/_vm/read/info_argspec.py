# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of the info modules. A test compares them with the documentation."""

from __future__ import annotations

from typing import Any

from ..._client.argspec import auth_argument_spec
from ...kubevirt_api import names
from ..request import argspec


def info_spec() -> dict[str, Any]:
    """Return the options of kubevirt_replicaset_info. The modules of machines and instances have one more."""
    return {
        **auth_argument_spec(),
        **argspec.wait_spec(),
        "wait_condition": argspec.wait_condition(),
        "name": {"type": "str"},
        "namespace": {"type": "str"},
        "label_selectors": {"type": "list", "elements": "str", "default": []},
        "field_selectors": {"type": "list", "elements": "str", "default": []},
    }


def pool_info_spec() -> dict[str, Any]:
    """Return the options of kubevirt_pool_info."""
    return {**info_spec(), **argspec.wait_spec(names.POOL_API_VERSION)}


def vmi_info_spec() -> dict[str, Any]:
    """Return the options of kubevirt_vmi_info."""
    return {**info_spec(), "guest": {"type": "bool", "default": False}}

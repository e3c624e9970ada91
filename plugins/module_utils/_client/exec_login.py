# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ask the kubernetes library for credentials: exec plugins and auth providers. The only file that imports it.

The library implements these protocols well, but its import takes 0.15 s, which most tasks need not spend.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from .errors import BadArgument, cut

_SAID_LIMIT = 200


class _LastLogLine(logging.Handler):
    """Keeps the last log line. The library reports a failed plugin only in its log."""

    last = ""

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the line."""
        self.last = cut(" ".join(record.getMessage().split()), _SAID_LIMIT)


def credentials(
    config: Mapping[str, Any], *, path: str | None, context: str, persist: bool = False
) -> dict[str, str | None]:
    """Run the user's credential plugin; return its credentials as fields of an Endpoint. persist needs a path."""
    try:
        from kubernetes import client
        from kubernetes import config as loader
    except ImportError as error:
        raise BadArgument(
            "this kubeconfig gets its credentials from a plugin (exec or auth-provider), which needs the Python library"
            " kubernetes in the interpreter that runs the module"
        ) from error
    configuration = client.Configuration()
    try:
        with _listening() as handler:
            if path is None:
                loader.load_kube_config_from_dict(dict(config), context=context, client_configuration=configuration)
            else:
                loader.load_kube_config(
                    path, context=context, client_configuration=configuration, persist_config=persist
                )
    except Exception as error:  # any error of the plugin becomes one sentence for the user
        raise BadArgument(f"context {context}: its credential plugin failed: {type(error).__name__}") from error
    bearer = configuration.api_key.get("BearerToken") or configuration.api_key.get("authorization") or ""
    fields = {
        "token": bearer.partition(" ")[2] or None,
        "cert_file": configuration.cert_file,
        "key_file": configuration.key_file,
    }
    if not any(fields.values()):
        detail = f" ({handler.last})" if handler.last else ""
        raise BadArgument(f"context {context}: its credential plugin gave no credentials{detail}; run it by hand")
    return {name: value for name, value in fields.items() if value}


@contextmanager
def _listening() -> Iterator[_LastLogLine]:
    """Collect the log lines of all loggers during the block."""
    handler, log = _LastLogLine(logging.ERROR), logging.getLogger()
    log.addHandler(handler)
    try:
        yield handler
    finally:
        log.removeHandler(handler)

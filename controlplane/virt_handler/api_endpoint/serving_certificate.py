# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The self-signed key pairs of this process: one for the endpoint, one for migrations.

Each virt-handler creates new ones, in a child process: the libraries for keys and certificates take 10 MiB, which
should not stay in memory on each node. controlplane.links.handler describes how clients get the certificate.
"""

from __future__ import annotations

import asyncio
import ssl
import sys
from dataclasses import dataclass
from typing import Literal

from controlplane.links.handler import server_name

Usage = Literal["server", "peer"]
"""server: for the endpoint. peer: for migrations, at both ends."""

MAKE_SECONDS = 60.0
BEGINS, ENDS = "1970-01-01T00:00:00Z", "9999-12-31T23:59:59Z"
"""Valid at any time, because a node's clock may be wrong when it creates the certificate. Clients accept only the
certificate in the Node's annotation."""
_END = b"-----END CERTIFICATE-----\n"


class PairError(Exception):
    """The key pair could not be created."""


@dataclass(frozen=True, slots=True)
class SelfSignedPair:
    """Certificate and key, PEM."""

    certificate: bytes
    key: bytes

    def __repr__(self) -> str:
        return "SelfSignedPair(...)"  # the generated repr would write the key to logs

    @property
    def der(self) -> bytes:
        """The certificate as it is published on the Node."""
        return ssl.PEM_cert_to_DER_cert(self.certificate.decode("ascii"))


async def make_self_signed_pair(node: str, usage: Usage = "server") -> SelfSignedPair:
    """Make a key pair in a child process. PairError."""
    isolated = ("-I",) if sys.flags.isolated else ()
    child = await asyncio.create_subprocess_exec(
        sys.executable, *isolated, "-B", "-m", __name__, node, usage, stdout=asyncio.subprocess.PIPE
    )
    try:
        async with asyncio.timeout(MAKE_SECONDS):
            output, _unused = await child.communicate()
    except TimeoutError as error:
        child.kill()
        raise PairError(f"no key pair was created within {MAKE_SECONDS:.0f} s") from error
    certificate, end, key = output.partition(_END)
    if child.returncode != 0 or not key:
        raise PairError(f"cannot create a key pair: exit code {child.returncode}; the log above has the cause")
    return SelfSignedPair(certificate + end, key)


def main(node: str, usage: Usage) -> None:
    """Make a key pair and print it, certificate first."""
    from datetime import datetime  # noqa: PLC0415 -- only the child imports it

    from controlplane.tls.certificates import Subject, make_self_signed  # noqa: PLC0415 -- only the child imports it

    subject = Subject("virt-handler", usage, (server_name(node),))
    begins, ends = datetime.fromisoformat(BEGINS), datetime.fromisoformat(ENDS)
    pair = make_self_signed(subject, begins.timestamp(), ends - begins)
    sys.stdout.buffer.write(pair.certificate + pair.key)


if __name__ == "__main__":
    main(sys.argv[1], "peer" if sys.argv[2] == "peer" else "server")

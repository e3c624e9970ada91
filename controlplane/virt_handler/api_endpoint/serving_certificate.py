# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The self-signed key pairs of this process: one for the endpoint, one for migrations.

Each process makes its own. A child makes them: the libraries for keys and certificates take 10 MiB, which no process on
a node should hold for good. How others learn the certificate: controlplane.links.handler.
"""

from __future__ import annotations

import asyncio
import ssl
import sys
from dataclasses import dataclass
from typing import Literal

from controlplane.links.handler import server_name

Usage = Literal["server", "peer"]
"""server: what the door serves with. peer: what is shown in migrations, at either end."""

MAKE_SECONDS = 60.0
BEGINS, ENDS = "1970-01-01T00:00:00Z", "9999-12-31T23:59:59Z"
"""Whatever any clock says, ours while it is made among them: a certificate counts for as long as its Node's annotation
says."""
_END = b"-----END CERTIFICATE-----\n"


class PairError(Exception):
    """The pair could not be made."""


@dataclass(frozen=True, slots=True)
class SelfSignedPair:
    """Certificate and key, PEM."""

    certificate: bytes
    key: bytes

    def __repr__(self) -> str:
        return "OwnPair(...)"  # a key must not get into a log by way of a dataclass's repr

    @property
    def der(self) -> bytes:
        """The certificate as it is announced."""
        return ssl.PEM_cert_to_DER_cert(self.certificate.decode("ascii"))


async def make_self_signed_pair(node: str, usage: Usage = "server") -> SelfSignedPair:
    """Make a pair of this process. PairError."""
    isolated = ("-I",) if sys.flags.isolated else ()
    child = await asyncio.create_subprocess_exec(
        sys.executable, *isolated, "-B", "-m", __name__, node, usage, stdout=asyncio.subprocess.PIPE
    )
    try:
        async with asyncio.timeout(MAKE_SECONDS):
            made, _unused = await child.communicate()
    except TimeoutError as error:
        child.kill()
        raise PairError(f"a pair to serve with was not made within {MAKE_SECONDS:.0f} s") from error
    certificate, end, key = made.partition(_END)
    if child.returncode != 0 or not key:
        raise PairError(f"a pair to serve with could not be made: exit code {child.returncode}; see above")
    return SelfSignedPair(certificate + end, key)


def main(node: str, usage: Usage) -> None:
    """Make a pair and print it, certificate first."""
    from datetime import datetime  # noqa: PLC0415 -- the child's only

    from controlplane.tls.certificates import Subject, make_self_signed  # noqa: PLC0415  -- what this child is for

    subject = Subject("virt-handler", usage, (server_name(node),))
    begins, ends = datetime.fromisoformat(BEGINS), datetime.fromisoformat(ENDS)
    made = make_self_signed(subject, begins.timestamp(), ends - begins)
    sys.stdout.buffer.write(made.certificate + made.key)


if __name__ == "__main__":
    main(sys.argv[1], "peer" if sys.argv[2] == "peer" else "server")

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The process of `python -m lab.storage NAME SERVER`."""

from __future__ import annotations

import logging
import sys

from lab.paths import State
from lab.storage.provisioner import Storage


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    name, server = sys.argv[1:]
    Storage(State(name=name), server).serve()


if __name__ == "__main__":
    main()

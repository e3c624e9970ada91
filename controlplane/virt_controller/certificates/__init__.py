# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The control plane's certificates: filled, handed out and renewed by the leader, without a cut.

    decide   what is to be written, from what is there and the time   (pure)
    observe  the caches' bytes made into what decide wants            (pure)
    apply    the writes
    run      the loop that the leader starts

An authority is replaced in three steps, each seen before the next: the new one joins the old in the
bundle; everybody who verifies us has the bundle; only then is the serving pair issued by the new one.
The old one leaves the bundle when its life is over.
"""

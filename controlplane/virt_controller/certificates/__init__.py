# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The control plane's certificates: filled, handed out and renewed by the leader, without a cut.

    roles     which pairs there are, and whom each is of           (values)
    decide    what is to be written, from what is there and the time   (pure)
    faults    what is wrong with a pair or an authority, and when it falls due   (pure)
    observe   the caches' bytes made into what decide wants            (pure)
    standing  how long things have stood still                         (pure)
    apply     the writes
    run       the loop that the leader starts

An authority is replaced in three steps, each seen before the next: the new one joins the old in the
bundle; everybody who verifies us has the bundle, for a while; only then are the pairs issued by the new
one. The old one leaves the bundle when its life is over.

So it is when the authority's Secret is deleted, emptied or filled with what cannot be used: a new one is
made, and the old one's public certificate is kept, from the bundles that the verifiers hold. An authority
that somebody puts into the Secret is used if it can sign, whatever its key is, and the one before leaves
the bundle when the pairs that were issued by the new one have been used for a while: this way an authority
that must not be trusted any more is got rid of. One that begins later waits for its time.

What was made by a clock that was ahead is made anew when it is seen not to have begun (faults).
"""

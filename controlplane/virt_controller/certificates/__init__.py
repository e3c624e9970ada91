# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The control plane's certificates: the leader creates, distributes and renews them without an interruption.

roles           which key pairs there are, and the subject of each     (values)
decide          what to write, from the observed state and the time    (pure)
faults          what is wrong with a pair or a CA, and when it is due  (pure)
observe         from the caches' bytes to the World of decide          (pure)
observed_since  for how long values have not changed                   (pure)
apply           the writes
run             the loop that the leader starts

A CA is replaced in three steps. The new CA joins the old one in the bundle. Every verifier gets the bundle and keeps it
for SETTLE_SECONDS. Only then does the new CA issue pairs. The old CA leaves the bundle when it ends.

The same happens when the CA's Secret is deleted, emptied or filled with unusable data: virt-controller creates a new
CA, and keeps the old one's public certificate, from the bundles of the verifiers.

An administrator can put another CA into the Secret. It is used if it can sign, with any type of key. The former CA
leaves the bundle when the pairs of the new CA have been used for SETTLE_SECONDS: this is how to remove a CA that must
not be trusted any more. A CA that is not valid yet is not used before that time.

A certificate that is not valid yet, because the issuing clock was ahead, is replaced at once (faults).
"""

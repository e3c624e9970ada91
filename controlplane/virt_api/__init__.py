# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""virt-api: admission of our objects, and the aggregated API subresources.kubevirt.io.

    routes        the table: path, method, what a caller must be allowed to do
    identity      who calls, told by a verified front proxy                  (pure)
    lifecycle     what start, stop and restart write                         (pure)
    options       the bodies of these requests                               (pure)
    discovery     the documents that kubectl and virtctl read                (pure)
    admission     AdmissionReview in and out, JSON patches                   (pure)
    answer        Status objects and HTTP answers
    subresources  authorize, read, decide, write
    admit         the shell around the admission decision
    fair          who gets how much, and whose turn it is      (pure)
    reviews       reviews by turns, each judged in a thread
    server        one request in, one answer out; TLS in tls, connections in listener
    __main__      wiring

Running machines never depend on this process: our own service accounts bypass admission.
"""

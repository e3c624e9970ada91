# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""virt-api: admission of our objects, and the aggregated API subresources.kubevirt.io.

    server         one request in, one response out
    http/          routes, discovery, responses; TLS, and who the caller is
    admission/     reviews of our objects, of evictions and of new migrations
    subresources/  authorize, read, decide, write; or ask the guest's virt-handler
    streams/       consoles, screens and ports of guests
    page/          the files of the console page, for browsers: main.js has the map
    cluster        key pairs, front proxy and configuration, kept by watches
    concurrency    limits for requests and threads
    __main__       wiring

Running machines never depend on this process: our own service accounts bypass admission.
"""

# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The door to the Kubernetes API; the only importer of its client library.

    credentials   where the API server is and how to prove who we are (in a Pod, or by a kubeconfig)
    client        quorum reads, precise writes, pages of lists, watch streams   (engine.ports.Api)
    cache, watch  a local copy of one resource, kept by list-then-watch         (engine.ports.Cache)
    lease, leader a heartbeat that others can see; who of several replicas acts
    certificates  making and judging certificates (pure)
    access        ask the API server whether a user may do something
    events        Events for the user's story
    errors        HTTP answers to engine.errors, once

Objects are JSON: bytes in caches, plain dicts in calls. No generated model and no exception of a
library crosses this border. No policy in here: no retries of writes, no choices about virtual machines.
"""

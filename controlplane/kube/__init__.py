# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The adapter to the Kubernetes API; the only importer of its client library.

    credentials      the API server's address and this process's identity (in a Pod, or by a kubeconfig)
    client           quorum reads, writes with preconditions, pages of lists, watches   (engine.ports.Api)
    transport        connection pools, timeouts, tokens, bytes
    cache, watch     a local copy of one resource, kept by list and watch               (engine.ports.Cache)
    optional_watch   a cache of a kind that the cluster may not serve
    uncached_watch   a callback for each new object, without a copy
    configuration    the current configuration, from a cache of the KubeVirt object
    decoding         JSON that is nested deeper than the decoder goes
    lease, leader    heartbeats; leader election
    access_review    SubjectAccessReviews
    events, eviction create an Event, evict a Pod
    errors           HTTP status codes to engine.errors

Objects are JSON: bytes in caches, plain dicts in calls. No generated model and no exception of a library leaves this
package. No policy: no retries of writes, no decisions about virtual machines.
"""

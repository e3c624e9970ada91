// Copyright: (c) 2026, virtops.kubevirt contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

/** Makes the objects of tests. */

export const NOW = Date.parse('2026-11-29T12:00:00Z');

/** Return the time stamp of some seconds before NOW. */
export function ago(seconds) {
  return new Date(NOW - seconds * 1000).toISOString();
}

/** Return a condition. */
export function condition(type, status, reason = '', message = '', seconds = 60) {
  return { type, status, reason, message, lastTransitionTime: ago(seconds) };
}

/** Return a VM. */
export function aVm(runStrategy, status = {}, metadata = {}) {
  return {
    metadata: { name: 'web', namespace: 'shop', uid: 'vm', creationTimestamp: ago(600), ...metadata },
    spec: { runStrategy },
    status,
  };
}

/** Return a VMI in a phase. */
export function aVmi(phase, status = {}, metadata = {}) {
  return {
    metadata: { name: 'web', namespace: 'shop', uid: 'vmi', creationTimestamp: ago(500), ...metadata },
    spec: { terminationGracePeriodSeconds: 60 },
    status: { phase, nodeName: 'node-1', ...status },
  };
}

/** Return a launcher Pod of that VMI. */
export function aPod(status = {}, spec = {}) {
  const labels = { 'kubevirt.io/created-by': 'vmi' };
  return { metadata: { name: 'virt-launcher-web-x', uid: 'pod', creationTimestamp: ago(490), labels }, spec, status };
}

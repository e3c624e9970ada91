// Copyright: (c) 2026, virtops.kubevirt contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later
/** Says what a launcher Pod waits for. Pure. */

import { capital, sentence } from './format.js';
import { condition } from './objects.js';

const PREPARING = ['PodInitializing', 'ContainerCreating'];
const PULLS = ['ErrImagePull', 'ImagePullBackOff', 'InvalidImageName', 'ErrImageNeverPull', 'ImageInspectError'];

/** Explain a launcher Pod that does not run its guest yet. scheduled: its condition PodScheduled; the instance may have a copy. */
export function explainPod(pod, scheduled = condition(pod, 'PodScheduled')) {
  const stuck = explainContainers(pod);
  if (stuck) {
    return stuck;
  }
  if (scheduled?.status === 'False') {
    return { tone: 'problem', title: 'Waits for a node', ...scheduling(scheduled.message ?? '') };
  }
  if (!pod) {
    return { tone: 'changing', title: 'Is being prepared', text: 'Its launcher Pod is created next.' };
  }
  const node = pod.spec?.nodeName;
  const text = node ? `Node ${node} prepares it: images, volumes and network.` : 'The scheduler looks for a node.';
  return { tone: 'changing', title: node ? `Is being prepared on node ${node}` : 'Waits for a node', text };
}

/** Explain why a container of a Pod does not start; null when none is stuck. */
export function explainContainers(pod) {
  const statuses = [...(pod?.status?.initContainerStatuses ?? []), ...(pod?.status?.containerStatuses ?? [])];
  const status = statuses.find(({ state }) => state?.waiting?.reason && !PREPARING.includes(state.waiting.reason));
  const { reason = '', message = '' } = status?.state.waiting ?? {};
  if (PULLS.includes(reason)) {
    const remedy = 'Check the name of the image, and that its registry can be reached and lets the node in. It is tried again.';
    return { tone: 'problem', title: 'Its image cannot be fetched', text: `${status.image}: ${sentence(message || reason)}`, remedy };
  }
  return reason.startsWith('Create')
    ? { tone: 'problem', title: 'Its container cannot be created', text: sentence(message || reason), remedy: '' }
    : null;
}

// the scheduler's phrase -> in words, and what to do
const FILTERS = [
  [/^Insufficient memory$/, 'has too little free memory', 'Free some memory, give the machine less, or add a node.'],
  [/^Insufficient cpu$/, 'has too little free CPU', 'Free some CPU, give the machine less, or add a node.'],
  [/^Insufficient devices\.kubevirt\.io\/kvm$/, 'has no KVM, or the control plane does not serve it',
    'Enable virtualization on a node, or run the control plane with emulation.'],
  [/^Insufficient (.+)$/, 'has too little free $1', ''],
  [/didn't match Pod's node affinity\/selector/, 'is not one that it asks for, or cannot run machines',
    'Look at its node selector and affinity, and at the label kubevirt.io/schedulable of the nodes.'],
  [/untolerated taint\(s\)|untolerated taint$/, 'is reserved or out of order (a taint)', 'See the taints: kubectl describe node.'],
  [/untolerated taint \{?([^}: ]*)/, 'is reserved or out of order (taint $1)', ''],
  [/^were unschedulable|were unschedulable$/, 'is cordoned', 'Uncordon a node.'],
  [/volume node affinity conflict/, 'cannot reach its disk', 'Its disk is tied to another node.'],
  [/unbound immediate PersistentVolumeClaims/, 'waits for a disk that is not bound', 'See the claim: kubectl get pvc.'],
  [/anti-affinity/, 'already runs a machine that it must stay apart from', ''],
  [/Too many pods/, 'is full', ''],
];

/** Turn the scheduler's message into words. Returns { text, remedy }; an unknown phrase is quoted. */
export function scheduling(message) {
  const listed = /^(\d+)\/(\d+) nodes are available: (.*?)(?:\.(?:\s.*)?)?$/s.exec(message.trim()); // what follows is of preemption
  if (!listed) {
    return { text: sentence(capital(message || 'No node fits')), remedy: '' };
  }
  const reasons = listed[3].split(/, (?=\d+ )/).map(reason);
  const text = listed[2] === '1'
    ? `The only node ${reasons.map(({ words }) => words.replace(/^1 /, '')).join('; ')}.`
    : `None of ${listed[2]} nodes fits: ${reasons.map(({ words }) => words).join('; ')}.`;
  const [first] = reasons.filter(({ remedy }) => remedy).sort((a, b) => b.nodes - a.nodes);
  return { text, remedy: first?.remedy ?? '' };
}

function reason(phrase) {
  const [, number = '', rest] = /^(?:(\d+) )?(?:node\(s\) )?(?:had )?(.*?)\.?$/s.exec(phrase.trim());
  const row = FILTERS.find(([pattern]) => pattern.test(rest));
  if (!row) {
    return { words: phrase.trim(), remedy: '', nodes: 0 };
  }
  const [pattern, words, remedy] = row;
  const named = words.replace('$1', pattern.exec(rest)[1] ?? '');
  const plural = Number(number) === 1 ? named : named.replace(/^has /, 'have ').replace(/^is /, 'are ')
    .replace(/ has no/, ' have no');
  return { words: `${number} ${plural}`.trim(), remedy, nodes: Number(number) };
}

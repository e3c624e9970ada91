// Copyright: (c) 2026, virtops.kubevirt contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later
/** One time line of a machine: its conditions, phases and Events, and those of its instance and launcher Pods. Pure.
 *
 * An entry is { time, source, kind, tone, title, text, code, count, id }; tone: good, warn, bad, plain. code: the API's own word.
 */

import { scheduling } from './explain_pod.js';
import { capital, sentence } from './format.js';
import { isDeleting, wasStopped } from './objects.js';

const LIMIT = 200;
const LATEST = 8.64e15; // of a Date; a user chooses a Pod's grace period, and NaN is no time
const BAD_WHEN_TRUE = ['Failure', 'DisruptionTarget'];
const WARN_WHEN_TRUE = ['RestartRequired', 'AgentVersionNotSupported', 'SoftwareEmulation'];
const PLAIN_WHEN_FALSE = ['LiveMigratable', 'StorageLiveMigratable', 'AgentConnected', 'Initialized', 'PodReadyToStartContainers'];

// reasons of conditions that are False after each stop, start or pause; what is wrong then, another condition says
const ORDINARY = {
  __proto__: null,
  Ready: ['VMINotExists', 'GuestNotRunning', 'PodTerminating', 'Paused', 'PodCompleted', 'ReadinessGatesNotReady'],
  ContainersReady: ['PodCompleted'],
  Synchronized: ['Deleted'],
};
const ASKED_PAUSES = ['PausedByUser', 'PausedByMigrationMonitor'];
const ASKED_END = /\bVMI (is|was) deleted\b/; // the Event of such an end has no reason of its own
const IMAGE_EVENTS = ['Pulled', 'Pulling'];

/** Return the entries, newest first. */
export function timeline({ vm = null, vmi = null, pods = [], events = [] }) {
  const entries = [
    ...(vm ? [...lifecycle(vm, 'VM'), ...conditions(vm, 'VM', conditionKeys(vmi))] : []),
    ...(vmi ? [...lifecycle(vmi, 'Instance'), ...phases(vmi), ...conditions(vmi, 'Instance')] : []),
    ...pods.flatMap((pod) => [...lifecycle(pod, 'Pod'), ...conditions(pod, 'Pod', conditionKeys(vmi)), ...containers(pod)]),
    ...withFoldedImages(withoutCopies(events)).map(eventEntry),
  ];
  return entries
    .filter(({ time }) => Math.abs(time) <= LATEST)
    .sort((a, b) => b.time - a.time || RANK.indexOf(b.kind) - RANK.indexOf(a.kind))
    .slice(0, LIMIT);
}

// within a second: what came of something is shown above it
const RANK = ['life', 'event', 'phase', 'condition'];

function entry({ time, secondsEarlier = 0, ...fields }) {
  return { tone: 'plain', text: '', code: '', count: 1, ...fields, time: Date.parse(time ?? '') - secondsEarlier * 1000 };
}

function lifecycle(object, source) {
  const { uid, name, creationTimestamp, deletionTimestamp } = object.metadata;
  const word = { VM: 'Virtual machine', Instance: 'Instance', Pod: `Launcher Pod ${name}` }[source];
  const created = entry({ id: `${uid}/created`, time: creationTimestamp, source, kind: 'life', title: `${word} created` });
  if (!isDeleting(object)) {
    return [created];
  }
  // the stamp of an instance or a Pod is when its grace period ends
  const seconds = object.metadata.deletionGracePeriodSeconds ?? 0;
  return [created, entry({ id: `${uid}/deleted`, time: deletionTimestamp, secondsEarlier: seconds, source, kind: 'life', title: `${word}: deletion requested` })];
}

function phases(vmi) {
  return (vmi.status?.phaseTransitionTimestamps ?? []).map(({ phase, phaseTransitionTimestamp }) => entry({
    id: `${vmi.metadata.uid}/${phase}`,
    time: phaseTransitionTimestamp,
    source: 'Instance',
    kind: 'phase',
    tone: phase === 'Failed' && wasStopped(vmi) ? 'plain' : PHASE_TONES[phase] ?? 'plain',
    title: PHASE_TEXTS[phase] ?? `Phase ${phase}`,
    code: phase,
  }));
}

const PHASE_TONES = { __proto__: null, Running: 'good', Failed: 'bad', Unknown: 'bad' };
const PHASE_TEXTS = {
  __proto__: null,
  Pending: 'Waits for a launcher Pod',
  Scheduling: 'Waits for a node, or is being prepared there',
  Scheduled: 'The launcher is ready, the guest is being powered on',
  Running: 'The guest runs',
  Succeeded: 'The guest has powered off',
  Failed: 'The guest or its launcher ended with an error',
  Unknown: 'Its node is silent',
};

function conditionKeys(vmi) {
  return new Set((vmi?.status?.conditions ?? []).map(conditionKey));
}

function conditionKey({ type, status, reason = '' }) {
  return `${type}/${status}/${reason}`;
}

function conditions(object, source, known = new Set()) {
  return (object.status?.conditions ?? [])
    .filter((condition) => !known.has(conditionKey(condition)))
    .map((condition) => conditionEntry(object, source, condition));
}

function conditionEntry(object, source, { type, status, reason = '', message = '', lastTransitionTime }) {
  return entry({
    id: `${object.metadata.uid}/${type}`,
    time: lastTransitionTime || object.metadata.creationTimestamp,
    source,
    kind: 'condition',
    tone: toneOf(type, status, reason),
    title: CONDITIONS[type]?.[STATUSES.indexOf(status)] ?? `${type}: ${{ __proto__: null, True: 'yes', False: 'no' }[status] ?? 'unknown'}`,
    text: messageText(message),
    code: `${type}=${status}${reason && reason !== type ? ` ${reason}` : ''}`,
  });
}

const STATUSES = ['True', 'False'];
const CONDITIONS = {
  __proto__: null,
  Ready: ['Ready', 'Not ready'],
  PodScheduled: ['Has a node', 'Has no node'],
  Initialized: ['Prepared', 'Not prepared yet'],
  ContainersReady: ['Containers are ready', 'Containers are not ready'],
  PodReadyToStartContainers: ['Network of the Pod is ready', 'Network of the Pod is not ready'],
  'kubevirt.io/virtual-machine-unpaused': ['The guest runs here', 'The guest does not run here'],
  LiveMigratable: ['Can move to other nodes', 'Cannot move to other nodes'],
  StorageLiveMigratable: ['Its disks can move', 'Its disks cannot move'],
  AgentConnected: ['Guest agent connected', 'Guest agent not connected'],
  AgentVersionNotSupported: ['Guest agent is too old', 'Guest agent is recent enough'],
  Paused: ['Paused', 'Not paused'],
  Synchronized: ['In order', 'The last step failed, or waits'],
  DataVolumesReady: ['Disks are filled', 'Disks are not filled yet'],
  SoftwareEmulation: ['Runs under emulation, without KVM', 'Runs on KVM'],
  RestartRequired: ['A change waits for the next start', 'No change waits'],
  Failure: ['An action failed', 'No action failed'],
  DisruptionTarget: ['Has to leave its node', 'Need not leave its node'],
};

function messageText(message) {
  return /^\d+\/\d+ nodes are available/.test(message) ? scheduling(message).text : sentence(message);
}

function toneOf(type, status, reason) {
  if (type === 'Paused' && status === 'True') {
    return ASKED_PAUSES.includes(reason) ? 'warn' : 'bad';
  }
  if ([...BAD_WHEN_TRUE, ...WARN_WHEN_TRUE].includes(type)) {
    return status !== 'True' ? 'plain' : BAD_WHEN_TRUE.includes(type) ? 'bad' : 'warn';
  }
  if (status === 'True') {
    return 'good';
  }
  return type === 'Paused' || PLAIN_WHEN_FALSE.includes(type) || ORDINARY[type]?.includes(reason) ? 'plain' : 'bad';
}

function containers(pod) {
  return (pod.status?.containerStatuses ?? []).flatMap(({ name, state, restartCount }) => {
    const shared = { source: 'Pod', kind: 'condition', id: `${pod.metadata.uid}/${name}` };
    if (state?.terminated) {
      const { exitCode, reason = '', message = '', finishedAt } = state.terminated;
      const title = `Container ${name} ended: ${reason || 'exit code'} (${exitCode})`;
      return [entry({ ...shared, time: finishedAt, title, text: sentence(message), tone: exitCode ? 'bad' : 'plain' })];
    }
    const title = `Container ${name} runs${restartCount ? `, after ${restartCount} restarts` : ''}`;
    return state?.running ? [entry({ ...shared, time: state.running.startedAt, title })] : [];
  });
}

/** Leave out the VM's Events that say what the instance's say. */
function withoutCopies(events) {
  const said = ({ reason, message }) => `${reason}/${message}`;
  const known = new Set(events.filter(({ involvedObject }) => involvedObject?.kind === 'VirtualMachineInstance').map(said));
  return events.filter((event) => event.involvedObject?.kind !== 'VirtualMachine' || !known.has(said(event)));
}

/** Fold the kubelet's Events that an image is there: for each container of a Pod, and for an image volume again every minute. */
function withFoldedImages(events) {
  const folded = new Map();
  for (const event of events) {
    const { metadata, reason, message, involvedObject, count, firstTimestamp } = event;
    const isImage = involvedObject?.kind === 'Pod' && IMAGE_EVENTS.includes(reason) && firstTimestamp;
    const key = isImage ? [involvedObject.name, reason, message].join('/') : metadata.uid;
    const known = folded.get(key);
    const [first] = [known?.lastTimestamp ?? firstTimestamp, firstTimestamp].sort();
    folded.set(key, isImage ? { ...(known ?? event), count: (count ?? 1) + (known?.count ?? 0), lastTimestamp: first } : event);
  }
  return [...folded.values()];
}

function eventEntry(event) {
  const { metadata, type, reason, message, involvedObject, count, series } = event;
  const time = series?.lastObservedTime ?? event.lastTimestamp ?? event.eventTime ?? event.firstTimestamp;
  return entry({
    id: metadata.uid,
    time: time || metadata.creationTimestamp,
    source: SOURCES[involvedObject?.kind] ?? involvedObject?.kind ?? '',
    kind: 'event',
    tone: type === 'Warning' && !ASKED_END.test(message) ? 'bad' : 'plain',
    title: EVENTS[reason] ?? capital(messageText(message || reason || 'Event')),
    text: EVENTS[reason] ? messageText(message) : '',
    code: reason ?? '',
    count: series?.count ?? count ?? 1,
  });
}

const EVENTS = {
  __proto__: null,
  FailedScheduling: 'The scheduler found no node', Unschedulable: 'Waits for a node', BackOff: 'Waits before the next attempt', Failed: 'Failed',
  Unhealthy: 'A probe failed',
};
const SOURCES = { __proto__: null, VirtualMachine: 'VM', VirtualMachineInstance: 'Instance', Pod: 'Pod' };

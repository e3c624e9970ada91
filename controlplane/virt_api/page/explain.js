// Copyright: (c) 2026, virtops.kubevirt contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later
/** Says in plain words why a machine is in its state, and what to do. Pure: a function from objects to sentences.
 *
 * Each rule returns { tone, title, text, remedy } or null; the first that applies wins. tone: running, paused, changing,
 * stopped or problem. A title is short; texts quote the API's own messages, which know more.
 */

import { explainContainers, explainPod } from './explain_pod.js';
import { age, capital, count, duration, sentence } from './format.js';
import {
  condition, gracePeriod, hasCondition, isAlive, isDeleting, launcherOf, ongoingMigration, runStrategy, wasStopped,
} from './objects.js';

/** Explain a machine. now: milliseconds. */
export function explain({ vm = null, vmi = null, pods = [], now }) {
  const world = { vm, vmi, pods, now, pod: launcherOf(pods, vmi), strategy: runStrategy(vm) };
  for (const rule of RULES) {
    const result = rule(world);
    if (result) {
      return { remedy: '', ...result };
    }
  }
  return { tone: 'changing', title: 'Is being prepared', text: 'Nothing is known about it yet.', remedy: '' };
}

const RULES = [absent, deleting, stopping, withoutInstance, refusedSpec, unknown, waiting, starting, migrating, paused, notReady, running,
  ended];

function absent({ vm, vmi }) {
  return vm || vmi ? null : { tone: 'stopped', title: 'Does not exist', text: 'There is no machine of this name (any more).' };
}

function deleting({ vm, vmi, now }) {
  if (!isDeleting(vm)) {
    return null;
  }
  const since = age(vm.metadata.deletionTimestamp, now);
  if (vmi) {
    return { tone: 'changing', title: 'Is being deleted', text: `Its guest is shutting down first. ${graceText(vmi, now)}` };
  }
  const keepers = (vm.metadata.finalizers ?? []).join(', ');
  const text = keepers ? `Since ${since}; it is kept by its finalizers: ${keepers}.` : `Since ${since}.`;
  return { tone: 'changing', title: 'Is being deleted', text };
}

function stopping({ vm, vmi, now }) {
  if (!isAlive(vmi) || !(isDeleting(vmi) || vm?.status?.printableStatus === 'Stopping')) {
    return null;
  }
  return {
    tone: 'changing',
    title: 'Is shutting down',
    text: `The guest was asked to power off. ${graceText(vmi, now)}`,
    remedy: vm ? 'If the guest does not react, stop it again and power it off at once.' : '',
  };
}

function graceText(vmi, now) {
  const due = Date.parse(vmi.metadata.deletionTimestamp ?? '') + gracePeriod(vmi) * 1000;
  if (Number.isNaN(due)) {
    return 'It has its grace period for that.';
  }
  const left = (due - now) / 1000;
  return left > 0 ? `It is powered off in ${duration(left)} if it has not by then.` : 'Its grace period is over.';
}

function withoutInstance({ vm, vmi, strategy, now }) {
  if (!vm || vmi) {
    return null;
  }
  return startFailure(vm, strategy, now) ?? failure(vm) ?? volumes(vm) ?? byStrategy(vm, strategy);
}

function startFailure(vm, strategy, now) {
  const failed = vm.status?.startFailure;
  if (!failed?.consecutiveFailCount || strategy === 'Halted') {
    return null;
  }
  const due = (Date.parse(failed.retryAfterTimestamp ?? '') - now) / 1000;
  const next = due > 0 ? `It is tried again in ${duration(due)}.` : 'It is tried again now.';
  const because = sentence(condition(vm, 'Failure')?.message);
  return {
    tone: 'problem',
    title: `Failed to start ${count(failed.consecutiveFailCount, 'time')}`,
    text: `${because} ${next}`.trim(),
    remedy: 'The time line has the reason of each attempt.',
  };
}

function failure(vm) {
  const failed = condition(vm, 'Failure');
  return failed?.status === 'True'
    ? { tone: 'problem', title: 'An action failed', text: sentence(failed.message || failed.reason), remedy: 'It is tried again.' }
    : null;
}

function volumes(object) {
  const ready = condition(object, 'DataVolumesReady');
  return ready?.status === 'False'
    ? { tone: 'changing', title: 'Waits for its disks', text: sentence(ready.message || 'A DataVolume is not filled yet') }
    : null;
}

const STRATEGIES = {
  __proto__: null,
  Halted: ['Is stopped', 'Its run strategy is Halted: somebody stopped it, or it was never started.', 'Start it to run it.'],
  Manual: ['Is stopped', 'Its run strategy is Manual: it runs only when somebody starts it.', 'Start it to run it.'],
  Once: ['Its one run is over', 'Its run strategy is Once.', 'Stop it, then start it to run it again.'],
  RerunOnFailure: ['Has shut down', 'Its guest ended without a failure, so its run strategy RerunOnFailure does not repeat it.',
    'Start it to run it again.'],
  Always: ['Is about to start', 'Its run strategy is Always: the control plane creates its instance next.', ''],
};

function byStrategy(vm, strategy) {
  const requested = (vm.status?.stateChangeRequests ?? [])[0]?.action;
  if (requested === 'Start') {
    return { tone: 'changing', title: 'Is about to start', text: 'Its start was requested and is carried out next.' };
  }
  const [title, text, remedy] = STRATEGIES[strategy] ?? ['Has no instance', `Its run strategy is ${strategy}.`, ''];
  return { tone: strategy === 'Always' ? 'changing' : 'stopped', title, text, remedy };
}

function refusedSpec({ vmi }) {
  const synchronized = condition(vmi, 'Synchronized');
  if (synchronized?.status !== 'False' || synchronized.reason !== 'InvalidSpec') {
    return null;
  }
  return { tone: 'problem', title: 'Cannot run as it is specified', text: sentence(synchronized.message), remedy: 'Change its spec.' };
}

function unknown({ vmi }) {
  if (vmi?.status?.phase !== 'Unknown') {
    return null;
  }
  return {
    tone: 'problem',
    title: 'Is out of reach',
    text: sentence(condition(vmi, 'Synchronized')?.message || `Node ${vmi.status.nodeName} is silent, so nobody knows whether it runs`),
    remedy: 'It is not started elsewhere before it is known to have ended. See to its node.',
  };
}

const WAITS = {
  __proto__: null,
  FailedPvcNotFound: ['Waits for a disk that does not exist', 'Create the claim, or correct its name.'],
  ClaimInUse: ['Waits for a disk that another machine uses', 'Stop the other machine.'],
};

/** Before it has a node. */
function waiting({ vmi, pod }) {
  const phase = vmi?.status?.phase ?? 'Pending';
  if (!vmi || !['Pending', 'Scheduling'].includes(phase)) {
    return null;
  }
  const disks = volumes(vmi);
  if (disks) {
    return disks;
  }
  const synchronized = condition(vmi, 'Synchronized');
  if (synchronized?.status === 'False') {
    const [title, remedy] = WAITS[synchronized.reason] ?? ['Waits to be started', ''];
    return { tone: 'problem', title, text: sentence(synchronized.message), remedy };
  }
  return explainPod(pod, condition(vmi, 'PodScheduled'));
}

function starting({ vmi, pod }) {
  if (vmi?.status?.phase !== 'Scheduled') {
    return null;
  }
  const trouble = condition(vmi, 'Synchronized');
  if (trouble?.status === 'False') {
    return { tone: 'problem', title: 'The guest could not be started yet', text: sentence(trouble.message), remedy: 'It is tried again.' };
  }
  const text = `Its launcher runs on node ${vmi.status.nodeName}; the guest is being powered on there.`;
  return explainContainers(pod) ?? { tone: 'changing', title: 'Is being powered on', text };
}

function migrating({ vmi, now }) {
  const state = vmi?.status?.phase === 'Running' ? ongoingMigration(vmi) : null;
  if (!state) {
    return null;
  }
  const [from, to] = [state.sourceNode || vmi.status.nodeName, state.targetNode || 'another node'];
  const text = `From ${from} to ${to}, for ${age(state.startTimestamp, now)}. The guest goes on running.`;
  return { tone: 'running', title: 'Runs, and moves to another node', text };
}

function paused({ vmi }) {
  const stopped = condition(vmi, 'Paused');
  if (stopped?.status !== 'True') {
    return null;
  }
  const byUser = stopped.reason === 'PausedByUser';
  return {
    tone: byUser ? 'paused' : 'problem',
    title: byUser ? 'Is paused' : `Is paused: ${stopped.reason}`,
    text: byUser ? 'Somebody paused it: it keeps its memory and computes nothing.' : sentence(stopped.message),
    remedy: byUser ? 'Unpause it to go on.' : '',
  };
}

function notReady({ vmi }) {
  const ready = condition(vmi, 'Ready');
  if (vmi?.status?.phase !== 'Running' || ready?.status !== 'False' || ready.reason === 'GuestNotRunning') {
    return null;
  }
  const text = sentence(ready.message || ready.reason || 'Its readiness probe has not succeeded');
  return { tone: 'problem', title: 'Runs, but is not ready', text, remedy: 'Services send it nothing until it is. Look at its console.' };
}

function running({ vm, vmi, now }) {
  if (vmi?.status?.phase !== 'Running') {
    return null;
  }
  const began = (vmi.status.phaseTransitionTimestamps ?? []).find((entry) => entry.phase === 'Running');
  const since = age(began?.phaseTransitionTimestamp ?? vmi.metadata.creationTimestamp, now);
  const agent = hasCondition(vmi, 'AgentConnected') ? ' Its guest agent answers.' : '';
  const slow = hasCondition(vmi, 'SoftwareEmulation') ? ' It runs under software emulation, without KVM: slow, and less isolated.' : '';
  const text = `On node ${vmi.status.nodeName} for ${since}.${agent}${slow}`;
  if (hasCondition(vm, 'RestartRequired')) {
    const change = sentence(condition(vm, 'RestartRequired').message || 'Its spec was changed');
    return { tone: 'running', title: 'Runs, with changes that wait', text: `${text} ${change}`, remedy: 'Restart it to apply them.' };
  }
  return { tone: 'running', title: 'Runs', text };
}

function ended({ vm, vmi }) {
  const failed = vmi?.status?.phase === 'Failed';
  const because = sentence(capital(condition(vmi, 'Synchronized')?.message || vmi?.status?.reason || ''));
  if (wasStopped(vmi)) {
    return { tone: 'stopped', title: 'Was stopped', text: `Somebody stopped or deleted it. ${because}` };
  }
  const next = vm ? 'Its run strategy decides what is next.' : 'Delete the instance when you have seen why.';
  return {
    tone: failed ? 'problem' : 'stopped',
    title: failed ? 'Has failed' : 'Has shut down',
    text: because || (failed ? 'Its guest or its launcher ended with an error.' : 'Its guest powered off.'),
    remedy: failed ? `${next} The time line has the reason.` : next,
  };
}

// Copyright: (c) 2026, virtops.kubevirt contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later
/** Reads VMs, VMIs and Pods: paths, and the questions that several views ask. Pure. Missing fields are no errors. */

const FINAL_PHASES = ['Succeeded', 'Failed'];
const KUBEVIRT = 'apis/kubevirt.io/v1';
const SUBRESOURCES = 'apis/subresources.kubevirt.io/v1';

/** Return the path of a kind of KubeVirt; namespace "" is all. */
export function collectionPath(plural, namespace) {
  return namespace ? `${KUBEVIRT}/namespaces/${encodeURIComponent(namespace)}/${plural}` : `${KUBEVIRT}/${plural}`;
}

/** Return the path of a core kind of a namespace. */
export function corePath(plural, namespace) {
  return `api/v1/namespaces/${encodeURIComponent(namespace)}/${plural}`;
}

/** Return the path of a subresource. */
export function subresourcePath(plural, namespace, name, verb) {
  const [space, object] = [namespace, name].map(encodeURIComponent);
  return `${SUBRESOURCES}/namespaces/${space}/${plural}/${object}/${verb}`;
}

/** Return a condition; undefined when it is absent. */
export function condition(object, type) {
  return object?.status?.conditions?.find((entry) => entry.type === type);
}

/** Tell whether a condition has a status. */
export function hasCondition(object, type, status = 'True') {
  return condition(object, type)?.status === status;
}

/** Tell whether an object's deletion has begun. */
export function isDeleting(object) {
  return Boolean(object?.metadata?.deletionTimestamp);
}

/** Tell whether the instance exists and its run is not over. */
export function isAlive(vmi) {
  return Boolean(vmi) && !FINAL_PHASES.includes(vmi.status?.phase);
}

/** Return the seconds that a guest has to shut down. A custom resource's deletionGracePeriodSeconds is 0: its spec has them. */
export function gracePeriod(vmi) {
  return vmi.spec?.terminationGracePeriodSeconds ?? 30;
}

/** Tell whether a run has failed because somebody ended it, which is what was asked for. */
export function wasStopped(vmi) {
  return vmi?.status?.phase === 'Failed' && condition(vmi, 'Synchronized')?.reason === 'Deleted';
}

/** Return the run strategy; "" when there is no VM. */
export function runStrategy(vm) {
  if (!vm) {
    return '';
  }
  return vm.spec?.runStrategy || (vm.spec?.running ? 'Always' : 'Halted');
}

/** Return the migration that is under way; null when there is none. */
export function ongoingMigration(vmi) {
  const state = vmi?.status?.migrationState;
  return state && !state.completed && !state.failed && state.startTimestamp ? state : null;
}

/** Return the instance's spec, or the one of its VM's next instance. */
export function specOf(vm, vmi) {
  return vmi?.spec ?? vm?.spec?.template?.spec ?? {};
}

/** Return the launcher Pod on the instance's node, else the newest. pods: newest first. */
export function launcherOf(pods, vmi) {
  const own = pods.filter((pod) => !vmi || pod.metadata.labels?.['kubevirt.io/created-by'] === vmi.metadata.uid);
  const node = vmi?.status?.nodeName;
  return own.find((pod) => node && pod.spec?.nodeName === node) ?? own[0] ?? null;
}

/** Return the word for a machine's status, as kubectl shows it. */
export function statusWord(vm, vmi) {
  if (vm) {
    return vm.status?.printableStatus || (isDeleting(vm) ? 'Terminating' : 'Unknown');
  }
  if (isDeleting(vmi) && isAlive(vmi)) {
    return 'Stopping';
  }
  return hasCondition(vmi, 'Paused') ? 'Paused' : vmi?.status?.phase || 'Pending';
}

// Tables have no prototype: a word of an object, such as "constructor", finds only what a table lists.
const GROUPS = {
  __proto__: null,
  Running: 'running', Migrating: 'running', Paused: 'paused',
  Starting: 'changing', Provisioning: 'changing', Stopping: 'changing', Terminating: 'changing', Pending: 'changing',
  Scheduling: 'changing', Scheduled: 'changing', WaitingForVolumeBinding: 'changing',
  Stopped: 'stopped', Succeeded: 'stopped',
};

/** Return the group of a status word: running, paused, changing, stopped or problem. */
export function groupOf(word) {
  return GROUPS[word] ?? 'problem';
}

// Copyright: (c) 2026, virtops.kubevirt contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later
/** What a machine is made of, as rows of label and value. Pure. */

import { condition, hasCondition, launcherOf, runStrategy, specOf } from './objects.js';

/** Return [label, value] pairs; those without a value are left out. */
export function facts({ vm, vmi, pods }) {
  const status = vmi?.status ?? {};
  const { domain = {} } = specOf(vm, vmi);
  return [
    ['Node', status.nodeName],
    ['Addresses', addresses(status.interfaces)],
    ['CPU', vm || vmi ? cpus(status.currentCPUTopology ?? domain.cpu) : ''],
    ['Memory', status.memory?.guestCurrent ?? domain.memory?.guest ?? domain.resources?.requests?.memory],
    ['Guest', status.guestOSInfo?.prettyName],
    ['Guest agent', agent(vmi)],
    ['Run strategy', runStrategy(vm)],
    ['Can move', movable(vmi)],
    ['Migration', migration(status.migrationState)],
    ['Launcher Pod', vmi ? launcherOf(pods, vmi)?.metadata.name : ''],
  ].filter(([, value]) => value);
}

function addresses(interfaces = []) {
  return interfaces.map(({ name, ipAddress, ipAddresses }) => [ipAddresses?.length ? ipAddresses.join(', ') : ipAddress, name])
    .filter(([address]) => address)
    .map(([address, name]) => (interfaces.length > 1 ? `${address} (${name})` : address)).join('; ');
}

function cpus(topology) {
  const { sockets = 1, cores = 1, threads = 1 } = topology ?? {};
  const all = sockets * cores * threads;
  return all === 1 ? '1' : `${all} (${sockets} × ${cores} × ${threads})`;
}

function agent(vmi) {
  return vmi?.status?.phase === 'Running' ? (hasCondition(vmi, 'AgentConnected') ? 'connected' : 'none') : '';
}

function movable(vmi) {
  const able = condition(vmi, 'LiveMigratable');
  return able ? { __proto__: null, True: 'yes', False: `no: ${able.message || able.reason}` }[able.status] ?? '' : '';
}

function migration(state) {
  if (!state?.startTimestamp) {
    return '';
  }
  const end = state.failed ? `failed: ${state.failureReason ?? ''}` : state.completed ? 'done' : 'under way';
  return `${state.sourceNode ?? ''} → ${state.targetNode ?? ''}, ${end}`;
}

/** Return the disks as [name, what it is]. */
export function disks({ vm, vmi }) {
  return (specOf(vm, vmi).volumes ?? []).map((volume) => [volume.name, kindOf(volume)]);
}

const DETAILS = {
  __proto__: null,
  containerDisk: ({ image }) => `image ${image}`,
  persistentVolumeClaim: ({ claimName }) => `claim ${claimName}`,
  dataVolume: ({ name }) => `DataVolume ${name}`,
  emptyDisk: ({ capacity }) => `empty disk of ${capacity}`,
  cloudInitNoCloud: () => 'cloud-init',
  cloudInitConfigDrive: () => 'cloud-init',
};

function kindOf(volume) {
  const [kind, value] = Object.entries(volume).find(([key]) => key !== 'name') ?? ['', {}];
  return DETAILS[kind]?.(value ?? {}) ?? kind;
}

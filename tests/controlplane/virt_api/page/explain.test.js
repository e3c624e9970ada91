// Copyright: (c) 2026, virtops.kubevirt contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { explain } from '../../../../controlplane/virt_api/page/explain.js';
import { ago, aPod, aVm, aVmi, condition, NOW } from './objects.js';

const FULL = '0/3 nodes are available: 1 Insufficient cpu, 2 Insufficient memory. preemption: 0/3 nodes are available: 3 No victims.';
const unscheduled = (message) => ({ conditions: [condition('PodScheduled', 'False', 'Unschedulable', message)] });
const deleted = (seconds) => ({ deletionTimestamp: ago(seconds), deletionGracePeriodSeconds: 0 }); // 0 of every custom resource
const synchronized = (reason, message) => ({ conditions: [condition('Synchronized', 'False', reason, message)] });

// what is there -> tone, title, a part of the text
const ROWS = [
  ['nothing', {}, 'stopped', 'Does not exist', 'no machine of this name'],
  ['a halted VM', { vm: aVm('Halted') }, 'stopped', 'Is stopped', 'Halted'],
  ['a VM of run strategy Manual', { vm: aVm('Manual') }, 'stopped', 'Is stopped', 'Manual'],
  ['a VM that is about to start', { vm: aVm('Always') }, 'changing', 'Is about to start', 'Always'],
  ['a requested start', { vm: aVm('Manual', { stateChangeRequests: [{ action: 'Start' }] }) }, 'changing', 'Is about to start', 'requested'],
  ['a run that ended well', { vm: aVm('RerunOnFailure') }, 'stopped', 'Has shut down', 'without a failure'],
  ['failed starts', {
    vm: aVm('Always', {
      startFailure: { consecutiveFailCount: 4, retryAfterTimestamp: ago(-90) },
      conditions: [condition('Failure', 'True', 'FailedStart', 'no bootable device')],
    }),
  }, 'problem', 'Failed to start 4 times', 'no bootable device. It is tried again in 1m 30s.'],
  ['a write that fails', { vm: aVm('Always', { conditions: [condition('Failure', 'True', 'FailedCreate', 'exceeded quota')] }) },
    'problem', 'An action failed', 'exceeded quota.'],
  ['a VM that is kept', { vm: aVm('Halted', {}, { deletionTimestamp: ago(30), finalizers: ['a/b'] }) }, 'changing', 'Is being deleted', 'finalizers: a/b'],
  ['a VM that is deleted while its guest runs', { vm: aVm('Always', {}, { deletionTimestamp: ago(3) }), vmi: aVmi('Running') },
    'changing', 'Is being deleted', 'shutting down first'],
  ['a guest that shuts down', { vm: aVm('Halted'), vmi: aVmi('Running', {}, deleted(20)) }, 'changing', 'Is shutting down', 'powered off in 40s'],
  ['a guest that does not shut down', { vm: aVm('Halted'), vmi: aVmi('Running', {}, deleted(70)) }, 'changing', 'Is shutting down', 'period is over'],
  ['a guest of the usual grace period', { vmi: { ...aVmi('Running', {}, deleted(20)), spec: {} } }, 'changing', 'Is shutting down', 'powered off in 10s'],
  ['a guest that is powered off at once', { vmi: { ...aVmi('Running', {}, deleted(1)), spec: { terminationGracePeriodSeconds: 0 } } },
    'changing', 'Is shutting down', 'period is over'],
  ['a guest that was powered off at once', { vm: aVm('Halted'), vmi: aVmi('Failed', synchronized('Deleted', 'the guest was ended because its VMI is deleted')) },
    'stopped', 'Was stopped', 'Somebody stopped'],
  ['a claim that does not exist', { vmi: aVmi('Pending', synchronized('FailedPvcNotFound', 'claim data does not exist')) },
    'problem', 'Waits for a disk that does not exist', 'claim data does not exist.'],
  ['a DataVolume that is filled', { vmi: aVmi('Pending', { conditions: [condition('DataVolumesReady', 'False', '', 'web-root is 40 % done')] }) },
    'changing', 'Waits for its disks', 'web-root is 40 % done.'],
  ['no Pod yet', { vmi: aVmi('Pending') }, 'changing', 'Is being prepared', 'created next'],
  ['no node that fits', { vmi: aVmi('Scheduling', unscheduled(FULL)), pods: [aPod()] }, 'problem', 'Waits for a node',
    'None of 3 nodes fits: 1 has too little free CPU; 2 have too little free memory.'],
  ['one node, and what preemption found', {
    vmi: aVmi('Scheduling', unscheduled('0/1 nodes are available: 1 Insufficient memory. no new claims to deallocate, preemption: 0/1 nodes are available.')),
  }, 'problem', 'Waits for a node', 'The only node has too little free memory.'],
  ['the scheduler in its own words', { vmi: aVmi('Scheduling', unscheduled('something new')), pods: [aPod()] }, 'problem', 'Waits for a node', 'Something new.'],
  ['a Pod on its node', { vmi: aVmi('Scheduling'), pods: [aPod({}, { nodeName: 'node-2' })] }, 'changing', 'Is being prepared on node node-2', 'volumes'],
  ['an image that cannot be fetched', {
    vmi: aVmi('Scheduling'),
    pods: [aPod({ containerStatuses: [{ image: 'example/guest:1', state: { waiting: { reason: 'ImagePullBackOff', message: 'not found' } } }] }, { nodeName: 'n' })],
  }, 'problem', 'Its image cannot be fetched', 'example/guest:1: not found.'],
  ['a launcher that is ready', { vmi: aVmi('Scheduled') }, 'changing', 'Is being powered on', 'node node-1'],
  ['a start that fails on its node', { vmi: aVmi('Scheduled', synchronized('FurtherAttempt', 'no space left')) }, 'problem', 'The guest could not be started yet', 'no space left.'],
  ['a spec that cannot run', { vmi: aVmi('Pending', synchronized('InvalidSpec', 'no such machine type')) }, 'problem', 'Cannot run as it is specified', 'no such machine type.'],
  ['a guest', { vm: aVm('Always'), vmi: aVmi('Running') }, 'running', 'Runs', 'On node node-1 for 8m 20s.'],
  ['a guest under emulation', { vmi: aVmi('Running', { conditions: [condition('SoftwareEmulation', 'True')] }) }, 'running', 'Runs', 'without KVM'],
  ['a change that waits', { vm: aVm('Always', { conditions: [condition('RestartRequired', 'True', '', 'memory was changed')] }), vmi: aVmi('Running') },
    'running', 'Runs, with changes that wait', 'memory was changed.'],
  ['a guest that is not ready', { vmi: aVmi('Running', { conditions: [condition('Ready', 'False', 'ReadinessProbe', 'port 80 is closed')] }) },
    'problem', 'Runs, but is not ready', 'port 80 is closed.'],
  ['a guest that moves', { vmi: aVmi('Running', { migrationState: { startTimestamp: ago(9), sourceNode: 'a', targetNode: 'b' } }) },
    'running', 'Runs, and moves to another node', 'From a to b, for 9s.'],
  ['a migration that is over', { vmi: aVmi('Running', { migrationState: { startTimestamp: ago(9), completed: true } }) }, 'running', 'Runs', 'On node'],
  ['a paused guest', { vmi: aVmi('Running', { conditions: [condition('Paused', 'True', 'PausedByUser')] }) }, 'paused', 'Is paused', 'keeps its memory'],
  ['a guest that an error paused', { vmi: aVmi('Running', { conditions: [condition('Paused', 'True', 'PausedIOError', 'disk root is full')] }) },
    'problem', 'Is paused: PausedIOError', 'disk root is full.'],
  ['a silent node', { vmi: aVmi('Unknown', synchronized('VirtHandlerSilent', 'node node-1 is silent')) }, 'problem', 'Is out of reach', 'node node-1 is silent.'],
  ['a failed instance', { vmi: aVmi('Failed', { reason: 'the launcher was killed' }) }, 'problem', 'Has failed', 'The launcher was killed.'],
  ['an instance that ended', { vmi: aVmi('Succeeded') }, 'stopped', 'Has shut down', 'powered off'],
];

for (const [what, objects, tone, title, part] of ROWS) {
  test(`${what}: ${title}`, () => {
    const explained = explain({ ...objects, now: NOW });
    assert.deepEqual([explained.tone, explained.title], [tone, title]);
    assert.ok(explained.text.includes(part), explained.text);
  });
}

test('the remedy is for what most nodes lack', () => {
  const { remedy } = explain({ vmi: aVmi('Scheduling', unscheduled(FULL)), now: NOW });
  assert.match(remedy, /memory/);
});

test('every field of the objects may be missing', () => {
  assert.ok(explain({ vm: { metadata: {} }, vmi: { metadata: {} }, pods: [{ metadata: {} }], now: NOW }).title);
});

for (const word of ['constructor', '__proto__', 'toString']) {
  test(`${word} is a word like others`, () => {
    assert.equal(explain({ vm: aVm(word), now: NOW }).title, 'Has no instance');
    assert.equal(explain({ vmi: aVmi('Pending', { conditions: [condition('Synchronized', 'False', word)] }), now: NOW }).title, 'Waits to be started');
  });
}

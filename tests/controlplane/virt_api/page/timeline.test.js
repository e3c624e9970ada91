// Copyright: (c) 2026, virtops.kubevirt contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { timeline } from '../../../../controlplane/virt_api/page/timeline.js';
import { ago, aPod, aVm, aVmi, condition, NOW } from './objects.js';

const anEvent = (reason, message, seconds, fields = {}) => ({
  metadata: { uid: reason, creationTimestamp: ago(seconds) }, reason, message, type: 'Normal', lastTimestamp: ago(seconds),
  involvedObject: { kind: 'Pod' }, ...fields,
});

test('all sources are in one line, newest first', () => {
  const vmi = aVmi('Running', { phaseTransitionTimestamps: [{ phase: 'Running', phaseTransitionTimestamp: ago(400) }] });
  const entries = timeline({ vm: aVm('Always'), vmi, pods: [aPod()], events: [anEvent('Pulled', 'Image is there', 450)] });
  assert.deepEqual(entries.map(({ source, title }) => [source, title]), [
    ['Instance', 'The guest runs'],
    ['Pod', 'Image is there.'],
    ['Pod', 'Launcher Pod virt-launcher-web-x created'],
    ['Instance', 'Instance created'],
    ['VM', 'Virtual machine created'],
  ]);
});

test('a condition that VM and Pod copy is shown once', () => {
  const conditions = [condition('PodScheduled', 'False', 'Unschedulable', 'no node')];
  const entries = timeline({ vm: aVm('Always', { conditions }), vmi: aVmi('Scheduling', { conditions }), pods: [aPod({ conditions })] });
  const shown = entries.filter(({ kind }) => kind === 'condition');
  assert.deepEqual(shown.map(({ source, title, code, tone }) => [source, title, code, tone]),
    [['Instance', 'Has no node', 'PodScheduled=False Unschedulable', 'bad']]);
});

test('the scheduler is put into words, and a repeated Event is one entry', () => {
  const event = anEvent('FailedScheduling', '0/1 nodes are available: 1 Insufficient memory.', 5, { type: 'Warning', count: 7 });
  const [entry] = timeline({ events: [event] });
  assert.deepEqual([entry.title, entry.text, entry.count, entry.tone],
    ['The scheduler found no node', 'The only node has too little free memory.', 7, 'bad']);
});

test('an Event of the instance that the VM has too is shown once', () => {
  const events = ['VirtualMachine', 'VirtualMachineInstance'].map((kind) => anEvent('Unschedulable', 'no node', 5, { involvedObject: { kind } }));
  assert.deepEqual(timeline({ events }).map(({ source }) => source), ['Instance']);
});

test('the deletion of an instance is shown when it was asked for', () => {
  const vmi = aVmi('Running', {}, { deletionTimestamp: ago(-40), deletionGracePeriodSeconds: 60 });
  assert.equal(timeline({ vmi })[0].time, NOW - 20000);
});

test('an image that is looked for again and again is one entry, of the first time', () => {
  const pulled = (uid, fields) => anEvent('Pulled', 'Container image "x" already present on machine', 5, {
    metadata: { uid }, firstTimestamp: ago(400), count: 40, involvedObject: { kind: 'Pod', name: 'a' }, ...fields,
  });
  const events = [pulled('1'), pulled('2', { firstTimestamp: ago(401), count: 2 }), pulled('3', { involvedObject: { kind: 'Pod', name: 'b' } }),
    anEvent('Started', 'Started it', 100, { firstTimestamp: ago(500), count: 2 })];
  assert.deepEqual(timeline({ events }).map(({ time, code, count }) => [(NOW - time) / 1000, code, count]),
    [[100, 'Started', 2], [400, 'Pulled', 40], [401, 'Pulled', 42]]);
});

// what a user asked for -> no entry is bad or warns of it
const STOPPED = { conditions: [condition('Ready', 'False', 'VMINotExists', 'VMI does not exist')] };
const ended = (message) => [condition('Ready', 'False', 'GuestNotRunning'), condition('Synchronized', 'False', 'Deleted', message)];
const POWERED_OFF = 'the guest was ended because its VMI is deleted';
const ASKED_FOR = [
  ['a stopped machine', { vm: aVm('Halted', STOPPED) }],
  ['a machine that stops', { vmi: aVmi('Running', { conditions: [condition('Ready', 'False', 'PodTerminating')] }) }],
  ['a machine that starts', { vmi: aVmi('Scheduling', { conditions: [condition('Ready', 'False', 'GuestNotRunning')] }) }],
  ['a machine that was powered off at once', {
    vmi: aVmi('Failed', { conditions: ended(POWERED_OFF), phaseTransitionTimestamps: [{ phase: 'Failed', phaseTransitionTimestamp: ago(3) }] }),
    events: [anEvent('Stopped', `The VirtualMachineInstance failed: ${POWERED_OFF}`, 3, { type: 'Warning', involvedObject: { kind: 'VirtualMachineInstance' } })],
  }],
  ['a machine that was stopped before its guest was started', {
    events: [anEvent('Deleted', 'the VMI was deleted before its guest was started', 3, { type: 'Warning' })],
  }],
  ['a launcher that has ended', { pods: [aPod({ conditions: ['Ready', 'ContainersReady'].map((type) => condition(type, 'False', 'PodCompleted')) })] }],
];

for (const [what, world] of ASKED_FOR) {
  test(`${what} is not red`, () => {
    assert.deepEqual(timeline(world).filter(({ tone }) => tone === 'bad'), []);
  });
}

test('a pause is yellow if a user asked for it, and else red', () => {
  const tones = (reason) => timeline({ vmi: aVmi('Running', { conditions: [condition('Paused', 'True', reason), condition('Ready', 'False', 'Paused')] }) })
    .filter(({ kind }) => kind === 'condition').map(({ tone }) => tone);
  assert.deepEqual(tones('PausedByUser'), ['warn', 'plain']);
  assert.deepEqual(tones('PausedIOError'), ['bad', 'plain']);
});

test('a machine that is not ready for another reason is red', () => {
  const [entry] = timeline({ vmi: aVmi('Running', { conditions: [condition('Ready', 'False', 'ContainersNotReady')] }) });
  assert.equal(entry.tone, 'bad');
});

test('a condition of an unknown type keeps its name', () => {
  const [entry] = timeline({ vmi: aVmi('Running', { conditions: [condition('Novel', 'Unknown', 'Why')] }) });
  assert.deepEqual([entry.title, entry.code], ['Novel: unknown', 'Novel=Unknown Why']);
});

test('a container that ended shows how', () => {
  const terminated = { exitCode: 137, reason: 'OOMKilled', finishedAt: ago(1) };
  const [entry] = timeline({ pods: [aPod({ containerStatuses: [{ name: 'compute', state: { terminated } }] })] });
  assert.deepEqual([entry.title, entry.tone], ['Container compute ended: OOMKilled (137)', 'bad']);
});

test('an entry whose time no clock can show is left out, whatever grace period a user has chosen', () => {
  const deleted = { deletionTimestamp: ago(1), deletionGracePeriodSeconds: 2 ** 62 };
  const pod = { ...aPod(), metadata: { ...aPod().metadata, ...deleted } };
  assert.deepEqual(timeline({ pods: [pod] }).map(({ title }) => title), ['Launcher Pod virt-launcher-web-x created']);
});

for (const word of ['constructor', '__proto__', 'toString']) {
  test(`${word} is a word like others`, () => {
    const phases = [{ phase: word, phaseTransitionTimestamp: ago(1) }];
    const vmi = aVmi(word, { conditions: [condition(word, 'False', word)], phaseTransitionTimestamps: phases });
    const events = [anEvent(word, 'It has happened', 5, { involvedObject: { kind: word } })];
    for (const entry of timeline({ vmi, events })) {
      ['source', 'tone', 'title', 'text', 'code'].forEach((field) => assert.equal(typeof entry[field], 'string', field));
    }
  });
}

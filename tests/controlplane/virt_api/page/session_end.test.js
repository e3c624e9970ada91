// Copyright: (c) 2026, virtops.kubevirt contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { afterClose, afterRefusal, isContinued, whileWaiting } from '../../../../controlplane/virt_api/page/session_end.js';
import { ago, aVm, aVmi } from './objects.js';

// close code, reason -> what comes next, text, button
const ENDS = [
  [1000, 'the guest has stopped', 'wait', 'The guest has stopped.', ''],
  [1006, '', 'retry', 'The connection was lost.', 'Connect again'],
  [1011, 'an internal error', 'retry', 'The connection was lost.', 'Connect again'],
  [4001, 'taken over by alice', 'ask', 'Taken over by alice.', 'Take it back'],
  [4002, 'the guest moved to node node-2: connect again', 'again', 'The guest moved to node node-2. Connecting again…', ''],
  [4003, '', 'again', 'This page was too slow to read, so the session was ended; some output may be missing. Connecting again…', ''],
  [4004, 'your right was taken away', 'stop', 'You may not use it any more: your right was taken away.', ''],
  [4005, '', 'wait', 'The instance was replaced.', ''],
];

for (const [code, reason, next, text, button] of ENDS) {
  test(`close code ${code}: ${next}`, () => {
    const end = afterClose(code, reason);
    assert.deepEqual([end.next, end.text, end.button], [next, text, button]);
  });
}

test('a console that is refused before its guest runs waits for it', () => {
  assert.equal(afterRefusal({ code: 400 }, aVmi('Scheduling')).next, 'wait');
  assert.equal(afterRefusal(null, null).next, 'wait');
  assert.equal(afterRefusal(null, aVmi('Running')).next, 'retry');
});

// what there is -> what a tab says that waits for the guest, and whether it offers to start it
const WAITS = [
  ['nothing', { vm: null, vmi: null }, 'absent', 'This machine does not exist.', false],
  ['a stopped machine', { vm: aVm('Halted'), vmi: null }, 'stopped', 'It is stopped.', true],
  ['a machine of run strategy Manual', { vm: aVm('Manual'), vmi: null }, 'stopped', 'It is stopped.', true],
  ['a run that is over', { vm: aVm('RerunOnFailure'), vmi: null }, 'stopped', 'It is stopped.', true],
  ['an instance that is over', { vm: aVm('Halted'), vmi: aVmi('Succeeded') }, 'stopped', 'It is stopped.', true],
  ['an instance without a VM that is over', { vm: null, vmi: aVmi('Failed') }, 'stopped', 'It is stopped.', false],
  ['a machine that is being deleted', { vm: aVm('Halted', {}, { deletionTimestamp: ago(1) }), vmi: null }, 'stopped', 'It is being deleted.', false],
  ['a guest that shuts down', { vm: aVm('Halted'), vmi: aVmi('Running', {}, { deletionTimestamp: ago(1) }) }, 'waiting', 'It is shutting down.', false],
  ['a machine that starts', { vm: aVm('Always'), vmi: aVmi('Scheduling') }, 'waiting', 'The guest does not run yet.', false],
  ['a machine that is about to start', { vm: aVm('Always'), vmi: null }, 'waiting', 'The guest does not run yet.', false],
  ['a requested start', { vm: aVm('Manual', { stateChangeRequests: [{ action: 'Start' }] }), vmi: null }, 'waiting', 'The guest does not run yet.', false],
];

for (const [what, world, state, text, isStartable] of WAITS) {
  test(`a console of ${what}: ${text}`, () => {
    assert.deepEqual(whileWaiting(world, 'The guest does not run yet.'), { state, text, isStartable });
  });
}

test('output goes on when the same guest is on another node; else the server sends it from its beginning', () => {
  const vmi = aVmi('Running', { nodeName: 'node-2' });
  const shown = { uid: 'vmi', node: 'node-1' };
  assert.equal(isContinued(shown, { uid: vmi.metadata.uid, node: 'node-2' }), true);
  assert.equal(isContinued(shown, { uid: vmi.metadata.uid, node: 'node-1' }), false);
  assert.equal(isContinued(shown, { uid: 'another', node: 'node-2' }), false);
  assert.equal(isContinued(null, { uid: 'vmi', node: 'node-1' }), false);
});

test('the node that a guest moved to is read from the reason', () => {
  assert.equal(afterClose(4002, 'the guest moved to node node-2: connect again').node, 'node-2');
  assert.equal(afterClose(4002, 'the guest moved').node, '');
});

test('a right that is missing is no reason to try again by itself', () => {
  assert.deepEqual(afterRefusal({ code: 403, message: 'You may not' }, aVmi('Running')), { next: 'stop', text: 'You may not', button: 'Try again' });
});

// failures before, origin -> whether the text advises about the page's address
const REFUSED = [
  [0, 'https://api.example.com:6443', false],
  [2, 'https://api.example.com:6443', true],
  [2, 'http://127.0.0.1.example.com', true],
  [9, 'http://127.0.0.1:8001', false],
  [9, 'http://localhost:8001', false],
  [9, 'http://[::1]:8001', false],
];

for (const [failures, origin, isAdvised] of REFUSED) {
  test(`a page of ${origin} that is refused ${failures + 1} times: ${isAdvised ? 'advice' : 'no advice'}`, () => {
    const { next, text } = afterRefusal({ code: 400 }, aVmi('Running'), { failures, page: new URL(origin) });
    assert.equal(next, 'retry');
    assert.equal(text.includes(`does not allow pages of ${origin}:`), isAdvised);
    assert.equal(text.includes('virtops.kubevirt/console-origins'), isAdvised);
  });
}

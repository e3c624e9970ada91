// Copyright: (c) 2026, virtops.kubevirt contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { afterClose, afterRefusal } from '../../../../controlplane/virt_api/page/session_end.js';
import { aVmi } from './objects.js';

// close code, reason -> what comes next, text, button
const ENDS = [
  [1000, 'the guest has stopped', 'wait', 'The guest has stopped.', 'Connect again'],
  [1006, '', 'retry', 'The connection was lost.', 'Connect again'],
  [1011, 'an internal error', 'retry', 'The connection was lost.', 'Connect again'],
  [4001, 'taken over by alice', 'ask', 'Taken over by alice.', 'Take it back'],
  [4002, 'the guest moved to node node-2', 'again', 'The guest moved to node node-2.', 'Connect again'],
  [4004, 'your right was taken away', 'stop', 'You may not use it any more: your right was taken away.', ''],
  [4005, '', 'wait', 'The instance was replaced.', 'Connect again'],
];

for (const [code, reason, next, text, button] of ENDS) {
  test(`close code ${code}: ${next}`, () => {
    assert.deepEqual(afterClose(code, reason), { next, text, button });
  });
}

test('a console that is refused before its guest runs waits for it', () => {
  assert.equal(afterRefusal({ code: 400 }, aVmi('Scheduling')).next, 'wait');
  assert.equal(afterRefusal(null, null).next, 'wait');
  assert.equal(afterRefusal(null, aVmi('Running')).next, 'retry');
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

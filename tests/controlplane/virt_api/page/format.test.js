// Copyright: (c) 2026, virtops.kubevirt contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { errorText } from '../../../../controlplane/virt_api/page/api.js';
import { age, count, duration, sentence } from '../../../../controlplane/virt_api/page/format.js';

test('durations have two units at most', () => {
  assert.deepEqual([0, 59, 60, 3725, 90000, 34300800].map(duration), ['0s', '59s', '1m', '1h 2m', '1d 1h', '1y 32d']);
  assert.equal(age('not a time', 0), '');
});

test('sentences end, nouns are counted', () => {
  assert.deepEqual(['a', 'a.', '', undefined].map(sentence), ['a.', 'a.', '', '']);
  assert.deepEqual([count(1, 'node'), count(2, 'node')], ['1 node', '2 nodes']);
});

test('errors are in words, with what the server said; a token never is', () => {
  assert.equal(errorText(403, 'eve may not'), 'You may not do this: eve may not');
  assert.equal(errorText(500, ''), 'The server failed.');
  assert.equal(errorText(401, 'Unauthorized'), 'Your sign-in is over: the token has expired or was revoked. Sign in again, then reload this page.');
});

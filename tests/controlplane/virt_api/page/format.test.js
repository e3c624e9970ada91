// Copyright: (c) 2026, virtops.kubevirt contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { age, count, duration, hits, sentence } from '../../../../controlplane/virt_api/page/format.js';

test('durations have two units at most', () => {
  assert.deepEqual([0, 59, 60, 3725, 90000, 34300800].map(duration), ['0s', '59s', '1m', '1h 2m', '1d 1h', '1y 32d']);
  assert.equal(age('not a time', 0), '');
});

test('sentences end, nouns are counted', () => {
  assert.deepEqual(['a', 'a.', '', undefined].map(sentence), ['a.', 'a.', '', '']);
  assert.deepEqual([count(1, 'node'), count(2, 'node')], ['1 node', '2 nodes']);
});

test('a search says how much it has found', () => {
  assert.deepEqual([hits(-1, 0, 1000), hits(2, 17, 1000), hits(-1, 17, 1000), hits(-1, 1000, 1000)], ['not found', '3 of 17', '17', '1000+']);
});

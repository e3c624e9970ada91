// Copyright: (c) 2026, virtops.kubevirt contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { keystrokes } from '../../../../controlplane/virt_api/page/keystrokes.js';

test('every printable character of ASCII has a key', () => {
  const printable = Array.from({ length: 95 }, (_, index) => String.fromCharCode(32 + index)).join('');
  assert.deepEqual(keystrokes(printable).unknown, []);
});

test('capitals and signs are shifted, lines end with Enter', () => {
  const typed = keystrokes('aA1!\r\n').strokes.map(({ keysym, code, shift }) => [keysym, code, shift]);
  assert.deepEqual(typed, [[97, 'KeyA', false], [65, 'KeyA', true], [49, 'Digit1', false], [33, 'Digit1', true], [0xff0d, 'Enter', false]]);
});

test('characters without a key are named once', () => {
  assert.deepEqual(keystrokes('aüü😀').unknown, ['ü', '😀']);
});

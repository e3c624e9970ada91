// Copyright: (c) 2026, virtops.kubevirt contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Pace } from '../../../../controlplane/virt_api/page/pace.js';

const DRAWN_MS = 40;

globalThis.requestAnimationFrame = (draw) => setTimeout(draw);

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

function spend(milliseconds) {
  const until = performance.now() + milliseconds;
  while (performance.now() < until);
}

test('changes that never end leave most of the time to the user', async () => {
  let drawn = 0;
  const pace = new Pace(() => {
    drawn += 1;
    spend(DRAWN_MS);
  });
  const began = performance.now();
  while (performance.now() - began < 1000) {
    pace.schedule();
    await pause(1);
  }
  pace.stop();
  assert.ok(drawn >= 2, `drawn ${drawn} times`);
  assert.ok(drawn * DRAWN_MS < 350, `drawn ${drawn} times`);
});

test('many changes are drawn once, with the last of them', async () => {
  const drawn = [];
  let value = 0;
  const pace = new Pace(() => drawn.push(value));
  for (value = 1; value <= 3; value += 1) {
    pace.schedule();
  }
  await pause(50);
  assert.deepEqual(drawn, [4]);
  pace.schedule();
  await pause(50);
  assert.deepEqual(drawn, [4, 4]);
});

test('what is stopped is drawn no more', async () => {
  let drawn = 0;
  const pace = new Pace(() => { drawn += 1; });
  pace.schedule();
  pace.stop();
  await pause(50);
  assert.equal(drawn, 0);
});

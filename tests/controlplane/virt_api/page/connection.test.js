// Copyright: (c) 2026, virtops.kubevirt contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

import assert from 'node:assert/strict';
import { mock, test } from 'node:test';

import { Connection } from '../../../../controlplane/virt_api/page/connection.js';
import { aVmi } from './objects.js';

/** Opens at once. */
class FakeSocket extends EventTarget {
  static made = [];

  constructor() {
    super();
    FakeSocket.made.push(this);
    queueMicrotask(() => this.dispatchEvent(new Event('open')));
  }

  close() {}

  end(code, reason = '') {
    this.dispatchEvent(Object.assign(new Event('close'), { code, reason }));
  }
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Return the pauses in milliseconds before each of some connections, whose sessions last so long and end with a code. */
async function pauses(code, lastingMs, count) {
  mock.timers.enable({ apis: ['setTimeout', 'Date'] });
  globalThis.WebSocket = FakeSocket;
  FakeSocket.made = [];
  const connection = new Connection({ path: 'x', vmi: () => aVmi('Running'), onOpen: () => {}, onState: () => {} });
  connection.start();
  const found = [];
  for (let number = 1; number <= count; number += 1) {
    await turn();
    mock.timers.tick(lastingMs);
    FakeSocket.made.at(-1).end(code);
    await turn();
    const ended = Date.now();
    while (FakeSocket.made.length === number && Date.now() - ended < 10000) {
      mock.timers.tick(50);
      await turn();
    }
    found.push(Date.now() - ended);
  }
  connection.stop();
  mock.timers.reset();
  return found;
}

// close code -> the first pause
const ENDS = [[1000, 1000], [1006, 1000], [4002, 250], [4003, 250], [4005, 1000]];

for (const [code, first] of ENDS) {
  test(`after ${code} it connects soon, and later each time when sessions end as soon as they begin`, async () => {
    assert.deepEqual(await pauses(code, 100, 5), [first, 2000, 3000, 5000, 5000]);
    assert.deepEqual(await pauses(code, 60000, 3), [first, first, first]);
  });
}

test('while it connects to the node that the guest moved to, it says so, and offers nothing', async () => {
  mock.timers.enable({ apis: ['setTimeout', 'Date'] });
  globalThis.WebSocket = FakeSocket;
  const states = [];
  const connection = new Connection({ path: 'x', vmi: () => aVmi('Running'), onOpen: () => {}, onState: (state) => states.push(state) });
  connection.start();
  await turn();
  FakeSocket.made.at(-1).end(4002, 'the guest moved to node node-2: connect again');
  await turn();
  mock.timers.tick(5000);
  const text = 'The guest moved to node node-2. Connecting again…';
  assert.deepEqual(states.slice(2), [{ state: 'connecting', text, button: '', node: 'node-2' }, { state: 'connecting', text, button: '' }]);
  connection.stop();
  mock.timers.reset();
});

// Copyright: (c) 2026, virtops.kubevirt contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { MachineObjects } from '../../../../controlplane/virt_api/page/machine_objects.js';
import { ago } from './objects.js';

test('a machine that restarts often needs no more watches', () => {
  const signals = [];
  globalThis.fetch = (url, { signal }) => {
    signals.push(signal);
    return new Promise(() => {});
  };
  const objects = new MachineObjects({ namespace: 'shop', name: 'web' }, () => {});
  for (let number = 1; number <= 30; number += 1) {
    objects.takePods([{ metadata: { name: `pod-${number}`, creationTimestamp: ago(100 - number), ownerReferences: [{ name: 'web' }] } }]);
  }
  assert.equal(signals.filter(({ aborted }) => !aborted).length, 4 + 10);
  objects.stop();
  assert.ok(signals.every(({ aborted }) => aborted));
});

test('an Event that names no kind is left out', async () => {
  const events = [{}, { kind: 'VirtualMachine' }].map((kind, number) => ({ metadata: { name: `e-${number}` }, involvedObject: { name: 'web', ...kind } }));
  globalThis.WebSocket = class { close() {} };
  globalThis.fetch = async () => new Response(JSON.stringify({ items: events, metadata: { resourceVersion: '1' } }));
  const objects = new MachineObjects({ namespace: 'shop', name: 'web' }, () => {});
  await new Promise((resolve) => setTimeout(resolve, 100));
  assert.deepEqual(objects.world().events.map(({ metadata }) => metadata.name), ['e-1']);
  objects.stop();
});

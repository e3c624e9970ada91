// Copyright: (c) 2026, virtops.kubevirt contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { counted, filtered, rows, sorted } from '../../../../controlplane/virt_api/page/list_rows.js';
import { aVm, aVmi, condition } from './objects.js';

const key = 'shop/web';
const mapped = (object) => new Map(object ? [[key, object]] : []);

// VM, VMI -> status, group
const ROWS = [
  [aVm('Always', { printableStatus: 'Running' }), aVmi('Running'), 'Running', 'running'],
  [aVm('Halted', { printableStatus: 'Stopped' }), null, 'Stopped', 'stopped'],
  [aVm('Always', { printableStatus: 'ErrorUnschedulable' }), aVmi('Scheduling'), 'ErrorUnschedulable', 'problem'],
  [aVm('Always'), null, 'Unknown', 'problem'],
  [null, aVmi('Running'), 'Running', 'running'],
  [null, aVmi('Running', { conditions: [condition('Paused', 'True')] }), 'Paused', 'paused'],
  [null, aVmi('Failed'), 'Failed', 'problem'],
  [aVm('Always', { printableStatus: 'constructor' }), null, 'constructor', 'problem'],
  [aVm('Always', { printableStatus: '__proto__' }), null, '__proto__', 'problem'],
];

for (const [vm, vmi, status, group] of ROWS) {
  test(`${vm ? 'VM' : 'instance'}: ${status}`, () => {
    const [row] = rows(mapped(vm), mapped(vmi));
    assert.deepEqual([row.status, row.group, row.kind], [status, group, vm ? '' : 'instance']);
  });
}

const row = (name, fields = {}) => ({ name, namespace: 'shop', status: 'Running', group: 'running', node: '', address: '', note: '', created: '', ...fields });
const ALL = [row('web-10'), row('web-9', { node: 'node-1' }), row('db', { status: 'Stopped', group: 'stopped' })];

test('each word of a filter has to occur, and the group to fit', () => {
  assert.deepEqual(filtered(ALL, { filter: 'WEB node' }).map(({ name }) => name), ['web-9']);
  assert.deepEqual(filtered(ALL, { group: 'stopped' }).map(({ name }) => name), ['db']);
  assert.equal(counted(ALL).get('running'), 2);
});

test('numbers in names sort as numbers', () => {
  assert.deepEqual(sorted(ALL, 'name', false).map(({ name }) => name), ['db', 'web-9', 'web-10']);
  assert.deepEqual(sorted(ALL, 'status', true).map(({ name }) => name), ['db', 'web-9', 'web-10']);
});

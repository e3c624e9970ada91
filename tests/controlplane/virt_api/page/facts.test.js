// Copyright: (c) 2026, virtops.kubevirt contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { disks, facts } from '../../../../controlplane/virt_api/page/facts.js';
import { aVm, aVmi } from './objects.js';

test('a disk shows what it is, and of an unknown kind its name', () => {
  const volumes = [
    { name: 'root', containerDisk: { image: 'debian:13' } },
    { name: 'empty', containerDisk: null },
    JSON.parse('{"name": "odd", "__proto__": {}}'),
    { name: 'own', constructor: {} },
  ];
  const vm = { ...aVm('Always'), spec: { template: { spec: { volumes } } } };
  assert.deepEqual(disks({ vm }), [
    ['root', 'image debian:13'], ['empty', 'image undefined'], ['odd', '__proto__'], ['own', 'constructor'],
  ]);
});

test('a machine that does not exist has no facts', () => {
  assert.deepEqual(facts({ vm: null, vmi: null, pods: [] }), []);
  assert.deepEqual(facts({ vm: null, vmi: aVmi('Pending'), pods: [] })[1], ['CPU', '1']);
});

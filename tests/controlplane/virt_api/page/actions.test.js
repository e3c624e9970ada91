// Copyright: (c) 2026, virtops.kubevirt contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { ACTIONS, bodyOf, confirmation, pathOf, whyNoDevice, whyNoScreenshot, whyNot } from '../../../../controlplane/virt_api/page/actions.js';
import { ago, aVm, aVmi, condition } from './objects.js';

const running = { vm: aVm('Always'), vmi: aVmi('Running') };
const paused = { vm: aVm('Always'), vmi: aVmi('Running', { conditions: [condition('Paused', 'True', 'PausedByUser')] }) };
const moving = { vm: aVm('Always'), vmi: aVmi('Running', { migrationState: { startTimestamp: ago(5) } }) };
const ending = { vm: aVm('Halted'), vmi: aVmi('Running', {}, { deletionTimestamp: ago(5) }) };
const tied = { vm: aVm('Always'), vmi: aVmi('Running', { conditions: [condition('LiveMigratable', 'False', '', 'its disk is local')] }) };
const halted = { vm: aVm('Halted'), vmi: null };
const alone = { vm: null, vmi: aVmi('Running') };

// machine -> the verbs that make sense
const ROWS = [
  ['running', running, ['stop', 'restart', 'pause', 'migrate']],
  ['paused', paused, ['stop', 'restart', 'unpause', 'migrate']],
  ['moving', moving, ['stop', 'restart']],
  ['shutting down', ending, ['stop']],
  ['tied to its node', tied, ['stop', 'restart', 'pause']],
  ['halted', halted, ['start']],
  ['manual and off', { vm: aVm('Manual'), vmi: null }, ['start']],
  ['about to start', { vm: aVm('Always'), vmi: null }, ['stop']],
  ['an instance without a VM', alone, ['pause']],
  ['being deleted', { vm: aVm('Always', {}, { deletionTimestamp: ago(1) }), vmi: null }, []],
];

for (const [what, machine, verbs] of ROWS) {
  test(`${what}: ${verbs.join(', ') || 'nothing'}`, () => {
    assert.deepEqual(ACTIONS.filter((action) => !whyNot(action, machine, new Map())).map(({ verb }) => verb), verbs);
  });
}

test('a right that is missing is named', () => {
  const [start] = ACTIONS;
  assert.match(whyNot(start, halted, new Map([['virtualmachines/start', false]])), /right to update virtualmachines\/start in this namespace, which the role edit has/);
});

test('a screenshot needs a right of its own and a guest', () => {
  assert.match(whyNoScreenshot(running, new Map([['virtualmachineinstances/vnc/screenshot', false]])),
    /right to get virtualmachineinstances\/vnc\/screenshot in this namespace, which the role admin has/);
  assert.match(whyNoScreenshot(halted, new Map()), /does not run/);
  assert.equal(whyNoScreenshot(paused, new Map()), '');
});

test('an action is a subresource, of a name as it is', () => {
  const pause = ACTIONS.find(({ verb }) => verb === 'pause');
  assert.equal(pathOf(pause, { namespace: 'shop', name: 'a/b' }),
    'apis/subresources.kubevirt.io/v1/namespaces/shop/virtualmachineinstances/a%2Fb/pause');
});

test('force takes the grace period away, of a stop or restart alone', () => {
  assert.deepEqual(ACTIONS.filter((action) => 'gracePeriod' in bodyOf(action, true)).map(({ verb }) => verb), ['stop', 'restart']);
  assert.deepEqual(bodyOf(ACTIONS[1], false), {});
});

test('the question names the grace period; force is for a guest that runs', () => {
  assert.match(confirmation(ACTIONS[1], running, 'web').text, /after 60 s/);
  assert.equal(confirmation(ACTIONS[1], halted, 'web').forceLabel, '');
});

test('a machine without the device says what to change', () => {
  assert.match(whyNoDevice('screen', { autoattachGraphicsDevice: false }), /no graphics device.*autoattachGraphicsDevice: false/);
  assert.match(whyNoDevice('console', { autoattachSerialConsole: false }), /no serial console/);
  assert.equal(whyNoDevice('screen', {}), '');
});

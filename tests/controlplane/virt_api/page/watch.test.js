// Copyright: (c) 2026, virtops.kubevirt contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { applyEvent, list } from '../../../../controlplane/virt_api/page/watch.js';

const named = (name, resourceVersion) => ({ metadata: { namespace: 'shop', name, resourceVersion } });

test('events change the objects, bookmarks only the version', () => {
  const objects = new Map();
  assert.equal(applyEvent(objects, { type: 'ADDED', object: named('a', '1') }), '1');
  assert.equal(applyEvent(objects, { type: 'MODIFIED', object: named('a', '2') }), '2');
  assert.equal(applyEvent(objects, { type: 'BOOKMARK', object: { metadata: { resourceVersion: '9' } } }), '9');
  assert.deepEqual([...objects.keys()], ['shop/a']);
  assert.equal(applyEvent(objects, { type: 'DELETED', object: named('a', '10') }), '10');
  assert.equal(objects.size, 0);
});

test('a version that is too old asks for a new list', () => {
  assert.equal(applyEvent(new Map(), { type: 'ERROR', object: { kind: 'Status', code: 410 } }), null);
});

test('a list is read page by page', async () => {
  const asked = [];
  const pages = [
    { items: [named('a', '1')], metadata: { continue: 'more', resourceVersion: '7' } },
    { items: [named('b', '2')], metadata: { resourceVersion: '7' } },
  ];
  const { objects, version } = await list('vms', { fieldSelector: 'x' }, null, async (method, path, { parameters }) => {
    asked.push(parameters.continue);
    return pages[asked.length - 1];
  });
  assert.deepEqual([asked, [...objects.keys()], version], [[undefined, 'more'], ['shop/a', 'shop/b'], '7']);
});

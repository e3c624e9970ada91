// Copyright: (c) 2026, virtops.kubevirt contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { formatRoute, parseRoute } from '../../../../controlplane/virt_api/page/route.js';

const ROUTES = [
  ['#/-', { namespace: '', name: null, tab: 'overview', filter: '', group: '' }],
  ['#/shop', { namespace: 'shop', name: null, tab: 'overview', filter: '', group: '' }],
  ['#/shop?filter=a+b&group=problem', { namespace: 'shop', name: null, tab: 'overview', filter: 'a b', group: 'problem' }],
  ['#/shop/web', { namespace: 'shop', name: 'web', tab: 'overview', filter: '', group: '' }],
  ['#/shop/web/console', { namespace: 'shop', name: 'web', tab: 'console', filter: '', group: '' }],
];

for (const [hash, route] of ROUTES) {
  test(`${hash} is read and written`, () => {
    assert.deepEqual(parseRoute(hash), route);
    assert.equal(formatRoute(route), hash);
  });
}

test('an empty hash chooses no namespace, an unknown tab is the first, a broken escape is text', () => {
  assert.equal(parseRoute('').namespace, null);
  assert.equal(parseRoute('#/shop/web/else').tab, 'overview');
  assert.equal(parseRoute('#/%zz').namespace, '%zz');
});

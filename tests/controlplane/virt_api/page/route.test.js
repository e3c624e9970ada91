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

test('an empty hash chooses no namespace, an unknown tab is the first', () => {
  assert.equal(parseRoute('').namespace, null);
  assert.equal(parseRoute('#/shop/web/else').tab, 'overview');
});

const NO_NAMES = ['..', '.', 'a/b', 'web?x=1', 'x,metadata.namespace!=y', '%zz', 'Web', '-web', 'constructor '];

test('what is no name of Kubernetes chooses nothing: it would be a part of a path or a selector', () => {
  for (const word of NO_NAMES) {
    const segment = word === '%zz' ? word : encodeURIComponent(word);
    assert.deepEqual([parseRoute(`#/${segment}/web`).namespace, parseRoute(`#/${segment}/web`).name], [null, null], word);
    assert.deepEqual([parseRoute(`#/shop/${segment}`).namespace, parseRoute(`#/shop/${segment}`).name], ['shop', null], word);
  }
});

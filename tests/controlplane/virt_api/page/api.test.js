// Copyright: (c) 2026, virtops.kubevirt contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { errorText } from '../../../../controlplane/virt_api/page/api.js';

const MOVES = 'in-flight migration detected. Wait for it, or delete web-1, which cancels it';

// code, the server's message -> what the page says
const ROWS = [
  [403, 'no right', 'You may not do this: no right'],
  [401, 'Unauthorized', 'Your sign-in is over: the token has expired or was revoked. Sign in again, then reload this page.'],
  [503, '', 'The part of the control plane that serves this does not answer. Try again in a moment.'],
  [500, '', 'The server failed.'],
  [418, '', 'The server refused it (418).'],
  [500, 'it failed; see its log', 'The server failed: it failed; see its log'],
  [500, 'Internal error occurred: etcdserver: request timed out', 'The server failed: etcdserver: request timed out'],
  [500, `Internal error occurred: ${MOVES}`, `I${MOVES.slice(1)}`],
  [500, `Internal error occurred: admission webhook "x" denied the request: ${MOVES}`, `I${MOVES.slice(1)}`],
  [500, 'Internal error occurred: Cannot migrate VMI in finalized state.', 'Cannot migrate VMI in finalized state.'],
  [500, 'Internal error occurred: the VMI "shop/web" does not exist', 'The VMI "shop/web" does not exist'],
];

for (const [code, message, text] of ROWS) {
  test(`${code} ${message}`, () => {
    assert.equal(errorText(code, message), text);
  });
}

// Copyright: (c) 2026, virtops.kubevirt contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later
/** What the end of a console or screen means, and what comes next. Pure. Codes: plugins/module_utils/kubevirt_api/close_codes.py. */

import { explain } from './explain.js';
import { capital, sentence } from './format.js';
import { isAlive, isDeleting } from './objects.js';

const CODES = {
  1000: { next: 'wait', text: 'The guest has stopped.' },
  4001: { next: 'ask', button: 'Take it back' }, // two pages that connect again by themselves would take it from each other for ever
  4002: { next: 'again' },
  4003: { next: 'again', text: 'This page was too slow to read, so the session was ended; some output may be missing.' },
  4004: { next: 'stop', text: 'You may not use it any more: your right was taken away.' },
  4005: { next: 'wait', text: 'The instance was replaced.' },
};

const NOT_OPENED = 'The server has not opened it yet.';
const FAILURES_TO_ADVISE = 2;

const AGAIN = 'Connecting again…';
const MOVED_TO = /\bto node ([a-z0-9.-]+)/;

/** Return { next, text, button, node } for a close frame. node: where the guest moved to; "" if it did not.
 *
 * next: "again" connects at once, "retry" after a pause, "wait" when the guest runs, "ask" when the user clicks, "stop" not.
 */
export function afterClose(code, reason) {
  const row = CODES[code] ?? { next: 'retry', text: 'The connection was lost.' };
  const text = row.text ?? sentence(capital(reason.replace(/: connect again$/, '') || 'the session has ended'));
  const button = row.next === 'retry' ? 'Connect again' : '';
  return { button, node: MOVED_TO.exec(reason)?.[1] ?? '', ...row, text: row.next === 'again' ? `${text} ${AGAIN}` : text };
}

/** Return the same for a WebSocket that did not open. error: of a plain request for the same path; null if that is allowed.
 *
 * failures: how many before. page: `location`. A page of another address than the control plane knows is refused for ever.
 */
export function afterRefusal(error, vmi, { failures = 0, page = null } = {}) {
  if (error && (error.code === 401 || error.code === 403)) {
    return { next: 'stop', text: error.message, button: error.code === 403 ? 'Try again' : '' };
  }
  if (!isAlive(vmi) || vmi.status?.phase !== 'Running') {
    return { next: 'wait', text: 'The guest does not run yet.', button: '' };
  }
  const because = error && error.code !== 400 ? error.message : NOT_OPENED;
  const advice = because === NOT_OPENED && failures >= FAILURES_TO_ADVISE && page && !isLoopback(page.hostname)
    ? ` Perhaps the control plane does not allow pages of ${page.origin}: open this page through kubectl proxy, or have `
      + 'an administrator add this address to the annotation virtops.kubevirt/console-origins of the KubeVirt object.'
    : '';
  return { next: 'retry', text: because + advice, button: 'Try now' };
}

/** Return what is shown while the guest does not run: { state, text, isStartable }. text: of the session's end, unless more is known. */
export function whileWaiting({ vm, vmi }, text) {
  if (!vm && !vmi) {
    return { state: 'absent', text: 'This machine does not exist.', isStartable: false };
  }
  if (isDeleting(vm)) {
    return { state: 'stopped', text: 'It is being deleted.', isStartable: false };
  }
  if (isAlive(vmi)) {
    return { state: 'waiting', text: isDeleting(vmi) ? 'It is shutting down.' : text, isStartable: false };
  }
  const isStopped = !vm || explain({ vm, now: Date.now() }).tone === 'stopped';
  return isStopped ? { state: 'stopped', text: 'It is stopped.', isStartable: Boolean(vm) } : { state: 'waiting', text, isStartable: false };
}

/** Tell whether a console goes on below the output that is shown: the same guest on another node, whose output begins anew there.
 *
 * shown, now: { uid, node } of the instance. Otherwise the server sends again what is shown.
 */
export function isContinued(shown, now) {
  return Boolean(shown) && shown.uid === now.uid && shown.node !== now.node;
}

function isLoopback(hostname) {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d+){3}$/.test(hostname);
}

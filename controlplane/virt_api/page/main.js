// Copyright: (c) 2026, virtops.kubevirt contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later
/** Starts the page: shows the view that the URL names, and ends all when the user's sign-in does. boot.js loads it.
 *
 * Views: list_view, machine_view with its tabs overview_tab, console_tab and screen_tab (both a device_tab); bar, dialog.
 * Pure, tested on Node.js: route (the URL), list_rows, explain and explain_pod (why a machine is in its state), timeline,
 * facts, actions (buttons and rights), session_end (what follows the end of a console or screen), keystrokes, objects, format.
 * Elements: dom, icons, theme; of the device tabs also device, terminal (xterm.js) and inline_styles.
 * From the API server: api (requests), access (rights), watch, machine_objects, connection (WebSockets of console and screen).
 * pace: when a view is drawn.
 */

import { session } from './api.js';
import { Bar } from './bar.js';
import { el, fill } from './dom.js';
import { ListView } from './list_view.js';
import { MachineView } from './machine_view.js';
import { formatRoute, parseRoute } from './route.js';

const main = document.getElementById('main');
const bar = new Bar(document.getElementById('bar'), go);
let view = null;
let shown = '';

function go(route) {
  location.hash = formatRoute(route);
}

/** Show what the address names. A view of the same machine or list is kept. */
function show() {
  const route = parseRoute(location.hash);
  if (route.namespace === null) {
    location.replace(formatRoute({ namespace: '' }));
    return;
  }
  const identity = `${route.namespace}/${route.name ?? ''}`;
  bar.show(route);
  if (view && shown === identity) {
    view.show(route);
    return;
  }
  view?.close();
  shown = identity;
  view = route.name ? new MachineView(route, go, bar) : new ListView(route, go, bar);
  document.title = route.name ? `${route.name} · virtual machine` : 'Virtual machines';
  fill(main, view.element);
  view.show(route);
}

/** End all: no request of this page would succeed any more. */
function showSignedOut({ detail }) {
  window.removeEventListener('hashchange', show);
  view?.close();
  view = null;
  bar.showState('refused', 'Signed out');
  fill(main, el('section', { class: 'blank', role: 'alert' }, el('h1', {}, 'You are signed out'), el('p', {}, detail)));
}

document.querySelector('.skip').addEventListener('click', (event) => {
  event.preventDefault(); // the hash is the address of a view
  main.focus();
});
window.addEventListener('hashchange', show);
window.addEventListener('pagehide', () => view?.close());
window.addEventListener('pageshow', ({ persisted }) => persisted && location.reload());
session.addEventListener('ended', showSignedOut, { once: true });
show();

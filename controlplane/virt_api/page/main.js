// Copyright: (c) 2026, virtops.kubevirt contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later
/** Starts the page: shows the view that the address names, and ends all when the user's sign-in does. */

import { format, parse } from './address.js';
import { session } from './api.js';
import { Bar } from './bar.js';
import { el, fill } from './dom.js';
import { ListView } from './list.js';
import { MachineView } from './machine.js';

const main = document.getElementById('main');
const bar = new Bar(document.getElementById('bar'), go);
let view = null;
let shown = '';

function go(route) {
  location.hash = format(route);
}

/** Show what the address names. A view of the same machine or list is kept. */
function show() {
  const route = parse(location.hash);
  if (route.namespace === null) {
    location.replace(format({ namespace: '' }));
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
function end({ detail }) {
  window.removeEventListener('hashchange', show);
  view?.close();
  view = null;
  bar.live('refused', 'Signed out');
  fill(main, el('section', { class: 'blank', role: 'alert' }, el('h1', {}, 'You are signed out'), el('p', {}, detail)));
}

document.querySelector('.skip').addEventListener('click', (event) => {
  event.preventDefault(); // the hash is the address of a view
  main.focus();
});
window.addEventListener('hashchange', show);
window.addEventListener('pagehide', () => view?.close());
window.addEventListener('pageshow', ({ persisted }) => persisted && location.reload());
session.addEventListener('ended', end, { once: true });
show();

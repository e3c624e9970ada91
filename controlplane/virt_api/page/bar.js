// Copyright: (c) 2026, virtops.kubevirt contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later
/** The bar on top: the namespace, whether the page is live, and the theme. */

import { request } from './api.js';
import { button, el, fill, icon, setText } from './dom.js';
import { ICONS } from './icons.js';
import { nextTheme, useTheme } from './theme.js';

const STATES = { loading: 'Loading', live: 'Live', retrying: 'Connecting again', refused: 'Not permitted' };

/** The bar. go(route) shows a view. */
export class Bar {
  constructor(element, go) {
    this.go = go;
    this.route = null;
    this.state = el('span', { class: 'live' });
    this.choices = el('datalist', { id: 'namespaces' });
    this.input = el('input', {
      id: 'namespace', list: 'namespaces', autocomplete: 'off', spellcheck: 'false', placeholder: 'all namespaces',
      on: { change: () => this.openNamespace(), focus: () => this.input.select() },
    });
    const theme = button('', () => this.showTheme(theme, nextTheme()), { kind: 'quiet' });
    this.showTheme(theme, useTheme());
    fill(
      element,
      el('a', { class: 'brand', href: '#/-', title: 'All virtual machines' }, el('img', { src: 'icon.svg', alt: '' }), el('span', {}, 'Virtual machines')),
      el('label', { class: 'namespace' }, el('span', {}, 'Namespace'), this.input),
      this.choices,
      el('span', { class: 'space' }),
      this.state,
      theme,
    );
    this.loadNamespaces();
  }

  /** Fill the choices. A user who may not list namespaces types one. */
  async loadNamespaces() {
    try {
      const { items } = await request('GET', 'api/v1/namespaces', { parameters: { limit: '500' } });
      fill(this.choices, items.map(({ metadata }) => el('option', { value: metadata.name })));
    } catch {
      this.input.placeholder = 'type a namespace';
    }
  }

  show(route) {
    this.route = route;
    this.input.value = route.namespace;
  }

  /** Have the user type a namespace. */
  focusNamespace() {
    if (document.activeElement === document.body) {
      this.input.focus();
    }
  }

  openNamespace() {
    const namespace = this.input.value.trim();
    if (namespace !== this.route?.namespace || this.route?.name) {
      this.go({ namespace });
    }
  }

  /** Show the state of the watches. */
  showState(state, text = STATES[state]) {
    this.state.dataset.state = state;
    setText(this.state, text);
  }

  showTheme(target, theme) {
    fill(target, icon(ICONS.theme), el('span', { class: 'wide' }, theme));
    target.title = `Theme: ${theme}. Click to change it.`;
    target.setAttribute('aria-label', target.title);
  }
}

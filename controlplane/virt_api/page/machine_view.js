// Copyright: (c) 2026, virtops.kubevirt contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later
/** One machine: its head, its buttons, and the tabs overview, console and screen. */

import { reviewRights } from './access.js';
import { acceptedText, ACTIONS, bodyOf, confirmation, pathOf, whyNot } from './actions.js';
import { request } from './api.js';
import { ConsoleTab } from './console_tab.js';
import { NEEDS } from './device_tab.js';
import { ask, notify } from './dialog.js';
import { button, el, fill, icon, isDisabled, setDisabled, setText } from './dom.js';
import { explain } from './explain.js';
import { ICONS } from './icons.js';
import { MachineObjects } from './machine_objects.js';
import { groupOf, statusWord } from './objects.js';
import { OverviewTab } from './overview_tab.js';
import { Pace } from './pace.js';
import { formatRoute, TABS } from './route.js';
import { ScreenTab } from './screen_tab.js';

const LABELS = { overview: 'Overview', console: 'Console', screen: 'Screen' };
const CLOCK_MS = 5000;

/** The view. */
export class MachineView {
  constructor(route, go, bar) {
    Object.assign(this, { route, go, bar, rights: null, closed: new AbortController(), busy: new Set() });
    this.pace = new Pace(() => this.draw());
    const machine = { namespace: route.namespace, name: route.name };
    this.machine = machine;
    this.objects = new MachineObjects(machine, () => this.pace.schedule());
    const context = { machine, world: () => this.objects.world(), rights: () => this.rights, perform: (action) => this.perform(action) };
    this.tabs = { overview: new OverviewTab(), console: new ConsoleTab(context), screen: new ScreenTab(context) };
    this.element = this.build();
    this.timer = setInterval(() => this.pace.schedule(), CLOCK_MS);
    this.review();
  }

  build() {
    const { namespace, name } = this.machine;
    this.status = el('span', { class: 'status' });
    this.why = el('section', { class: 'why', 'aria-live': 'polite' });
    this.buttons = new Map(ACTIONS.map((action) => [action, this.actionButton(action)]));
    this.links = new Map(TABS.map((tab) => [tab, this.tabLink(tab)]));
    const back = el('a', { class: 'crumb', href: formatRoute({ namespace }), title: 'Back to the list' }, icon(ICONS.back), namespace);
    const head = el('div', { class: 'head' }, back, el('h1', {}, name), this.status,
      el('div', { class: 'actions', role: 'toolbar', 'aria-label': 'Machine' }, [...this.buttons.values()]));
    const tabs = el('div', { class: 'tabs', role: 'tablist', on: { keydown: (event) => this.onArrowKey(event) } }, [...this.links.values()]);
    this.panels = new Map(TABS.map((tab) => [tab, el('div', {
      class: `panel of-${tab}`, role: 'tabpanel', id: `panel-${tab}`, 'aria-labelledby': `tab-${tab}`, hidden: true,
    }, this.tabs[tab].element)]));
    return el('div', { class: 'machine' }, head, this.why, tabs, [...this.panels.values()]);
  }

  actionButton(action) {
    const label = [icon(ICONS[action.verb]), el('span', {}, action.label)];
    return button(label, () => this.perform(action), { 'data-verb': action.verb });
  }

  tabLink(tab) {
    return el('a', {
      role: 'tab', id: `tab-${tab}`, 'aria-controls': `panel-${tab}`, href: formatRoute({ ...this.machine, tab }),
    }, LABELS[tab]);
  }

  onArrowKey(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step) {
      const next = TABS[(TABS.indexOf(this.route.tab) + step + TABS.length) % TABS.length];
      this.go({ ...this.machine, tab: next });
      this.links.get(next).focus();
    }
  }

  show(route) {
    this.route = route;
    TABS.forEach((tab) => {
      const isShown = tab === route.tab;
      this.links.get(tab).setAttribute('aria-selected', String(isShown));
      this.links.get(tab).tabIndex = isShown ? 0 : -1;
      this.panels.get(tab).hidden = !isShown;
    });
    this.element.dataset.tab = route.tab;
    this.draw();
    this.tabs[route.tab].show?.();
  }

  close() {
    this.closed.abort();
    this.pace.stop();
    clearInterval(this.timer);
    this.objects.stop();
    Object.values(this.tabs).forEach((tab) => tab.close?.());
  }

  async review() {
    try {
      this.rights = await reviewRights(this.machine, this.closed.signal);
    } finally {
      this.pace.schedule();
    }
  }

  draw() {
    if (this.closed.signal.aborted) {
      return;
    }
    const world = this.objects.world();
    this.bar.showState(world.state);
    const word = world.isKnown ? (world.vm || world.vmi ? statusWord(world.vm, world.vmi) : 'Not found') : 'Loading';
    setText(this.status, word);
    this.status.dataset.tone = word === 'Loading' || word === 'Not found' ? 'stopped' : groupOf(word);
    this.drawWhy(world);
    ACTIONS.forEach((action) => {
      const reason = world.isKnown ? whyNot(action, world, this.rights ?? new Map()) : 'The machine is being read.';
      setDisabled(this.buttons.get(action), this.busy.has(action) ? 'It is being asked for.' : reason, action.label);
    });
    Object.entries(NEEDS).forEach(([tab, right]) => this.links.get(tab).classList.toggle('grey', this.rights?.get(right) === false));
    Object.values(this.tabs).forEach((tab) => tab.update(world));
  }

  drawWhy(world) {
    const shown = world.error
      ? { tone: 'problem', title: world.error.code === 403 ? 'You may not look at it' : 'It cannot be read', text: world.error.message, remedy: '' }
      : explain({ ...world, now: Date.now() });
    const text = JSON.stringify(shown);
    this.why.hidden = !world.isKnown && !world.error;
    if (text !== this.whyText) {
      this.whyText = text;
      this.why.dataset.tone = shown.tone;
      fill(this.why, el('h2', {}, shown.title), el('p', {}, shown.text), shown.remedy ? el('p', { class: 'remedy' }, shown.remedy) : '');
    }
  }

  /** Perform an action. What is typed next is for the guest, not for the action's button. */
  async perform(action) {
    if (isDisabled(this.buttons.get(action))) {
      notify(this.buttons.get(action).title);
      this.focusTab();
      return;
    }
    const isForced = action.danger ? await this.confirm(action) : false;
    this.focusTab();
    if (isForced === null) {
      return;
    }
    this.busy.add(action);
    this.draw();
    try {
      await request('PUT', pathOf(action, this.machine), { body: bodyOf(action, isForced) });
      notify(acceptedText(action, this.machine.name));
    } catch (error) {
      notify(`${action.label}: ${error.message}`, true);
      this.review();
    } finally {
      this.busy.delete(action);
      this.pace.schedule();
    }
  }

  /** Give the keyboard to the console or screen that is shown. */
  focusTab() {
    this.tabs[this.route.tab].focus?.();
  }

  /** Ask before something dangerous. Returns whether to use force; null: do nothing. */
  async confirm(action) {
    const { title, text, forceLabel } = confirmation(action, this.objects.world(), this.machine.name);
    const force = el('input', { type: 'checkbox' });
    const fields = forceLabel ? [el('label', { class: 'check' }, force, el('span', {}, forceLabel))] : [];
    return await ask({ title, text, agree: action.label, fields }) ? force.checked : null;
  }
}

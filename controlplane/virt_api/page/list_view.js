// Copyright: (c) 2026, virtops.kubevirt contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later
/** The list of the machines of a namespace, or of all. */

import { button, el, fill, icon, setText, timeElement } from './dom.js';
import { age } from './format.js';
import { ICONS } from './icons.js';
import { counted, filtered, GROUPS, rows, sorted } from './list_rows.js';
import { collectionPath } from './objects.js';
import { Pace } from './pace.js';
import { formatRoute } from './route.js';
import { Watch, worstState } from './watch.js';

const COLUMNS = [
  ['name', 'Name'], ['namespace', 'Namespace'], ['status', 'Status'], ['node', 'Node'], ['address', 'Address'], ['created', 'Age'],
];
const AGE_MS = 10000;
const LINES = 500; // a browser lays out thousands in seconds

/** The view. */
export class ListView {
  constructor(route, go, bar) {
    Object.assign(this, { route, go, bar, column: 'name', isDescending: false, limit: LINES, state: 'loading', error: null, states: new Map() });
    this.pace = new Pace(() => this.draw());
    this.objects = { virtualmachines: new Map(), virtualmachineinstances: new Map() };
    this.elements = new Map();
    this.element = this.build();
    this.watches = Object.keys(this.objects).map((plural) => new Watch(collectionPath(plural, route.namespace), {
      onChange: (objects) => this.setObjects(plural, objects),
      onState: (state, error) => this.setState(plural, state, error),
    }));
    this.timer = setInterval(() => this.updateAges(), AGE_MS);
    this.onKey = (event) => this.focusFilter(event);
    document.addEventListener('keydown', this.onKey);
  }

  build() {
    this.search = el('input', {
      type: 'search', placeholder: 'Filter by name, status, node, address', 'aria-label': 'Filter', autocomplete: 'off',
      on: { input: () => this.narrow({ filter: this.search.value }) },
    });
    this.groups = el('div', { class: 'groups', role: 'group', 'aria-label': 'Status' });
    this.body = el('tbody');
    this.heads = new Map(COLUMNS.map(([field, label]) => [field, this.head(field, label)]));
    this.table = el('table', { class: 'machines' }, el('thead', {}, el('tr', {}, [...this.heads.values()])), this.body);
    this.more = button('', () => this.showMore());
    this.blank = el('section', { class: 'blank', role: 'status' });
    const filter = el('label', { class: 'search' }, icon(ICONS.search), this.search, el('kbd', { class: 'wide' }, '/'));
    this.tools = el('div', { class: 'tools' }, filter, this.groups);
    return el('div', { class: 'list' }, this.tools, this.table, this.more, this.blank);
  }

  head(field, label) {
    const sort = el('button', { type: 'button', on: { click: () => this.sort(field) } }, label);
    return el('th', { scope: 'col', class: `is-${field}` }, sort);
  }

  show(route) {
    this.route = route;
    if (this.search.value !== route.filter) {
      this.search.value = route.filter;
    }
    this.table.classList.toggle('of-all', route.namespace === '');
    this.draw();
  }

  close() {
    clearInterval(this.timer);
    this.pace.stop();
    document.removeEventListener('keydown', this.onKey);
    this.watches.forEach((watch) => watch.stop());
  }

  focusFilter(event) {
    if (event.key === '/' && !event.target.closest('input, textarea, dialog')) {
      event.preventDefault();
      this.search.focus();
    }
  }

  narrow(change) {
    this.route = { ...this.route, ...change };
    history.replaceState(null, '', formatRoute(this.route));
    this.draw();
  }

  sort(column) {
    this.isDescending = column === this.column && !this.isDescending;
    this.column = column;
    this.draw();
  }

  setObjects(plural, objects) {
    this.objects[plural] = objects;
    this.pace.schedule();
  }

  setState(plural, state, error) {
    this.states.set(plural, { state, error });
    const all = [...this.states.values()];
    this.state = worstState(all.map((each) => each.state));
    this.error = all.find((each) => each.state === this.state).error ?? null;
    this.bar.showState(this.state);
    if (this.error?.code === 403 && this.route.namespace === '') {
      this.bar.focusNamespace();
    }
    this.pace.schedule();
  }

  draw() {
    const all = rows(this.objects.virtualmachines, this.objects.virtualmachineinstances);
    const isDescending = this.isDescending !== (this.column === 'created'); // the smallest age is the latest time
    const shown = sorted(filtered(all, this.route), this.column, isDescending);
    this.heads.forEach((head, field) => head.setAttribute('aria-sort',
      field === this.column ? (this.isDescending ? 'descending' : 'ascending') : 'none'));
    this.drawGroups(counted(all));
    const first = shown.slice(0, this.limit);
    const keys = new Set(first.map(({ key }) => key));
    this.elements = new Map([...this.elements].filter(([key]) => keys.has(key)));
    const now = Date.now();
    const isRefused = this.state === 'refused'; // what was listed before must not stay
    this.placeLines(first.map((row) => this.line(row, now)));
    setText(this.more, `${first.length} of ${shown.length} machines are shown. Show more`);
    this.more.hidden = first.length === shown.length || isRefused;
    this.table.hidden = shown.length === 0 || isRefused;
    this.drawBlank(all.length, shown.length);
  }

  showMore() {
    this.limit += LINES;
    this.draw();
  }

  /** Put the lines in order, and leave those alone that are in place: focus and selection stay. */
  placeLines(lines) {
    lines.forEach((line, index) => {
      if (this.body.children[index] !== line) {
        this.body.insertBefore(line, this.body.children[index] ?? null);
      }
    });
    while (this.body.children.length > lines.length) {
      this.body.lastChild.remove();
    }
  }

  line(row, now) {
    const known = this.elements.get(row.key);
    const text = JSON.stringify(row);
    if (known?.text === text) {
      return known.line;
    }
    const line = known?.line ?? el('tr');
    const href = formatRoute({ namespace: row.namespace, name: row.name });
    const time = timeElement(row.created, age(row.created, now));
    fill(
      line,
      el('th', { scope: 'row', class: 'is-name' }, el('a', { href }, row.name), row.kind ? el('span', { class: 'kind' }, row.kind) : ''),
      el('td', { class: 'is-namespace' }, row.namespace),
      el('td', { class: 'is-status' }, el('span', { class: 'status', 'data-tone': row.group }, row.status), el('span', { class: 'note' }, row.note)),
      el('td', { class: 'is-node' }, row.node),
      el('td', { class: 'is-address' }, row.address),
      el('td', { class: 'is-created' }, time),
    );
    this.elements.set(row.key, { text, line });
    return line;
  }

  updateAges() {
    const now = Date.now();
    this.body.querySelectorAll('time').forEach((time) => setText(time, age(time.dateTime, now)));
  }

  drawGroups(counts) {
    const buttons = [['', 'All'], ...GROUPS].filter(([group]) => group === '' || counts.get(group) || group === this.route.group)
      .map(([group, label]) => el('button', {
        type: 'button', 'data-tone': group || null, 'aria-pressed': String(group === this.route.group),
        on: { click: () => this.narrow({ group }) },
      }, `${label} `, el('b', {}, String(counts.get(group) ?? 0))));
    const focused = [...this.groups.children].indexOf(document.activeElement);
    fill(this.groups, buttons);
    this.groups.children[focused]?.focus();
  }

  drawBlank(total, shown) {
    const space = this.route.namespace;
    const where = space ? `namespace ${space}` : 'all namespaces';
    let texts = [];
    if (this.error) {
      texts = this.error.code === 403
        ? [`You may not list the machines of ${where}`,
          space ? 'Choose another namespace above, or ask for the role view in this one.' : 'Type the name of a namespace above.',
          this.error.detail]
        : ['The machines cannot be read', this.error.message, 'It is tried again by itself.'];
    } else if (this.state === 'loading') {
      texts = ['Loading…'];
    } else if (total === 0) {
      texts = [`No virtual machines in ${where}`, 'One that is created appears here by itself.'];
    } else if (shown === 0) {
      texts = ['No machine matches the filter'];
    }
    const [title, ...rest] = texts;
    fill(this.blank, title ? el('h1', {}, title) : '', rest.map((text) => el('p', {}, text)),
      this.state === 'refused' ? button('Try again', () => location.reload()) : '');
    this.blank.hidden = !title;
    this.tools.hidden = this.state === 'refused';
  }
}

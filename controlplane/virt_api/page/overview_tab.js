// Copyright: (c) 2026, virtops.kubevirt contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later
/** The tab with the time line and the facts of a machine. */

import { el, fill, setText, timeElement } from './dom.js';
import { disks, facts } from './facts.js';
import { age } from './format.js';
import { timeline } from './timeline.js';

/** The tab. */
export class OverviewTab {
  constructor() {
    this.line = el('ol', { class: 'timeline' });
    this.hidden = el('p', { class: 'hint' });
    this.facts = el('dl', { class: 'facts' });
    this.disks = el('dl', { class: 'facts' });
    this.entries = new Map();
    this.heads = [['What happened', this.line], ['Machine', this.facts], ['Disks', this.disks]].map(([title, list]) => [el('h2', {}, title), list]);
    const [[happened], [machine], [disksHead]] = this.heads;
    this.element = el(
      'div', { class: 'overview' },
      el('section', { 'aria-label': 'Time line' }, happened, this.hidden, this.line),
      el('aside', {}, machine, this.facts, disksHead, this.disks),
    );
  }

  update(world) {
    if (!world.isKnown) {
      return;
    }
    const names = { pods: 'launcher Pods', events: 'Events' };
    const hidden = world.hidden.map((what) => names[what]).join(' and ');
    setText(this.hidden, hidden ? `You may not read the ${hidden} of this namespace, so they are missing here.` : '');
    this.drawFacts(this.facts, facts(world));
    this.drawFacts(this.disks, disks(world));
    this.drawTimeline(timeline(world), Date.now());
    this.heads.forEach(([head, list]) => { [head.hidden, list.hidden] = [!list.children.length, !list.children.length]; });
  }

  drawFacts(list, rows) {
    const text = JSON.stringify(rows);
    if (list.dataset.text !== text) {
      list.dataset.text = text;
      fill(list, rows.flatMap(([label, value]) => [el('dt', {}, label), el('dd', {}, value)]));
    }
  }

  /** Draw the entries; those that have not changed keep their elements, and with them a selection. */
  drawTimeline(entries, now) {
    const lines = entries.map((entry) => this.entryElement(entry, now));
    if (lines.length !== this.line.children.length || lines.some((line, index) => this.line.children[index] !== line)) {
      fill(this.line, lines);
    }
    this.entries = new Map([...this.entries].filter(([, { item }]) => item.isConnected));
  }

  entryElement(entry, now) {
    const key = JSON.stringify(entry);
    const stamp = new Date(entry.time).toISOString();
    const known = this.entries.get(key);
    if (known) {
      setText(known.time, age(stamp, now));
      return known.item;
    }
    const time = timeElement(stamp, age(stamp, now));
    const times = entry.count > 1 ? el('span', { class: 'count', title: `${entry.count} times` }, `×${entry.count}`) : '';
    const item = el(
      'li', { 'data-tone': entry.tone, 'data-kind': entry.kind },
      time, el('span', { class: 'source' }, entry.source),
      el('div', { class: 'what' }, el('b', {}, entry.title), times, el('code', {}, entry.code), entry.text ? el('p', {}, entry.text) : ''),
    );
    this.entries.set(key, { item, time });
    return item;
  }
}

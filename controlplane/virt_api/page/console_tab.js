// Copyright: (c) 2026, virtops.kubevirt contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later
/** The tab with the serial console. */

import { Connection } from './connection.js';
import { copyText, Device, readClipboard, saveFile, toggleFullscreen, toolButton } from './device.js';
import { DeviceTab } from './device_tab.js';
import { askForText, notify } from './dialog.js';
import { el, setText } from './dom.js';
import { hits } from './format.js';
import { subresourcePath } from './objects.js';
import { isContinued } from './session_end.js';

const HINT = 'Ctrl+Shift+C copies, Ctrl+Shift+V pastes, Ctrl+Shift+F searches, Ctrl+Shift+E leaves the terminal';

/** The tab. */
export class ConsoleTab extends DeviceTab {
  constructor(context) {
    super('console', context);
    Object.assign(this, { parts: null, shown: null, movedTo: '' }); // shown: whose output, and on which node it began
    const { namespace, name } = this.machine;
    this.connection = new Connection({
      path: subresourcePath('virtualmachineinstances', namespace, name, 'console'),
      parameters: { backlog: 'true' },
      vmi: () => this.world().vmi,
      onOpen: (socket) => this.open(socket),
      onState: (state) => this.showState(state),
    });
    this.element = this.build();
  }

  build() {
    this.find = el('input', {
      type: 'search', placeholder: 'Search', 'aria-label': 'Search the output',
      on: { keydown: (event) => this.searchKey(event), input: () => this.search(1, true) },
    });
    this.hits = el('span', { class: 'hits', role: 'status' });
    this.tools = el(
      'div', { class: 'toolbar', role: 'toolbar', 'aria-label': 'Console', hidden: true },
      el('span', { class: 'find' }, this.find, this.hits),
      toolButton('up', '', 'Search upwards (Shift+Enter)', () => this.search(-1)),
      toolButton('down', '', 'Search downwards (Enter)', () => this.search(1)),
      toolButton('copy', 'Copy', 'Copy the selection, or all (Ctrl+Shift+C)', () => this.copy()),
      toolButton('paste', 'Paste', 'Paste (Ctrl+Shift+V)', () => this.paste()),
      toolButton('fit', 'Fit', 'Tell the guest the size of this window: types stty rows … cols …', () => this.tellSize()),
      toolButton('save', 'Save', 'Save the output as a text file', () => this.save()),
      toolButton('full', '', 'Full screen', () => toggleFullscreen(this.element)),
    );
    this.frame = el('div', { class: 'serial' });
    this.device = new Device({ frame: this.frame, tools: this.tools, hint: HINT, onConnect: () => this.press() });
    return this.device.element;
  }

  show() {
    super.show();
    this.fit();
  }

  focus() {
    this.parts?.terminal.focus();
  }

  load() {
    return import('./terminal.js');
  }

  use({ makeTerminal, searchIn, textOf }) {
    Object.assign(this, { searchIn, textOf });
    this.parts = makeTerminal(this.frame, {
      onInput: (bytes) => this.send(bytes),
      onKey: (event) => this.handleShortcut(event),
      onFound: (index, number, limit) => setText(this.hits, this.find.value ? hits(index, number, limit) : ''),
    });
    this.observer = new ResizeObserver(() => this.fit());
    this.observer.observe(this.frame);
    this.tools.hidden = false;
    this.fit();
  }

  open(socket) {
    const { terminal } = this.parts;
    const { vmi } = this.world();
    const now = { uid: vmi?.metadata.uid, node: this.movedTo || vmi?.status?.nodeName };
    if (!isContinued(this.shown, now)) {
      terminal.reset(); // the backlog begins the output again
    } else if (terminal.buffer.active.type === 'normal') { // a program that uses the whole terminal would not remove the line
      terminal.write(`\r\n-- moved to ${now.node} --\r\n`);
    }
    Object.assign(this, { shown: now, movedTo: '' });
    this.parts.hasTyped = false;
    socket.addEventListener('message', ({ data }) => terminal.write(new Uint8Array(data)));
  }

  showState(state) {
    this.movedTo = state.node || this.movedTo; // the watch may be later than the session's end
    super.showState(state);
  }

  close() {
    super.close();
    this.observer?.disconnect();
    this.parts?.terminal.dispose();
  }

  /** Send bytes. They go as a binary frame: the server ignores text frames. */
  send(bytes) {
    const { socket } = this.connection;
    if (socket?.readyState === WebSocket.OPEN) {
      socket.send(bytes);
    }
  }

  fit() {
    if (this.parts && this.frame.offsetParent) {
      this.parts.fit.fit();
    }
  }

  tellSize() {
    const { rows, cols } = this.parts.terminal;
    this.send(new TextEncoder().encode(`stty rows ${rows} cols ${cols}\r`));
    this.parts.terminal.focus();
  }

  /** Take the keys of the page. Returns false for a key that the guest does not get. */
  handleShortcut(event) {
    const leave = () => this.find.focus();
    const act = { KeyC: () => this.copy(), KeyV: () => this.paste(), KeyF: leave, KeyE: leave }[event.code];
    if (!act || !event.ctrlKey || !event.shiftKey || event.altKey) {
      return true;
    }
    event.preventDefault();
    if (event.type === 'keydown') {
      act();
    }
    return false;
  }

  async copy() {
    const { terminal } = this.parts;
    const selected = terminal.getSelection();
    const done = await copyText(selected || this.textOf(terminal));
    const what = selected ? 'The selection' : 'All output';
    notify(done ? `${what} was copied.` : 'The browser does not let this page copy. Select the text, and use its menu.', !done);
    terminal.focus();
  }

  async paste() {
    const question = { title: 'Paste into the console', text: '', agree: 'Paste', label: 'Text to paste' };
    const text = await readClipboard() ?? await askForText(question);
    if (text) {
      this.parts.hasTyped = true; // the browser tells of its own pasting, not of this
      this.parts.terminal.paste(text);
    }
    this.parts.terminal.focus();
  }

  save() {
    saveFile(new Blob([this.textOf(this.parts.terminal)], { type: 'text/plain' }), `${this.machine.name}-console.txt`);
    this.focus();
  }

  searchKey(event) {
    if (event.key === 'Enter') {
      this.search(event.shiftKey ? -1 : 1);
    } else if (event.key === 'Escape') {
      this.searchIn(this.parts, '');
      setText(this.hits, '');
      this.parts.terminal.focus();
    }
  }

  /** Search from the selection on. Typing searches upwards: the newest output is last. */
  search(direction, isTyped = false) {
    this.searchIn(this.parts, this.find.value, isTyped ? -1 : direction);
    if (this.find.value === '') {
      setText(this.hits, '');
    }
  }
}

// Copyright: (c) 2026, virtops.kubevirt contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later
/** What the tabs console and screen share: the strip with state and tools, full screen, the clipboard, files. */

import { button, el, icon, setText } from './dom.js';
import { ICONS } from './icons.js';

/** Return a tool: a button with an icon, and a label where there is room. */
export function toolButton(name, label, title, onClick) {
  return button([icon(ICONS[name]), el('span', { class: 'wide' }, label)], onClick, { kind: 'tool', title, 'aria-label': title });
}

const WORDS = { open: 'Connected', connecting: 'Connecting', waiting: 'Waiting', ended: 'Not connected', stopped: 'Stopped', absent: 'Does not exist' };

/** A console or screen in its frame: above it a strip with state and tools, over it a cover that says why it is not live, below it a hint. */
export class Device {
  constructor({ frame, tools, hint, onConnect }) {
    this.word = el('span', { class: 'word' });
    this.text = el('p', { role: 'status' });
    this.button = button('Connect', onConnect, { kind: 'strong' });
    this.cover = el('div', { class: 'cover' }, el('div', {}, this.text, this.button));
    const strip = el('div', { class: 'strip' }, el('span', { class: 'dot' }), this.word, el('span', { class: 'space' }), tools);
    this.element = el('div', { class: 'device' }, strip, el('div', { class: 'stage' }, frame, this.cover), el('p', { class: 'hint' }, hint));
    this.show({ state: 'ended', text: 'Not connected.', button: '' });
  }

  /** Show a state of connection.js, or one of session_end.js: while it waits for the guest. */
  show({ state, text, button: label }) {
    this.element.dataset.state = state;
    setText(this.word, WORDS[state]);
    setText(this.text, text);
    setText(this.button, label);
    this.button.hidden = !label;
    this.cover.hidden = state === 'open';
  }
}

const PAUSES_MS = [300, 1000, 3000];

/** Load the code of a device, then use it; a failure is shown. */
export async function loadModule(device, load, use) {
  device.show({ state: 'connecting', text: 'Loading…', button: '' });
  let module;
  try {
    module = await loadWithRetries(load);
  } catch (error) {
    device.show({ state: 'ended', text: `The code for this could not be loaded: ${error.message}`, button: 'Try again' });
    return;
  }
  use(module);
}

/** Load, and again if a file did not arrive: a browser drops requests when the network changes. */
async function loadWithRetries(load) {
  for (const pause of PAUSES_MS) {
    try {
      return await load();
    } catch {
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }
  return load();
}

/** Show an element on the whole screen, or no longer. */
export async function toggleFullscreen(element) {
  if (document.fullscreenElement) {
    await document.exitFullscreen();
  } else {
    await element.requestFullscreen();
  }
}

/** Copy a text. Tells whether the browser allowed it. */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

/** Return the text of the clipboard; null when the browser does not allow it. */
export async function readClipboard() {
  try {
    return await navigator.clipboard.readText();
  } catch {
    return null;
  }
}

/** Have the browser save a Blob as a file. */
export function saveFile(blob, name) {
  const url = URL.createObjectURL(blob);
  el('a', { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

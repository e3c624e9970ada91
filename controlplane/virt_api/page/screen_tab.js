// Copyright: (c) 2026, virtops.kubevirt contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later
/** The tab with the guest's screen. */

import { whyNoScreenshot } from './actions.js';
import { send } from './api.js';
import { Connection } from './connection.js';
import { Device, readClipboard, saveFile, toggleFullscreen, toolButton } from './device.js';
import { DeviceTab } from './device_tab.js';
import { askForText, notify } from './dialog.js';
import { button, el, fill, isDisabled, setDisabled } from './dom.js';
import { CHORDS, CTRL_ALT_DELETE, keystrokes, SHIFT } from './keystrokes.js';
import { subresourcePath } from './objects.js';

const HINT = 'Ctrl+Shift+E leaves the screen';
const SCREENSHOT = 'Save the screen as a PNG file';
const MENU_WIDTH = 200;
const BETWEEN_KEYS_MS = 8; // a guest's keyboard controller holds 16 bytes

/** The tab. */
export class ScreenTab extends DeviceTab {
  constructor(context) {
    super('screen', context);
    Object.assign(this, { rfb: null, RFB: null, isScaled: true });
    const { namespace, name } = this.machine;
    this.path = subresourcePath('virtualmachineinstances', namespace, name, 'vnc');
    this.connection = new Connection({
      path: this.path,
      vmi: () => this.world().vmi,
      onOpen: (socket) => this.open(socket),
      onState: (state) => this.showState(state),
    });
    this.element = this.build();
  }

  build() {
    this.menu = el('div', { class: 'menu', role: 'menu', id: 'keys', popover: 'auto' }, CHORDS.map(([label, keys]) => el('button', {
      type: 'button', role: 'menuitem', on: { click: () => this.press(keys) },
    }, label)));
    this.keys = toolButton('keys', 'Keys', 'Send keys that this computer would take', () => {});
    this.keys.setAttribute('popovertarget', 'keys');
    this.menu.addEventListener('beforetoggle', () => this.placeMenu());
    this.scale = toolButton('scale', 'Scale', 'Scale the screen to the window', () => this.toggleScale());
    this.scale.setAttribute('aria-pressed', 'true');
    this.screenshot = toolButton('camera', 'Screenshot', SCREENSHOT, () => this.saveScreenshot());
    this.tools = el(
      'div', { class: 'toolbar', role: 'toolbar', 'aria-label': 'Screen', hidden: true },
      button('Ctrl+Alt+Del', () => this.press(CTRL_ALT_DELETE), { kind: 'tool wide', title: 'Send Ctrl+Alt+Delete' }),
      this.keys, this.menu,
      toolButton('paste', 'Type', 'Type a text as keys of a US keyboard', () => this.askAndType()),
      this.scale,
      this.screenshot,
      toolButton('full', '', 'Full screen', () => toggleFullscreen(this.element)),
    );
    this.frame = el('div', { class: 'screen' });
    this.frame.addEventListener('keydown', (event) => this.leaveOnShortcut(event), { capture: true });
    this.device = new Device({ frame: this.frame, tools: this.tools, hint: HINT, onConnect: () => this.press() });
    return this.device.element;
  }

  /** Put the menu below its button. */
  placeMenu() {
    const { bottom, left } = this.keys.getBoundingClientRect();
    this.menu.style.top = `${bottom + 4}px`;
    this.menu.style.left = `${Math.min(left, window.innerWidth - MENU_WIDTH)}px`;
  }

  focus() {
    this.rfb?.focus();
  }

  load() {
    return import('./novnc/package/core/rfb.js');
  }

  use(module) {
    this.RFB = module.default;
    this.tools.hidden = false;
  }

  open(socket) {
    this.disconnect();
    const rfb = new this.RFB(this.frame, socket, { shared: true });
    this.rfb = rfb;
    rfb.background = '';
    this.applyScale();
    rfb.addEventListener('securityfailure', () => notify('The screen refused the connection.', true));
    rfb.addEventListener('connect', () => rfb.focus());
    rfb.addEventListener('disconnect', () => {
      this.rfb = this.rfb === rfb ? null : this.rfb;
    });
  }

  update() {
    super.update();
    setDisabled(this.screenshot, whyNoScreenshot(this.world(), this.rights() ?? new Map()), SCREENSHOT);
  }

  /** Remove the picture of an ended connection. */
  disconnect() {
    this.rfb?.disconnect();
    this.rfb = null;
    fill(this.frame);
  }

  close() {
    this.disconnect();
    super.close();
  }

  /** Press keys together, and release them in reverse. */
  press(keys) {
    this.menu.hidePopover();
    if (this.rfb) {
      keys.forEach(({ keysym, code }) => this.rfb.sendKey(keysym, code, true));
      [...keys].reverse().forEach(({ keysym, code }) => this.rfb.sendKey(keysym, code, false));
      this.rfb.focus();
    }
  }

  /** Let the keyboard leave the screen, which else takes every key. */
  leaveOnShortcut(event) {
    if (event.code === 'KeyE' && event.ctrlKey && event.shiftKey) {
      event.preventDefault();
      event.stopPropagation();
      this.keys.focus();
    }
  }

  /** Ask for a text and type it. */
  async askAndType() {
    const question = { title: 'Type a text', text: 'The guest gets it as keys of a US keyboard.', agree: 'Type', label: 'Text to type' };
    const text = await askForText({ ...question, value: await readClipboard() ?? '' });
    if (text) {
      await this.typeText(text);
    }
    this.focus();
  }

  async typeText(text) {
    const { strokes, unknown } = keystrokes(text);
    if (unknown.length) {
      notify(`Nothing was typed: a US keyboard has no key for ${unknown.join(' ')}`, true);
      return;
    }
    for (const { keysym, code, shift } of strokes) {
      if (!this.rfb) {
        return;
      }
      this.press(shift ? [SHIFT, { keysym, code }] : [{ keysym, code }]);
      await new Promise((resolve) => setTimeout(resolve, BETWEEN_KEYS_MS));
    }
  }

  toggleScale() {
    this.isScaled = !this.isScaled;
    this.scale.setAttribute('aria-pressed', String(this.isScaled));
    this.applyScale();
    this.focus();
  }

  applyScale() {
    if (this.rfb) {
      Object.assign(this.rfb, { scaleViewport: this.isScaled, clipViewport: !this.isScaled });
    }
  }

  /** Save what the server sees; it works without a connection. */
  async saveScreenshot() {
    if (isDisabled(this.screenshot)) {
      notify(this.screenshot.title);
      return;
    }
    this.focus();
    try {
      const blob = await (await send('GET', `${this.path}/screenshot`)).blob();
      const stamp = new Date().toISOString().slice(0, 19).replaceAll(':', '-');
      saveFile(new Blob([blob], { type: 'image/png' }), `${this.machine.name}-${stamp}.png`);
    } catch (error) {
      notify(`Screenshot: ${error.message}`, true);
    }
  }
}

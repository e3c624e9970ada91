// Copyright: (c) 2026, virtops.kubevirt contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later
/** A console's or screen's WebSocket: opens it, says what happens, and opens it again where session_end.js says so. */

import { send, socketAddress } from './api.js';
import { afterClose, afterRefusal } from './session_end.js';

const PROTOCOL = 'plain.kubevirt.io';
const RETRY_MS = [1000, 2000, 3000, 5000];
const AGAIN_MS = 250;
const GUEST_STARTED_MS = 1000;
const SHORT_MS = 2000; // a node that is out of order may open sessions and end them at once, for ever

/** The connection. path: of the subresource. vmi(): the instance now.
 *
 * onOpen(socket) is called while no message was received yet. onState({ state, text, button, node }): state is "connecting",
 * "open", "waiting" or "ended"; a button's click is to call `start`; node: where the guest has moved to. isWaiting: for the guest.
 */
export class Connection {
  constructor({ path, parameters = {}, vmi, onOpen, onState }) {
    Object.assign(this, { path, parameters, vmi, onOpen, onState, socket: null, timer: 0, attempt: 0, failures: 0, isWaiting: false, hasBeenOpen: false });
  }

  /** Connect now. text: what is shown meanwhile. */
  start(text = 'Connecting…') {
    this.stop();
    const attempt = this.attempt;
    this.onState({ state: 'connecting', text, button: '' });
    const socket = new WebSocket(socketAddress(this.path, this.parameters), [PROTOCOL]);
    socket.binaryType = 'arraybuffer';
    this.socket = socket;
    let opened = null;
    socket.addEventListener('open', () => {
      opened = Date.now();
      this.hasBeenOpen = true;
      this.onState({ state: 'open', text: 'Connected', button: '' });
      this.onOpen(socket);
    });
    socket.addEventListener('close', async ({ code, reason }) => {
      const end = opened !== null ? afterClose(code, reason) : await this.explainRefusal();
      if (attempt === this.attempt) {
        this.failures = opened !== null && Date.now() - opened >= SHORT_MS ? 0 : this.failures;
        this.handleEnd(end);
      }
    });
  }

  /** Close it, and do not connect again by itself. */
  stop() {
    this.attempt += 1;
    clearTimeout(this.timer);
    this.isWaiting = false;
    this.socket?.close();
    this.socket = null;
  }

  /** The instance has changed: connect if that was waited for. */
  instanceChanged() {
    if (this.isWaiting && this.vmi()?.status?.phase === 'Running') {
      this.isWaiting = false;
      this.startAfter(GUEST_STARTED_MS);
    }
  }

  async explainRefusal() {
    const error = await this.probe();
    return afterRefusal(error, this.vmi(), { failures: this.hasBeenOpen ? 0 : this.failures, page: location });
  }

  /** Scripts cannot see why a WebSocket was refused; a plain request says whether the user may open it. */
  async probe() {
    try {
      await send('GET', this.path);
      return null;
    } catch (error) {
      return error;
    }
  }

  handleEnd({ next, text, button, node }) {
    this.socket = null;
    this.isWaiting = next === 'wait';
    const state = { again: 'connecting', retry: 'waiting', wait: 'waiting' }[next] ?? 'ended';
    this.onState({ state, text, button, node });
    if (next === 'again') {
      this.startAfter(AGAIN_MS, text);
    } else if (next === 'retry') {
      this.startAfter(RETRY_MS[0]);
    } else if (next === 'wait') {
      this.instanceChanged();
    }
  }

  /** Connect after a pause, which is longer after each failure or short session. text: what is shown while it connects. */
  startAfter(firstMs, text) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.start(text), this.failures ? RETRY_MS[Math.min(this.failures, RETRY_MS.length - 1)] : firstMs);
    this.failures += 1;
  }
}

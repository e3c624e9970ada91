// Copyright: (c) 2026, virtops.kubevirt contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later
/** A tab with a device of the guest: when it connects, and why it does not. The tabs console and screen extend it. */

import { ACTIONS, neededRight, whyNoDevice, whyNot } from './actions.js';
import { loadModule } from './device.js';
import { specOf } from './objects.js';
import { whileWaiting } from './session_end.js';

/** The right that a tab needs. */
export const NEEDS = { console: 'virtualmachineinstances/console', screen: 'virtualmachineinstances/vnc' };

const START = ACTIONS.find(({ verb }) => verb === 'start');
const USES = { console: 'open the console', screen: 'see the screen' };

/** The tab. It connects when it is first shown, and stays connected while the machine's page is open.
 *
 * A subclass has `element`, `device`, `connection`, load(): imports its code, use(module): builds with it, and focus().
 */
export class DeviceTab {
  constructor(tab, { machine, world, rights, perform }) {
    Object.assign(this, { tab, machine, world, rights, perform, isShown: false, hasBegun: false, isLoaded: false, isClosed: false });
    Object.assign(this, { state: null, isStartOffered: false });
  }

  /** Show a state of the connection; while it waits for the guest, why there is none, and a button to start it. */
  showState(state) {
    this.state = state;
    this.isStartOffered = false;
    if (!this.connection.isWaiting) {
      this.device.show(state);
      return;
    }
    const world = this.world();
    const { isStartable, ...waiting } = whileWaiting(world, state.text);
    const whyNoStart = isStartable ? whyNot(START, world, this.rights() ?? new Map()) : '';
    this.isStartOffered = isStartable && !whyNoStart;
    const text = [waiting.text, whyNoStart].filter(Boolean).join(' ');
    this.device.show({ state: waiting.state, text, button: this.isStartOffered ? START.label : '' });
  }

  /** The button on the cover was pressed. */
  press() {
    if (this.isStartOffered) {
      this.perform(START);
    } else {
      this.connect();
    }
  }

  show() {
    this.isShown = true;
    this.connectOnce();
    this.focus();
  }

  /** Connect once it is known that the user may and that the machine has the device. */
  connectOnce() {
    const { isKnown, vm, vmi } = this.world();
    if (!this.isShown || this.hasBegun || !isKnown || !this.rights()) {
      return;
    }
    this.hasBegun = true;
    const need = NEEDS[this.tab];
    const mayNot = this.rights().get(need) === false;
    const refusal = mayNot ? `You may not ${USES[this.tab]}: ${neededRight('get', need)}`
      : whyNoDevice(this.tab, specOf(vm, vmi).domain?.devices ?? {});
    if (refusal) {
      this.device.show({ state: 'ended', text: refusal, button: mayNot ? 'Try again' : '' });
      return;
    }
    loadModule(this.device, () => this.load(), (module) => {
      if (!this.isClosed) {
        this.use(module);
        this.isLoaded = true;
        this.connect();
      }
    });
  }

  /** Connect, also when the user asks for it. */
  connect() {
    if (!this.isLoaded) {
      location.reload(); // the user may want to try again with new rights
      return;
    }
    this.connection.start();
    this.focus();
  }

  update() {
    this.connectOnce();
    this.connection.instanceChanged();
    if (this.connection.isWaiting) {
      this.showState(this.state);
    }
  }

  close() {
    this.isClosed = true;
    this.connection.stop();
  }
}

// Copyright: (c) 2026, virtops.kubevirt contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later
/** Says when a view is drawn: objects that change all the time must not keep the page from its user. */

const REST = 3;

/** Calls draw() after `schedule`, once per frame at most. Then it rests three times as long as drawing and layout took. */
export class Pace {
  constructor(draw) {
    Object.assign(this, { draw, isWanted: false, isBusy: false, isStopped: false });
  }

  schedule() {
    this.isWanted = true;
    if (!this.isBusy) {
      this.begin();
    }
  }

  /** Draw no more. */
  stop() {
    this.isStopped = true;
  }

  begin() {
    this.isBusy = true;
    requestAnimationFrame(() => {
      if (!this.isStopped) {
        const began = performance.now();
        setTimeout(() => setTimeout(() => this.end(), REST * (performance.now() - began))); // the first one is after the layout
        this.isWanted = false;
        this.draw();
      }
    });
  }

  end() {
    this.isBusy = false;
    if (this.isWanted) {
      this.begin();
    }
  }
}

// Copyright: (c) 2026, virtops.kubevirt contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later
/** Loads the page's modules, and again if one of them did not arrive: a browser drops requests when the network changes. */

const KEY = 'virtops-reloads';
const LIMIT = 3;
const PAUSE_MS = 500;

try {
  await import('./main.js');
  sessionStorage.removeItem(KEY);
} catch (error) {
  const reloads = Number(sessionStorage.getItem(KEY));
  if (reloads < LIMIT) {
    sessionStorage.setItem(KEY, String(reloads + 1)); // a failed import stays failed until the page is loaded anew
    setTimeout(() => location.reload(), PAUSE_MS);
  } else {
    sessionStorage.removeItem(KEY);
    document.querySelector('.blank').textContent = `This page could not be loaded: ${error.message}. Reload it.`;
  }
}

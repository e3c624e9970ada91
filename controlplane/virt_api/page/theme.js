// Copyright: (c) 2026, virtops.kubevirt contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later
/** Light, dark, or as the system has it; remembered in this browser. */

const THEMES = ['system', 'light', 'dark'];
const KEY = 'virtops-theme';

function remembered() {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null; // a browser may forbid to store anything
  }
}

/** Apply the remembered theme and return its name. */
export function useTheme() {
  const theme = THEMES.includes(remembered()) ? remembered() : THEMES[0];
  document.documentElement.dataset.theme = theme;
  return theme;
}

/** Apply the next theme, remember it and return its name. */
export function nextTheme() {
  const theme = THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % THEMES.length];
  document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // it holds until the page is closed
  }
  return theme;
}

// Copyright: (c) 2026, virtops.kubevirt contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later
/** The paths of the line icons. */

export const ICONS = {
  back: 'M10 3 5 8l5 5',
  start: 'M5 3.5v9l7-4.5z',
  stop: 'M4.5 4.5h7v7h-7z',
  restart: 'M13 8a5 5 0 1 1-1.5-3.5M13 2.5v3h-3',
  pause: 'M5.5 4v8M10.5 4v8',
  unpause: 'M4 4v8M7 4v8l6-4z',
  migrate: 'M2.5 5.5h10m-3-3 3 3-3 3M13.5 10.5h-10m3-3-3 3 3 3',
  theme: 'M8 2.5a5.5 5.5 0 1 0 0 11zM8 2.5a5.5 5.5 0 0 1 0 11',
  search: 'M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10zM10.7 10.7 14 14',
  up: 'M4 10l4-4 4 4',
  down: 'M4 6l4 4 4-4',
  full: 'M2.5 6V2.5H6M10 2.5h3.5V6M13.5 10v3.5H10M6 13.5H2.5V10',
  camera: 'M2.5 5h2.6l1-1.5h3.8l1 1.5h2.6v8h-11zM8 11a2.2 2.2 0 1 0 0-4.4A2.2 2.2 0 0 0 8 11z',
  keys: 'M1.5 4.5h13v7h-13zM4 7h.1M6.5 7h.1M9 7h.1M11.7 7h.1M4.5 9.3h7',
  paste: 'M5.5 3.5h-2v10h9v-10h-2M5.5 2.5h5v2h-5z',
  copy: 'M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3',
  save: 'M8 2.5v7m-3-3 3 3 3-3M2.5 13h11',
  fit: 'M2.5 8h11M5 5.5 2.5 8 5 10.5M11 5.5 13.5 8 11 10.5',
  clear: 'M4 4l8 8M12 4l-8 8',
  scale: 'M2.5 3.5h11v7h-11zM6 13.5h4',
};

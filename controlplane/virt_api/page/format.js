// Copyright: (c) 2026, virtops.kubevirt contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later
/** Turns values of objects into short texts. Pure. */

const UNITS = [['y', 31536000], ['d', 86400], ['h', 3600], ['m', 60], ['s', 1]];

/** Return a duration in two units at most, e.g. "3h 12m". */
export function duration(seconds) {
  let left = Math.max(0, Math.floor(seconds));
  const first = UNITS.findIndex(([, size]) => left >= size);
  if (first < 0) {
    return '0s';
  }
  const parts = [];
  for (const [unit, size] of UNITS.slice(first, first + 2)) {
    const count = Math.floor(left / size);
    left -= count * size;
    if (count > 0) {
      parts.push(`${count}${unit}`);
    }
  }
  return parts.join(' ');
}

/** Return how long ago a time stamp is; "" for none. */
export function age(stamp, now) {
  const time = Date.parse(stamp ?? '');
  return Number.isNaN(time) ? '' : duration((now - time) / 1000);
}

/** Return a text that ends like a sentence. */
export function sentence(text) {
  const trimmed = String(text ?? '').trim();
  return trimmed === '' || /[.!?…]$/.test(trimmed) ? trimmed : `${trimmed}.`;
}

/** Return "1 node", "2 nodes". */
export function count(number, noun) {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}

/** Return how many places a search has found, and which of them is shown; index: -1 for none, or beyond the limit. */
export function hits(index, number, limit) {
  if (number === 0) {
    return 'not found';
  }
  const all = number < limit ? String(number) : `${limit}+`;
  return index < 0 ? all : `${index + 1} of ${all}`;
}

/** Return a text with a capital first letter. */
export function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

// Copyright: (c) 2026, virtops.kubevirt contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later
/** Turns text into key strokes of a US keyboard, for guests that know nothing of a clipboard. Pure. */

const SHIFTED = {
  '~': '`', '!': '1', '@': '2', '#': '3', $: '4', '%': '5', '^': '6', '&': '7', '*': '8', '(': '9', ')': '0',
  _: '-', '+': '=', '{': '[', '}': ']', '|': '\\', ':': ';', '"': "'", '<': ',', '>': '.', '?': '/',
};
const CODES = {
  '`': 'Backquote', '-': 'Minus', '=': 'Equal', '[': 'BracketLeft', ']': 'BracketRight', '\\': 'Backslash',
  ';': 'Semicolon', "'": 'Quote', ',': 'Comma', '.': 'Period', '/': 'Slash', ' ': 'Space',
};
const CONTROL = { '\n': [0xff0d, 'Enter'], '\t': [0xff09, 'Tab'] };

/** The left shift key. */
export const SHIFT = { keysym: 0xffe1, code: 'ShiftLeft' };

/** Return { strokes: [{ keysym, code, shift }], unknown }. unknown: the characters that no US key types. */
export function keystrokes(text) {
  const result = { strokes: [], unknown: [] };
  for (const character of text.replace(/\r\n?/g, '\n')) {
    const stroke = keystrokeOf(character);
    if (stroke) {
      result.strokes.push(stroke);
    } else if (!result.unknown.includes(character)) {
      result.unknown.push(character);
    }
  }
  return result;
}

function keystrokeOf(character) {
  if (CONTROL[character]) {
    const [keysym, code] = CONTROL[character];
    return { keysym, code, shift: false };
  }
  const keysym = character.codePointAt(0); // of Latin-1, a keysym is the character itself
  const base = SHIFTED[character] ?? character.toLowerCase();
  const code = codeOf(base);
  return code ? { keysym, code, shift: base !== character } : null;
}

function codeOf(base) {
  if (/^[a-z]$/.test(base)) {
    return `Key${base.toUpperCase()}`;
  }
  return /^[0-9]$/.test(base) ? `Digit${base}` : CODES[base] ?? null;
}

const [CONTROL_LEFT, ALT_LEFT] = [{ keysym: 0xffe3, code: 'ControlLeft' }, { keysym: 0xffe9, code: 'AltLeft' }];
const functionKey = (number) => ({ keysym: 0xffbd + number, code: `F${number}` });

/** The strokes of Ctrl+Alt+Delete. */
export const CTRL_ALT_DELETE = [CONTROL_LEFT, ALT_LEFT, { keysym: 0xffff, code: 'Delete' }];

/** The keys that a browser or its system would take: [label, strokes that are pressed together]. */
export const CHORDS = [
  ['Ctrl+Alt+Delete', CTRL_ALT_DELETE],
  ['Ctrl+Alt+Backspace', [CONTROL_LEFT, ALT_LEFT, { keysym: 0xff08, code: 'Backspace' }]],
  ...[1, 2, 3, 7].map((number) => [`Ctrl+Alt+F${number}`, [CONTROL_LEFT, ALT_LEFT, functionKey(number)]]),
  ['Alt+Tab', [ALT_LEFT, { keysym: 0xff09, code: 'Tab' }]],
  ['Alt+F4', [ALT_LEFT, functionKey(4)]],
  ['Super', [{ keysym: 0xffeb, code: 'MetaLeft' }]],
  ['Escape', [{ keysym: 0xff1b, code: 'Escape' }]],
  ['Tab', [{ keysym: 0xff09, code: 'Tab' }]],
  ['Print Screen', [{ keysym: 0xff61, code: 'PrintScreen' }]],
];

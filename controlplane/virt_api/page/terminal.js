// Copyright: (c) 2026, virtops.kubevirt contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later
/** A terminal that shows what a guest writes and lets it do nothing else. */

import { FitAddon } from './addon-fit/package/lib/addon-fit.mjs';
import { SearchAddon } from './addon-search/package/lib/addon-search.mjs';
import { installInlineStyles } from './inline_styles.js';
import { Terminal } from './xterm/package/lib/xterm.mjs';

installInlineStyles();

const SCROLLBACK = 20000;
const HIGHLIGHTS = 1000;
const FOUND = { // the add-on counts only what it highlights
  matchBackground: '#2b3350', matchOverviewRuler: '#5c6378', activeMatchBackground: '#5a4a1c', activeMatchColorOverviewRuler: '#e5c07b',
};
const HYPERLINK = 8; // OSC 8; a link of a guest could show one address and open another
const TYPING = ['keydown', 'paste', 'input', 'compositionstart'];
const THEME = {
  background: '#0f1117', foreground: '#d8dbe2', cursor: '#8fa2ff', selectionBackground: '#3b4675',
  black: '#1c1f2a', red: '#f0717b', green: '#7fc87f', yellow: '#e5c07b', blue: '#7aa2f7', magenta: '#c099ff', cyan: '#6cc7d6', white: '#c8ccd6',
  brightBlack: '#5c6378', brightRed: '#ff8d94', brightGreen: '#9ae09a', brightYellow: '#f3d79a', brightBlue: '#9db8ff',
  brightMagenta: '#d5b8ff', brightCyan: '#8fdde9', brightWhite: '#f4f5f8',
};

/** Return { terminal, fit, search, hasTyped }. onInput(bytes) gets what the user types; onKey(event) may take a key: false;
 * onFound(index, number, limit) gets what a search has found.
 *
 * A terminal answers questions of the guest, also those in the backlog: the answer would be typed into what runs there now.
 * So nothing is sent before the user types.
 */
export function makeTerminal(frame, { onInput, onKey, onFound }) {
  const terminal = new Terminal({
    scrollback: SCROLLBACK, fontSize: 13, lineHeight: 1.15, theme: THEME, cursorBlink: true, allowProposedApi: true, // for highlights
    fontFamily: 'ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace',
  });
  const parts = { terminal, fit: new FitAddon(), search: new SearchAddon({ highlightLimit: HIGHLIGHTS }), hasTyped: false };
  terminal.loadAddon(parts.fit);
  terminal.loadAddon(parts.search);
  terminal.parser.registerOscHandler(HYPERLINK, () => true);
  parts.search.onDidChangeResults(({ resultIndex, resultCount }) => onFound(resultIndex, resultCount, HIGHLIGHTS));
  const encoder = new TextEncoder();
  const send = (bytes) => parts.hasTyped && onInput(bytes);
  terminal.onData((text) => send(encoder.encode(text)));
  terminal.onBinary((text) => send(Uint8Array.from(text, (character) => character.charCodeAt(0))));
  terminal.attachCustomKeyEventHandler(onKey);
  TYPING.forEach((event) => frame.addEventListener(event, () => { parts.hasTyped = true; }, { capture: true }));
  terminal.open(frame);
  return parts;
}

/** Search; direction: 1 is downwards, -1 upwards. A text "" ends it. */
export function searchIn({ search }, text, direction) {
  if (text === '') {
    search.clearDecorations();
  } else if (direction > 0) {
    search.findNext(text, { decorations: FOUND });
  } else {
    search.findPrevious(text, { decorations: FOUND });
  }
}

/** Return all lines of a terminal, for a file. */
export function textOf(terminal) {
  const buffer = terminal.buffer.normal;
  const lines = Array.from({ length: buffer.length }, (_, index) => buffer.getLine(index));
  const text = lines.map((line, index) => {
    const isWrapped = lines[index + 1]?.isWrapped;
    return line.translateToString(!isWrapped) + (isWrapped ? '' : '\n');
  });
  return text.join('').trimEnd();
}

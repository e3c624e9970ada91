// Copyright: (c) 2026, virtops.kubevirt contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later
/** Builds elements. Text from objects and guests goes in as text nodes only, so it can never become markup. */

/** Return an element. props: attributes; `on` is a map of listeners; null and false leave one out. */
export function el(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (name === 'on') {
      Object.entries(value).forEach(([event, listener]) => element.addEventListener(event, listener));
    } else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? '' : value);
    }
  }
  fill(element, ...children);
  return element;
}

/** Replace the children of an element. */
export function fill(element, ...children) {
  element.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined && child !== ''));
}

/** Set a text, and touch nothing when it is there already (a selection stays). */
export function setText(element, text) {
  if (element.textContent !== text) {
    element.textContent = text;
  }
}

/** Return a button. label: a text or elements. Options: title, kind (class), attributes. */
export function button(label, onClick, { title = null, kind = '', ...attributes } = {}) {
  return el('button', { type: 'button', class: `button ${kind}`, title, on: { click: onClick }, ...attributes }, label);
}

/** Grey a button out and say why, or enable it. It stays focusable, so that a keyboard reaches the reason. */
export function setDisabled(target, reason, title = '') {
  target.setAttribute('aria-disabled', reason ? 'true' : 'false');
  target.title = reason || title;
  if (reason) {
    target.setAttribute('aria-description', reason);
  } else {
    target.removeAttribute('aria-description');
  }
}

/** Tell whether a button is greyed out. */
export function isDisabled(target) {
  return target.getAttribute('aria-disabled') === 'true';
}

const SVG = 'http://www.w3.org/2000/svg';

/** Return a line icon. path: the data of its one path, in a box of 16. */
export function icon(path) {
  const svg = document.createElementNS(SVG, 'svg');
  const line = document.createElementNS(SVG, 'path');
  svg.setAttribute('viewBox', '0 0 16 16');
  svg.setAttribute('class', 'icon');
  svg.setAttribute('aria-hidden', 'true');
  line.setAttribute('d', path);
  svg.append(line);
  return svg;
}

/** Return an element with a time that shows its age and has the exact time as title. */
export function timeElement(stamp, text) {
  return el('time', { datetime: stamp, title: new Date(stamp).toLocaleString() }, text);
}

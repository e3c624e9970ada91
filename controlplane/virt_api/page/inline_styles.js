// Copyright: (c) 2026, virtops.kubevirt contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later
/** Lets xterm.js style itself under a policy without inline styles.
 *
 * It creates style elements, and sets style attributes of spans. The page's document gives it elements that put the same
 * rules into a constructed style sheet and into the style object, which scripts may do.
 */

/** Install it in this page's document. */
export function installInlineStyles() {
  const create = document.createElement.bind(document);
  document.createElement = (tag, options) => {
    if (tag === 'style') {
      return sheetElement(create('span'));
    }
    const element = create(tag, options);
    if (tag === 'span') {
      element.setAttribute = setAttribute;
    }
    return element;
  };
}

/** Set an attribute; a style through its object. */
function setAttribute(name, value) {
  if (name === 'style') {
    this.style.cssText = value;
  } else {
    Element.prototype.setAttribute.call(this, name, value);
  }
}

/** Have an element's text become a style sheet of the page, until the element is removed. */
function sheetElement(element) {
  const sheet = new CSSStyleSheet();
  element.hidden = true;
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  Object.defineProperty(element, 'textContent', { set: (rules) => sheet.replaceSync(rules) });
  element.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((other) => other !== sheet);
    Element.prototype.remove.call(element);
  };
  return element;
}

// Copyright: (c) 2026, virtops.kubevirt contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later
/** Questions to the user, and short notices. */

import { button, el, fill } from './dom.js';

const NOTICE_MS = 8000;

/** Ask. agree: label of the button that does. fields: elements in the dialog. Resolves to whether the user agrees. */
export function ask({ title, text, agree, fields = [], kind = 'danger' }) {
  return new Promise((resolve) => {
    const dialog = el('dialog', { class: 'dialog', 'aria-labelledby': 'question' });
    const yes = button(agree, () => dialog.close('yes'), { kind: `strong ${kind}` });
    const no = button('Cancel', () => dialog.close(''));
    dialog.append(
      el('h2', { id: 'question' }, title),
      text ? el('p', {}, text) : '',
      ...fields,
      el('div', { class: 'choices' }, no, yes),
    );
    dialog.addEventListener('close', () => {
      dialog.remove();
      resolve(dialog.returnValue === 'yes');
    });
    document.body.append(dialog);
    dialog.showModal();
    (dialog.querySelector('textarea') ?? no).focus();
  });
}

/** Ask for a text. value: what it is at first. Resolves to it; null when the user cancels. */
export async function askForText({ title, text, agree, label, value = '' }) {
  const area = el('textarea', { rows: '6', 'aria-label': label });
  area.value = value;
  return await ask({ title, text, agree, fields: [area], kind: '' }) ? area.value : null;
}

/** Show a notice; a bad one stays until it is dismissed. */
export function notify(text, isBad = false) {
  const area = document.getElementById('notices');
  const notice = el('div', { class: `notice ${isBad ? 'bad' : ''}`, role: isBad ? 'alert' : null }, el('span', {}, text));
  notice.append(button('×', () => notice.remove(), { kind: 'quiet', 'aria-label': 'Dismiss' }));
  fill(area, [...area.children].slice(-2), notice);
  if (!isBad) {
    setTimeout(() => notice.remove(), NOTICE_MS);
  }
}

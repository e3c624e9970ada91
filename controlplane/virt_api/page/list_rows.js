// Copyright: (c) 2026, virtops.kubevirt contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later
/** Joins VMs and VMIs to the rows of the list. Pure. */

import { explain } from './explain.js';
import { groupOf, statusWord } from './objects.js';

/** The groups of the list's filter, with their labels. */
export const GROUPS = [
  ['running', 'Running'], ['paused', 'Paused'], ['changing', 'Changing'], ['stopped', 'Stopped'], ['problem', 'Problem'],
];

/** Return one row for each machine: a VM with its instance, or an instance alone. vms, vmis: Maps by the same key. */
export function rows(vms, vmis) {
  return [...new Set([...vms.keys(), ...vmis.keys()])].map((key) => row(key, vms.get(key) ?? null, vmis.get(key) ?? null));
}

function row(key, vm, vmi) {
  const word = statusWord(vm, vmi);
  const { namespace, name, creationTimestamp } = (vm ?? vmi).metadata;
  return {
    key,
    namespace,
    name,
    kind: vm ? '' : 'instance',
    status: word,
    group: groupOf(word),
    note: NOTED.includes(groupOf(word)) ? noteOf(vm, vmi) : '',
    node: vmi?.status?.nodeName ?? '',
    address: vmi?.status?.interfaces?.find(({ ipAddress }) => ipAddress)?.ipAddress ?? '',
    created: creationTimestamp,
  };
}

const NOTED = ['problem', 'changing'];

function noteOf(vm, vmi) {
  return explain({ vm, vmi, now: Date.now() }).title;
}

/** Return the rows that a filter text and a group leave. Each word of the text has to occur in a row. */
export function filtered(all, { filter = '', group = '' }) {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  return all.filter((row) => (!group || row.group === group)
    && words.every((word) => SEARCHED.some((field) => row[field].toLowerCase().includes(word))));
}

const SEARCHED = ['name', 'namespace', 'status', 'node', 'address', 'note'];

/** Return the rows sorted by a column; equal ones by name. isDescending: reversed. */
export function sorted(all, column, isDescending) {
  const factor = isDescending ? -1 : 1;
  const order = new Intl.Collator(undefined, { numeric: true }).compare;
  return [...all].sort((a, b) => factor * order(a[column] ?? '', b[column] ?? '')
    || order(a.name, b.name) || order(a.namespace, b.namespace));
}

/** Return how many rows each group has, as a Map; "" is all. */
export function counted(all) {
  const counts = new Map([['', all.length]]);
  all.forEach(({ group }) => counts.set(group, (counts.get(group) ?? 0) + 1));
  return counts;
}

// Copyright: (c) 2026, virtops.kubevirt contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later
/** The URL hash: which view is shown. Pure.
 *
 * #/NAMESPACE, #/-/ for all namespaces, #/NAMESPACE/NAME/TAB for a machine; ?filter=TEXT&group=NAME of a list.
 */

export const TABS = ['overview', 'console', 'screen'];
const ALL = '-';
const NAME = /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/; // of Kubernetes; a link must not lead to other paths or selectors

/** Read a hash. namespace: null when none is chosen yet, "" for all. */
export function parseRoute(hash) {
  const [path, query = ''] = hash.replace(/^#\/?/, '').split('?');
  const [space, name, tab] = path.split('/').map(decode);
  const options = new URLSearchParams(query);
  return {
    namespace: space === ALL ? '' : nameOf(space),
    name: space !== ALL && nameOf(space) ? nameOf(name) : null,
    tab: TABS.includes(tab) ? tab : TABS[0],
    filter: options.get('filter') ?? '',
    group: options.get('group') ?? '',
  };
}

/** Return the hash of a view. */
export function formatRoute({ namespace, name = null, tab = TABS[0], filter = '', group = '' }) {
  const segments = [namespace || ALL];
  if (name) {
    segments.push(name);
    if (tab !== TABS[0]) {
      segments.push(tab);
    }
  }
  const options = new URLSearchParams(Object.entries({ filter, group }).filter(([, value]) => value && !name));
  const query = options.toString();
  return `#/${segments.map(encodeURIComponent).join('/')}${query ? `?${query}` : ''}`;
}

function nameOf(segment = '') {
  return NAME.test(segment) ? segment : null;
}

function decode(segment) {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

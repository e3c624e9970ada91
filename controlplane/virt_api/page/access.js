// Copyright: (c) 2026, virtops.kubevirt contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later
/** Asks which of the page's functions the user may use: one SelfSubjectAccessReview for each, all at once. */

import { RIGHTS } from './actions.js';
import { request } from './api.js';

const GROUP = 'subresources.kubevirt.io';
const REVIEW = 'apis/authorization.k8s.io/v1/selfsubjectaccessreviews';

/** Return a Map of "resource/subresource" to whether the user may; one that could not be asked is absent. */
export async function reviewRights({ namespace, name }, signal) {
  const answers = await Promise.allSettled(RIGHTS.map((right) => review(right, namespace, name, signal)));
  const rights = new Map();
  answers.forEach(({ status, value }, index) => {
    if (status === 'fulfilled') {
      rights.set(RIGHTS[index].slice(0, 2).join('/'), value);
    }
  });
  return rights;
}

async function review([resource, subresource, verb], namespace, name, signal) {
  const attributes = { group: GROUP, version: 'v1', resource, subresource, verb, namespace, name };
  const body = {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SelfSubjectAccessReview',
    spec: { resourceAttributes: attributes },
  };
  return Boolean((await request('POST', REVIEW, { body, signal })).status?.allowed);
}

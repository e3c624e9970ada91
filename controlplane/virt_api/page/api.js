// Copyright: (c) 2026, virtops.kubevirt contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later
/** Requests to the API server that serves this page, and their errors in words. */

import { capital } from './format.js';

const ROOT = new URL('../../../../', import.meta.url);

/** Tells the page that the user's sign-in is over: event "ended". */
export const session = new EventTarget();

/** A request that failed. code: of HTTP, 0 when the server was not reached. detail: what the server said. */
export class ApiError extends Error {
  constructor(code, message, detail = '') {
    super(message);
    this.code = code;
    this.detail = detail;
  }
}

/** Return the address of a path below the API server's root, which may itself have a prefix. */
export function address(path, parameters = {}) {
  const url = new URL(path, ROOT);
  Object.entries(parameters).forEach(([name, value]) => url.searchParams.set(name, value));
  return url;
}

/** Return the address of a WebSocket. */
export function socketAddress(path, parameters = {}) {
  const url = address(path, parameters);
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
  return url;
}

/** Send a request and return the response. ApiError. */
export async function send(method, path, { parameters = {}, body = null, signal = null } = {}) {
  const options = { method, signal, cache: 'no-store', headers: { Accept: 'application/json, */*' } };
  if (body !== null) {
    options.body = JSON.stringify(body);
    options.headers['Content-Type'] = 'application/json';
  }
  const response = await fetchWithRetry(address(path, parameters), options);
  if (!response.ok) {
    throw await failure(response);
  }
  return response;
}

/** Fetch; what only reads, once more: a browser drops requests when the network changes. ApiError. */
async function fetchWithRetry(url, options, attempts = options.method === 'GET' ? 2 : 1) {
  try {
    return await fetch(url, options);
  } catch (error) {
    if (options.signal?.aborted) {
      throw error;
    }
    if (attempts > 1) {
      return fetchWithRetry(url, options, attempts - 1);
    }
    throw new ApiError(0, 'The API server cannot be reached. If you use kubectl proxy, see whether it still runs.');
  }
}

/** Send a request and return the object of its response. ApiError. */
export async function request(method, path, options = {}) {
  const text = await (await send(method, path, options)).text();
  return text === '' ? null : JSON.parse(text);
}

async function failure(response) {
  const detail = statusMessage(await response.text());
  const error = new ApiError(response.status, errorText(response.status, detail), detail);
  if (response.status === 401) {
    session.dispatchEvent(new CustomEvent('ended', { detail: error.message }));
  }
  return error;
}

function statusMessage(text) {
  try {
    return String(JSON.parse(text).message ?? '');
  } catch {
    return text.trim().slice(0, 300);
  }
}

const WORDS = {
  401: 'Your sign-in is over: the token has expired or was revoked. Sign in again, then reload this page',
  403: 'You may not do this',
  404: 'It does not exist, or not any more',
  409: 'This is not possible in its present state',
  429: 'The server is busy. Try again in a moment',
  501: 'This control plane does not have this function',
  503: 'The part of the control plane that serves this does not answer. Try again in a moment',
};

// The subresource migrate refuses with code 500 and these words, as upstream does: the server has not failed.
const INTERNAL = /^Internal error occurred: (?:admission webhook "[^"]*" denied the request: )?/;
const REFUSED = /^(in-flight migration detected|Cannot migrate|the VMI )/;

/** Return what a failed request means. message: the server's own, which says more where there is one. */
export function errorText(code, message) {
  if (code === 500 && INTERNAL.test(message)) {
    const because = message.replace(INTERNAL, '');
    return REFUSED.test(because) ? capital(because) : `The server failed: ${because}`;
  }
  const words = WORDS[code] ?? (code >= 500 ? 'The server failed' : `The server refused it (${code})`);
  return message && code !== 401 ? `${words}: ${message}` : `${words}.`;
}

// Copyright: (c) 2026, virtops.kubevirt contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later
/** Keeps a copy of a kind's objects: one LIST, then a WATCH from its resourceVersion, and again when that is too old.
 *
 * The watch is a WebSocket: a browser has six HTTP connections to a server for all its tabs, and two pages would use
 * them up.
 */

import { request, socketAddress } from './api.js';

const PAGE = '500';
const SECONDS = '300'; // a new watch is authorized anew, so a right that was taken away shows
const RETRY_MS = [1000, 2000, 5000, 10000, 20000];
const SHORT_MS = 2000;

/** Return the key of an object. */
function keyOf({ metadata }) {
  return `${metadata.namespace ?? ''}/${metadata.name}`;
}

/** Apply a watch event to the objects. Returns the newest resourceVersion, or null: list again. */
export function applyEvent(objects, { type, object }) {
  if (type === 'ERROR' || !object?.metadata) {
    return null;
  }
  if (type === 'DELETED') {
    objects.delete(keyOf(object));
  } else if (type !== 'BOOKMARK') {
    objects.set(keyOf(object), object);
  }
  return object.metadata.resourceVersion;
}

/** List a collection in pages. Returns its objects and resourceVersion. ApiError. */
export async function list(path, parameters, signal, ask = request) {
  const objects = new Map();
  let next = '';
  let version = '';
  do {
    const page = { ...parameters, limit: PAGE, ...(next ? { continue: next } : {}) };
    const body = await ask('GET', path, { parameters: page, signal });
    (body.items ?? []).forEach((object) => objects.set(keyOf(object), object));
    next = body.metadata?.continue ?? '';
    version = body.metadata?.resourceVersion ?? '';
  } while (next);
  return { objects, version };
}

/** Return the worst of the states of several watches. */
export function worstState(states) {
  return ['refused', 'retrying', 'loading'].find((state) => states.includes(state)) ?? 'live';
}

/** One kind's objects, kept until `stop`. onChange(objects), onState("loading" | "live" | "retrying" | "refused", error). */
export class Watch {
  constructor(path, { parameters = {}, onChange, onState }) {
    Object.assign(this, { path, parameters, onChange, onState });
    this.objects = new Map();
    this.version = '';
    this.failures = 0;
    this.stopped = new AbortController();
    this.socket = null;
    this.run();
  }

  /** End it; nothing is called afterwards. */
  stop() {
    this.stopped.abort();
    this.socket?.close();
  }

  async run() {
    this.onState('loading');
    while (!this.stopped.signal.aborted) {
      try {
        await this.listAndWatch();
      } catch (error) {
        if (this.stopped.signal.aborted) {
          return;
        }
        if (error.code === 401 || error.code === 403 || error.code === 404) {
          this.onState('refused', error);
          return;
        }
        await this.backOff(error);
      }
    }
  }

  /** List if needed, then watch until the server ends it. ApiError. */
  async listAndWatch() {
    if (this.version === '') {
      const { objects, version } = await list(this.path, this.parameters, this.stopped.signal);
      Object.assign(this, { objects, version });
      this.onChange(this.objects);
      this.onState('live');
    }
    const began = Date.now();
    const wasOpen = await this.watchUntilClosed();
    if (!wasOpen) {
      this.version = ''; // the response is not shown to scripts; a list says why
    }
    if (Date.now() - began < SHORT_MS) {
      await this.backOff(null);
    } else {
      this.failures = 0;
    }
  }

  /** Watch until the connection ends. Tells whether it was ever open. */
  watchUntilClosed() {
    const watch = { watch: 'true', allowWatchBookmarks: 'true', timeoutSeconds: SECONDS };
    const url = socketAddress(this.path, { ...this.parameters, ...watch, resourceVersion: this.version });
    return new Promise((resolve) => {
      let isOpen = false;
      const socket = new WebSocket(url);
      this.socket = socket;
      socket.onopen = () => {
        isOpen = true;
        this.onState('live');
      };
      socket.onmessage = ({ data }) => this.handleMessage(socket, data);
      socket.onclose = () => resolve(isOpen);
    });
  }

  handleMessage(socket, data) {
    if (this.stopped.signal.aborted) {
      return;
    }
    const event = JSON.parse(data);
    const version = applyEvent(this.objects, event);
    if (version === null) {
      this.version = '';
      socket.close();
      return;
    }
    this.version = version;
    if (event.type !== 'BOOKMARK') {
      this.onChange(this.objects);
    }
  }

  /** Wait before the next attempt, longer each time. */
  async backOff(error) {
    if (this.stopped.signal.aborted) {
      return;
    }
    const wait = RETRY_MS[Math.min(this.failures, RETRY_MS.length - 1)];
    this.failures += 1;
    if (error) {
      this.onState('retrying', error);
    }
    await new Promise((resolve) => setTimeout(resolve, wait * (0.75 + Math.random() / 2)));
  }
}

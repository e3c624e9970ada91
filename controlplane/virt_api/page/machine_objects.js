// Copyright: (c) 2026, virtops.kubevirt contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later
/** Keeps a machine's objects: VM, VMI, launcher Pods and their Events, each by one watch. */

import { collectionPath, corePath } from './objects.js';
import { Watch, worstState } from './watch.js';

const PODS = 3;
const PODS_OF_EVENTS = 10; // also Pods that are gone: their Events say why
const LABEL_LIMIT = 63;

/** Return the selector of a machine's launchers; a longer name is shortened with a hash, so all launchers are read. */
function launchers(name) {
  return `kubevirt.io=virt-launcher${name.length > LABEL_LIMIT ? '' : `,vmi.kubevirt.io/id=${name}`}`;
}

/** The objects, kept until `stop`. onChange() is called after each change. */
export class MachineObjects {
  constructor({ namespace, name }, onChange) {
    Object.assign(this, { namespace, name, onChange, vm: null, vmi: null, pods: [] });
    this.listed = new Set();
    this.events = new Map();
    this.errors = new Map();
    this.states = new Map();
    this.podEvents = new Map(); // watches by Pod, in the order in which they began
    const field = { fieldSelector: `metadata.name=${name}` };
    this.watches = [
      this.watch('vm', collectionPath('virtualmachines', namespace), field, ([vm]) => { this.vm = vm ?? null; }),
      this.watch('vmi', collectionPath('virtualmachineinstances', namespace), field, ([vmi]) => { this.vmi = vmi ?? null; }),
      this.watch('pods', corePath('pods', namespace), { labelSelector: launchers(name) }, (pods) => this.takePods(pods)),
      this.watch('events', corePath('events', namespace), { fieldSelector: `involvedObject.name=${name}` }, (events) => {
        this.events.set('', events.filter(({ involvedObject }) => involvedObject.kind?.startsWith('VirtualMachine')));
      }),
    ];
  }

  watch(what, path, parameters, take) {
    return new Watch(path, {
      parameters,
      onChange: (objects) => {
        this.listed.add(what);
        take([...objects.values()]);
        this.onChange();
      },
      onState: (state, error) => {
        this.states.set(what, state);
        this.errors.set(what, state === 'live' ? null : error ?? null);
        this.onChange();
      },
    });
  }

  takePods(pods) {
    const own = pods.filter(({ metadata }) => metadata.ownerReferences?.some(({ name }) => name === this.name));
    this.pods = own.sort((a, b) => Date.parse(b.metadata.creationTimestamp) - Date.parse(a.metadata.creationTimestamp)).slice(0, PODS);
    for (const { metadata: { name } } of this.pods) {
      if (!this.podEvents.has(name)) {
        const parameters = { fieldSelector: `involvedObject.name=${name},involvedObject.kind=Pod` };
        this.podEvents.set(name, this.watch(`events of ${name}`, corePath('events', this.namespace), parameters,
          (events) => this.events.set(name, events)));
      }
    }
    for (const [name, watch] of [...this.podEvents].slice(0, -PODS_OF_EVENTS)) {
      watch.stop();
      this.podEvents.delete(name);
      this.events.delete(name);
    }
  }

  /** Return all that is known. isKnown: VM and VMI were read. error: why one of them cannot be. */
  world() {
    const { vm, vmi, pods } = this;
    return {
      vm,
      vmi,
      pods,
      events: [...this.events.values()].flat(),
      state: worstState([this.states.get('vm'), this.states.get('vmi')]),
      isKnown: this.listed.has('vm') && this.listed.has('vmi'),
      error: this.errors.get('vm') ?? this.errors.get('vmi') ?? null,
      hidden: ['pods', 'events'].filter((what) => this.errors.get(what)?.code === 403),
    };
  }

  stop() {
    [...this.watches, ...this.podEvents.values()].forEach((watch) => watch.stop());
  }
}

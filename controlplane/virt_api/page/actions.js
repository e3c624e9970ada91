// Copyright: (c) 2026, virtops.kubevirt contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later
/** What a user can do to a machine, whether it makes sense now, and what is asked first. Pure.
 *
 * The server has the last word: it decides by fresher objects.
 */

import { condition, gracePeriod, hasCondition, isAlive, isDeleting, ongoingMigration, runStrategy, subresourcePath } from './objects.js';

const VM = 'virtualmachines';
const VMI = 'virtualmachineinstances';

/** The buttons, in their order. needs: the resource whose subresource it is. why: why it makes no sense now; "" if it does. */
export const ACTIONS = [
  { verb: 'start', label: 'Start', needs: VM, why: whyNoStart },
  { verb: 'stop', label: 'Stop', needs: VM, why: whyNoStop, danger: true },
  { verb: 'restart', label: 'Restart', needs: VM, why: whyNoRestart, danger: true },
  { verb: 'pause', label: 'Pause', needs: VMI, why: whyNoPause },
  { verb: 'unpause', label: 'Unpause', needs: VMI, why: whyNoUnpause },
  { verb: 'migrate', label: 'Migrate', needs: VM, why: whyNoMigration },
];

/** The rights that the page asks about: [resource, subresource, verb]. */
export const RIGHTS = [
  ...ACTIONS.map(({ needs, verb }) => [needs, verb, 'update']),
  [VMI, 'console', 'get'],
  [VMI, 'vnc', 'get'],
  [VMI, 'vnc/screenshot', 'get'],
];

/** Return why an action is greyed out; "" when it is not. rights: Map of "resource/subresource" to true or false. */
export function whyNot(action, machine, rights) {
  const right = `${action.needs}/${action.verb}`;
  if (rights.get(right) === false) {
    return `You may not ${action.verb} it: ${neededRight('update', right)}`;
  }
  if (action.needs === VM && !machine.vm) {
    return 'This needs a VirtualMachine, and this instance has none.';
  }
  return action.why(machine);
}

const ROLES = { __proto__: null, 'virtualmachines/migrate': 'kubevirt.io:migrate', 'virtualmachineinstances/vnc/screenshot': 'admin' };

/** Return a sentence about a right that is missing. */
export function neededRight(verb, right) {
  return `this needs the right to ${verb} ${right} in this namespace, which the role ${ROLES[right] ?? 'edit'} has.`;
}

/** Return why no screenshot can be taken; "" if one can. */
export function whyNoScreenshot({ vmi }, rights) {
  const right = `${VMI}/vnc/screenshot`;
  if (rights.get(right) === false) {
    return `You may not: ${neededRight('get', right)}`;
  }
  return vmi?.status?.phase === 'Running' ? '' : 'Its guest does not run.';
}

/** Return why a device cannot be used, and what to do; "" if it can. what: "console" or "screen". */
export function whyNoDevice(what, devices) {
  const [field, noun] = what === 'console'
    ? ['autoattachSerialConsole', 'serial console'] : ['autoattachGraphicsDevice', 'graphics device'];
  return devices[field] === false
    ? `This machine has no ${noun}: its spec says ${field}: false. Remove that from spec.template.spec.domain.devices and restart it.`
    : '';
}

/** Return the path of an action. */
export function pathOf({ needs, verb }, { namespace, name }) {
  return subresourcePath(needs, namespace, name, verb);
}

/** Return the body of a request. isForced: without the grace period of the guest. */
export function bodyOf({ verb }, isForced) {
  return isForced && (verb === 'stop' || verb === 'restart') ? { gracePeriod: 0 } : {};
}

/** Return what is asked before a dangerous action: { title, text, forceLabel }. forceLabel: the label of the choice to use force. */
export function confirmation({ verb }, { vmi }, name) {
  if (!isAlive(vmi)) {
    return verb === 'stop'
      ? { title: `Stop ${name}?`, text: 'It is not started again until somebody starts it.', forceLabel: '' }
      : { title: `Restart ${name}?`, text: 'Its run is over; it starts anew, with the present spec.', forceLabel: '' };
  }
  const seconds = gracePeriod(vmi);
  const grace = `The guest is asked to shut down, and powered off if it has not after ${seconds} s.`;
  const forceLabel = 'Power off at once: what the guest has not written is lost';
  return verb === 'stop'
    ? { title: `Stop ${name}?`, text: `${grace} It stays off until somebody starts it.`, forceLabel }
    : { title: `Restart ${name}?`, text: `${grace} Then it starts anew, with the present spec.`, forceLabel };
}

/** Return what is said when an action was accepted. */
export function acceptedText({ verb }, name) {
  return {
    start: `${name} is being started.`,
    stop: `${name} is being stopped.`,
    restart: `${name} is being restarted.`,
    pause: `${name} is paused.`,
    unpause: `${name} goes on.`,
    migrate: `${name} is to move to another node.`,
  }[verb];
}

function whyNoStart({ vm, vmi }) {
  const strategy = runStrategy(vm);
  if (isDeleting(vm)) {
    return 'It is being deleted.';
  }
  if (isAlive(vmi)) {
    return isDeleting(vmi) || strategy === 'Halted' ? 'It is shutting down. Start it when that is done.' : 'It is started already.';
  }
  return strategy === 'Always' ? 'It starts by itself: its run strategy is Always.' : '';
}

function whyNoStop({ vm, vmi }) {
  const strategy = runStrategy(vm);
  if (isDeleting(vm)) {
    return 'It is being deleted, which stops it.';
  }
  const isOff = !isAlive(vmi) && (strategy === 'Halted' || (strategy === 'Manual' && !vm?.status?.stateChangeRequests?.length));
  return isOff ? 'It is stopped already.' : '';
}

function whyNoRestart({ vm, vmi }) {
  const strategy = runStrategy(vm);
  if (strategy === 'Halted') {
    return 'It is stopped. Start it instead.';
  }
  if (strategy === 'Once') {
    return 'Its run strategy is Once. Stop it, then start it.';
  }
  return vmi ? '' : 'It does not run.';
}

function whyNoPause({ vmi }) {
  if (vmi?.status?.phase !== 'Running' || isDeleting(vmi)) {
    return 'Its guest does not run.';
  }
  if (hasCondition(vmi, 'Paused')) {
    return 'It is paused already.';
  }
  return ongoingMigration(vmi) ? 'It is moving to another node.' : '';
}

function whyNoUnpause({ vmi }) {
  return hasCondition(vmi, 'Paused') ? '' : 'It is not paused.';
}

function whyNoMigration({ vmi }) {
  if (vmi?.status?.phase !== 'Running' || isDeleting(vmi)) {
    return 'Its guest does not run.';
  }
  if (ongoingMigration(vmi)) {
    return 'It is moving to another node already.';
  }
  const able = condition(vmi, 'LiveMigratable');
  return able?.status === 'False' ? `It cannot move: ${able.message || able.reason}` : '';
}

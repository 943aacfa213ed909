/**
 * Two buttons below a finished answer, with which a person says whether it was good. The browser remembers the
 * last ones, so that they are still pressed after a reload.
 *
 * @module feedback
 */

import { el } from './dom.js';
import { newClientId } from './outbox.js';
import { readJson, write } from './settings.js';

/** @typedef {import('./items.js').Item} Item */

const KEPT = 200;
const KEY = 'thumbs';

/**
 * @param {(frame: import('./connection.js').Frame) => boolean} send
 * @param {(words: string) => void} tell
 * @returns {(item: Item, up: boolean, on: boolean) => boolean} sends what a person thinks of an answer; whether it was sent
 */
export function rateBy(send, tell) {
  return (item, up, on) => {
    const sent = send({ type: 'feedback', client_id: newClientId(), message_id: item.messageId, up, on });
    if (!sent) tell('Not connected just now. Try again when the connection is back.');
    return sent;
  };
}

/**
 * @param {Item} item
 * @param {(item: Item, up: boolean, on: boolean) => boolean} rate sends it; whether it was sent
 * @returns {HTMLButtonElement[]}
 */
export function thumbs(item, rate) {
  const buttons = [true, false].map((up) => {
    const button = el('button', { type: 'button', class: 'quiet thumb', 'aria-label': up ? 'Good answer' : 'Bad answer' }, up ? '👍' : '👎');
    button.addEventListener('click', () => {
      const on = button.getAttribute('aria-pressed') !== 'true';
      if (!rate(item, up, on)) return;
      keep(item.messageId, on ? up : null);
      press();
    });
    return button;
  });
  const press = () => {
    const given = readJson(KEY, /** @type {[string, boolean][]} */ ([])).find(([id]) => id === item.messageId)?.[1];
    buttons.forEach((button, index) => button.setAttribute('aria-pressed', String(given === (index === 0))));
  };
  press();
  return buttons;
}

/** @param {string} messageId @param {boolean | null} up null for neither */
function keep(messageId, up) {
  const others = readJson(KEY, /** @type {[string, boolean][]} */ ([])).filter(([id]) => id !== messageId);
  write(KEY, JSON.stringify(up === null ? others : [...others, [messageId, up]].slice(-KEPT)));
}

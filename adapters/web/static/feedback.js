/**
 * Two buttons below a finished answer, with which a person says whether it was good.
 *
 * @module feedback
 */

import { el, icon } from './dom.js';
import { newClientId } from './outbox.js';
import { t } from './texts.js';

/** @typedef {import('./items.js').Item} Item */

/**
 * @param {(frame: import('./connection.js').Frame) => boolean} send
 * @param {(words: string) => void} tell
 * @returns {(item: Item, up: boolean, on: boolean) => boolean} sends what a person thinks of an answer; whether it was sent
 */
export function rateBy(send, tell) {
  return (item, up, on) => {
    const sent = send({ type: 'feedback', client_id: newClientId(), message_id: item.messageId, up, on });
    if (!sent) tell(t('not_connected'));
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
    const value = up ? 'up' : 'down';
    const button = el('button', { type: 'button', class: 'quiet thumb', 'aria-label': up ? t('row.good') : t('row.bad') }, icon(up ? 'good' : 'bad'));
    button.addEventListener('click', () => {
      const on = item.thumb !== value;
      if (!rate(item, up, on)) return;
      item.thumb = on ? value : '';
      press();
    });
    return button;
  });
  const press = () => buttons.forEach((button, index) => button.setAttribute('aria-pressed', String(item.thumb === (index ? 'down' : 'up'))));
  press();
  return buttons;
}

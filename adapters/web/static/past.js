/**
 * Earlier entries than those that the page opened with. It requests them; the entries themselves arrive like all
 * others.
 *
 * @module past
 */

import { byId } from './dom.js';
import { newClientId } from './outbox.js';
import { t } from './texts.js';

/** @typedef {import('./connection.js').Frame} Frame */

export class Past {
  /**
   * @param {object} options
   * @param {(frame: Frame) => boolean} options.send
   * @param {import('./store.js').ConversationStore} options.store
   * @param {import('./view.js').LogView} options.view
   */
  constructor({ send, store, view }) {
    this.send = send;
    this.store = store;
    this.view = view;
    /** The history continues before this entry; 0 where it does not. */
    this.before = 0;
    /** The key of the running request. */
    this.asked = '';
    this.chat = '';
    /** @type {HTMLButtonElement} */
    this.button = byId('earlier');
    this.button.addEventListener('click', () => this.#ask());
  }

  /** @param {Frame} frame of any type */
  frame(frame) {
    if (frame.type === 'welcome') this.#welcome(frame.chat);
    else if (frame.type === 'ready') this.#ready(frame);
    else if (frame.type === 'earlier') this.#end(frame);
    // The request failed; the reason is shown elsewhere.
    else if (frame.type === 'problem' && this.asked && frame.client_id === this.asked) this.#ended();
  }

  /** @param {string} chat the one that is shown now */
  #welcome(chat) {
    if (chat !== this.chat) this.before = 0;
    this.chat = chat;
    if (this.asked) this.#ended();
    this.#show();
  }

  /** The gateway has sent the history that it sends without a request. @param {Frame} frame `ready` */
  #ready({ earlier = 0 }) {
    if (earlier) this.before = earlier;
    this.#show();
  }

  /** @param {Frame} frame `earlier` */
  #end({ client_id: clientId, earlier }) {
    if (clientId !== this.asked) return;
    this.before = earlier;
    this.#ended();
  }

  #ask() {
    if (this.asked) return;
    const clientId = newClientId();
    if (!this.send({ type: 'earlier', client_id: clientId, before: this.before })) return;
    this.asked = clientId;
    this.view.beginEarlier();
    this.#show();
  }

  #ended() {
    this.asked = '';
    this.store.endEarlier();
    this.view.endEarlier();
    this.#show();
  }

  #show() {
    this.button.hidden = !this.before;
    this.button.setAttribute('aria-disabled', String(Boolean(this.asked)));
    this.button.textContent = this.asked ? t('link.loading') : t('past.show');
  }
}

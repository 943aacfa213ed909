/**
 * Earlier entries than those that the page opened with, and the other conversations of the token's
 * holder. It requests them; the entries themselves arrive like all others.
 *
 * @module past
 */

import { byId, el } from './dom.js';
import { newClientId } from './outbox.js';
import { dayWords } from './times.js';

/** @typedef {import('./connection.js').Frame} Frame */

export class Past {
  /**
   * @param {object} options
   * @param {(frame: Frame) => boolean} options.send
   * @param {import('./store.js').ConversationStore} options.store
   * @param {import('./view.js').LogView} options.view
   * @param {(chat: string) => void} options.onChat another conversation was chosen
   */
  constructor({ send, store, view, onChat }) {
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
    /** @type {HTMLSelectElement} */
    this.chats = byId('chats');
    this.button.addEventListener('click', () => this.#ask());
    this.chats.addEventListener('change', () => onChat(this.chats.value));
  }

  /** @param {Frame} frame of any type */
  frame(frame) {
    if (frame.type === 'welcome') this.#welcome(frame.chat);
    else if (frame.type === 'ready') this.#ready(frame);
    else if (frame.type === 'earlier') this.#end(frame);
    else if (frame.type === 'chats') this.#list(frame);
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

  /** The connection can carry frames. */
  askForChats() {
    this.send({ type: 'chats', client_id: newClientId() });
  }

  /** @param {Frame} frame `earlier` */
  #end({ client_id: clientId, earlier }) {
    if (clientId !== this.asked) return;
    this.before = earlier;
    this.#ended();
  }

  /** @param {Frame} frame `chats` */
  #list({ chats }) {
    const options = chats.map((/** @type {{ chat: string, title: string, at: number }} */ { chat, title, at }) =>
      el('option', { value: chat, selected: chat === this.chat }, `${title || 'Conversation'} · ${at ? dayWords(at) : 'new'}`));
    this.chats.replaceChildren(...options);
    this.chats.hidden = options.length < 2;
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
    this.button.textContent = this.asked ? 'Loading…' : 'Show earlier messages';
  }
}

/**
 * The list of the person's conversations: search, open, rename, delete. The gateway searches; this module requests and
 * draws.
 *
 * @module chats
 */

import { el, icon } from './dom.js';
import { newClientId } from './outbox.js';
import { Panel } from './panel.js';
import { read } from './settings.js';
import { t } from './texts.js';
import { dayWords } from './times.js';

/** @typedef {import('./connection.js').Frame} Frame */
/** @typedef {{ chat: string, title: string, at: number, found?: string }} Summary */

const PAUSE_MS = 250;

export class Chats {
  /**
   * @param {object} options
   * @param {(frame: Frame) => boolean} options.send
   * @param {(chat: string) => boolean} options.onChat another conversation was chosen; false if it cannot be shown now
   * @param {(words: string) => void} options.announce for a screen reader only
   */
  constructor({ send, onChat, announce }) {
    this.send = send;
    this.onChat = onChat;
    this.announce = announce;
    /** The key of the running request for the list; whether another one is due. */
    this.asked = '';
    this.again = false;
    /** Keys of running changes. @type {Set<string>} */
    this.changes = new Set();
    /** A list that came while a title was written or a deletion asked about. @type {Summary[] | null} */
    this.late = null;
    this.timer = 0;
    this.panel = new Panel('chats', t('chats.title'), t('chats.close'), () => this.#opened());
    this.search = el('input', { type: 'search', class: 'field', 'aria-label': t('chats.search'), placeholder: t('chats.search_hint'), autocomplete: 'off' });
    this.count = el('p', { class: 'soft', role: 'status' });
    this.list = el('ul', { class: 'chat-list' });
    this.panel.body.append(this.search, this.count, this.list);
    this.search.addEventListener('input', () => {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => { this.#leaveForms(); this.#ask(); }, PAUSE_MS);
    });
  }

  /** @param {Frame} frame of any type @returns {boolean} whether nothing else must show it */
  frame(frame) {
    if (frame.type === 'welcome') {
      this.asked = '';
    } else if (frame.type === 'ready') {
      // The connection counts as ready only after this frame.
      queueMicrotask(() => this.#ask());
    } else if (frame.type === 'chats' && frame.client_id === this.asked) {
      this.asked = '';
      if (this.list.querySelector('.chat-form')) this.late = frame.chats;
      else this.#draw(frame.chats);
    } else if (frame.type === 'chat_renamed' || frame.type === 'chat_deleted') {
      this.changes.delete(frame.client_id);
      this.#ask();
      this.announce(frame.type === 'chat_deleted' ? t('chats.deleted') : t('chats.renamed'));
    } else if (frame.type === 'problem' && frame.client_id && frame.client_id === this.asked) {
      this.asked = '';
      if (frame.code === 'busy') this.timer = setTimeout(() => this.#ask(), PAUSE_MS);
      else this.panel.say(frame.message);
      return true;
    } else if (frame.type === 'problem' && this.changes.delete(frame.client_id)) {
      this.panel.say(frame.message);
      return true;
    }
    return false;
  }

  #opened() {
    this.search.value = '';
    this.#leaveForms();
    this.asked = '';
    this.#ask();
    this.search.focus();
  }

  #leaveForms() {
    if (this.list.querySelector('.chat-form')) this.list.replaceChildren();
  }

  #ask() {
    if (!this.panel.open) return;
    this.again = Boolean(this.asked);
    if (this.again) return;
    const clientId = newClientId();
    const search = this.search.value.trim();
    if (this.send({ type: 'chats', client_id: clientId, ...(search && { search }) })) this.asked = clientId;
    else this.panel.say(t('not_connected'));
  }

  /** @param {Summary[]} chats */
  #draw(chats) {
    this.late = null;
    this.list.replaceChildren(...chats.map((one) => this.#row(one)));
    this.count.textContent = chats.length ? t('chats.count', { count: chats.length }) : this.search.value ? t('chats.none_found') : t('chats.none');
    if (this.again) this.#ask();
  }

  /** @param {Summary} one */
  #row(one) {
    const title = one.title || t('chats.untitled');
    const open = el('button', { type: 'button', class: 'chat-open', 'aria-current': one.chat === read('chat') && 'true' },
      el('span', { class: 'chat-name', dir: 'auto' }, title), el('span', { class: 'soft' }, one.at ? dayWords(one.at) : t('chats.is_new')),
      one.found && el('span', { class: 'chat-found soft', dir: 'auto' }, one.found));
    const rename = el('button', { type: 'button', class: 'tool', 'aria-label': t('chats.rename_one', { title }), title: t('chats.rename') }, icon('new'));
    const remove = el('button', { type: 'button', class: 'tool', 'aria-label': t('chats.delete_one', { title }), title: t('chats.delete') }, icon('bin'));
    const row = el('li', {}, open, rename, remove);
    open.addEventListener('click', () => {
      if (one.chat === read('chat') || this.onChat(one.chat)) this.panel.close();
      else this.panel.say(t('chats.waits'));
    });
    rename.addEventListener('click', () => this.#rename(row, one));
    remove.addEventListener('click', () => this.#delete(row, one, title));
    return row;
  }

  /** @param {HTMLElement} row @param {Summary} one */
  #rename(row, one) {
    const input = el('input', { class: 'field', 'aria-label': t('chats.new_title'), maxlength: 120, dir: 'auto', value: one.title });
    const form = el('form', { class: 'chat-form' }, input,
      el('button', { class: 'primary' }, t('save')), this.#back(row, one, t('cancel')));
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.#change(row, one, { type: 'rename_chat', title: input.value.trim() });
    });
    row.replaceChildren(form);
    input.select();
    input.focus();
  }

  /** @param {HTMLElement} row @param {Summary} one @param {string} title */
  #delete(row, one, title) {
    const sure = el('button', { type: 'button', class: 'primary danger' }, t('chats.delete'));
    const keep = this.#back(row, one, t('chats.keep'));
    sure.addEventListener('click', () => this.#change(row, one, { type: 'delete_chat' }));
    row.replaceChildren(el('div', { class: 'chat-form', role: 'group', 'aria-label': t('chats.delete_one', { title }) },
      el('p', { dir: 'auto' }, t('chats.delete_sure', { title })), sure, keep));
    keep.focus();
  }

  /** @param {HTMLElement} row @param {Summary} one @param {string} words */
  #back(row, one, words) {
    const button = el('button', { type: 'button', class: 'plain' }, words);
    button.addEventListener('click', () => this.#restore(row, one));
    return button;
  }

  /** @param {HTMLElement} row @param {Summary} one */
  #restore(row, one) {
    const fresh = this.#row(one);
    row.replaceWith(fresh);
    fresh.querySelector('button')?.focus();
    if (!this.late || this.list.querySelector('.chat-form')) return;
    this.#draw(this.late);
    this.search.focus();
  }

  /** @param {HTMLElement} row @param {Summary} one @param {Frame} frame */
  #change(row, one, frame) {
    const clientId = newClientId();
    this.panel.say('');
    if (this.send({ ...frame, client_id: clientId, chat: one.chat })) this.changes.add(clientId);
    else this.panel.say(t('not_connected'));
    this.#restore(row, one);
  }
}

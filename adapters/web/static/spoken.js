/**
 * Everything of the page that is spoken but no voice note: talking live, what is heard of it, and answers read
 * aloud. It joins the parts; each alone is in its own module.
 *
 * @module spoken
 */

import { byId } from './dom.js';
import { CONFIRM } from './questions.js';
import { Reader } from './reader.js';
import { read, write } from './settings.js';
import { Talk } from './talk.js';

/** @typedef {import('./connection.js').Frame} Frame */

/** The words in the question whether a person was heard right. */
const HEARD = /“(.*)”/s;

export class Spoken {
  /**
   * @param {{ connection: import('./connection.js').Connection, store: import('./store.js').ConversationStore,
   *   onTrouble: (words: string) => void, onToggle: () => void, onEdit: (text: string) => void }} options
   */
  constructor({ connection, store, onTrouble, onToggle, onEdit }) {
    this.store = store;
    this.onEdit = onEdit;
    /** @type {WeakSet<import('./items.js').Item>} answers that were begun to be read by themselves: none is begun twice */
    this.begun = new WeakSet();
    this.reader = new Reader({ store, send: (frame) => connection.send(frame), onTrouble, onChange: () => this.talk.refresh() });
    this.talk = new Talk({
      connection,
      thinking: () => store.active.size > 0,
      speaking: () => this.reader.playing,
      onVoice: () => this.reader.stop(),
      onTrouble,
      onToggle,
    });
    /** @type {HTMLButtonElement} */
    this.aloud = byId('read-aloud');
    this.aloud.addEventListener('click', () => {
      write('readAloud', this.#readsAloud() ? null : 'yes');
      if (!this.#readsAloud()) this.reader.stop();
      this.#show();
    });
    this.#show();
  }

  /** @param {Frame} frame `welcome`: what the gateway can do */
  welcome({ live, speech }) {
    byId('talk').hidden = live !== true;
    this.aloud.hidden = speech !== true;
    // The Listen buttons are in rows that may be drawn already.
    byId('log').classList.toggle('can-read-aloud', speech === true);
    if (live !== true && this.talk.on) this.talk.end('The gateway does not listen any more. Send a voice note or type.');
  }

  /** The connection came or went. @param {import('./connection.js').LinkState} state */
  link(state) {
    if (state !== 'ready') this.reader.interrupted();
    this.talk.link();
  }

  /** @param {Frame} frame of any type */
  frame(frame) {
    if (frame.type === 'speech') this.reader.header(frame);
    else if (frame.type === 'speech_ended') this.reader.ended(frame);
    else if (frame.type.startsWith('live')) {
      if (frame.type === 'live') this.store.heard.event(frame.event);
      if (frame.type === 'live_ended') this.store.heard.clear();
      this.talk.frame(frame);
    } else if (frame.type === 'event') this.#event(frame.event);
  }

  /** @param {Frame} problem @returns {boolean} whether it was about something spoken */
  problem(problem) {
    return this.reader.problem(problem) || this.talk.problem(problem);
  }

  /** A question was answered. @param {import('./items.js').Item} item @param {string} choice */
  chosen(item, choice) {
    if (item.approval?.tool !== CONFIRM) return;
    const heard = choice === 'Edit' && HEARD.exec(item.text);
    if (heard) this.onEdit(heard[1]);
    if (choice === 'Retry') byId('mic').focus();
  }

  /** Reads an answer aloud from its first words on, where that is wanted. @param {Record<string, any>} event of the pipeline */
  #event({ type, message_id: messageId }) {
    if (type === 'error') this.reader.failed(messageId);
    if (type !== 'llm_token' && type !== 'response_complete') return;
    const item = this.store.find(messageId, 'assistant');
    const wanted = this.talk.on && !this.talk.hearing && !this.talk.held && !this.aloud.hidden && this.#readsAloud();
    if (!wanted || !item || this.begun.has(item)) return;
    // What the gateway does not keep it is not asked to read.
    if (item.streaming ? this.store.label.offRecord : item.entryId === 0 || item.unkept) return;
    this.begun.add(item);
    this.reader.listen(item);
  }

  #readsAloud() {
    return read('readAloud') === 'yes';
  }

  #show() {
    this.aloud.setAttribute('aria-pressed', String(this.#readsAloud()));
  }
}

/**
 * All speech of the page except voice notes: live conversation, its transcript, and answers read
 * aloud. It connects the parts; each part itself is in its own module.
 *
 * @module spoken
 */

import { byId } from './dom.js';
import { CONFIRM } from './questions.js';
import { Reader } from './reader.js';
import { read, write } from './settings.js';
import { Talk } from './talk.js';

/** @typedef {import('./connection.js').Frame} Frame */

/** The text in the question whether a transcript is right. */
const HEARD = /“(.*)”/s;

export class Spoken {
  /**
   * @param {{ connection: import('./connection.js').Connection, store: import('./store.js').ConversationStore,
   *   onTrouble: (words: string) => void, onToggle: () => void, onEdit: (text: string) => void }} options
   */
  constructor({ connection, store, onTrouble, onToggle, onEdit }) {
    this.store = store;
    this.onEdit = onEdit;
    /** @type {WeakSet<import('./items.js').Item>} answers whose automatic reading was started: none is started twice */
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

  /** The connection's state changed. @param {import('./connection.js').LinkState} state */
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

  /** Reads an answer aloud from its beginning, where that is switched on. @param {Record<string, any>} event of the pipeline */
  #event({ type, message_id: messageId }) {
    if (type === 'error') this.reader.failed(messageId);
    if (type !== 'llm_token' && type !== 'response_complete') return;
    const item = this.store.find(messageId, 'assistant');
    const wanted = this.talk.on && !this.talk.hearing && !this.talk.held && !this.aloud.hidden && this.#readsAloud();
    if (!wanted || !item || this.begun.has(item)) return;
    // The gateway cannot read an answer that it does not store.
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

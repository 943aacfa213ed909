/**
 * All speech of the page except voice notes: live conversation, its transcript, and answers read
 * aloud. It connects the parts, and loads the two large ones when they are first used.
 *
 * @module spoken
 */

import { byId } from './dom.js';
import { CONFIRM } from './questions.js';
import { read, write } from './settings.js';
import { t } from './texts.js';

/** @typedef {import('./connection.js').Frame} Frame */
/** @typedef {import('./items.js').Item} Item */

/** The text in the question whether a transcript is right. */
const HEARD = /“(.*)”/s;

export class Spoken {
  /**
   * @param {{ connection: import('./connection.js').Connection, store: import('./store.js').ConversationStore,
   *   onTrouble: (words: string) => void, onToggle: () => void, onEdit: (text: string) => void }} options
   */
  constructor(options) {
    this.options = options;
    this.store = options.store;
    /** @type {WeakSet<Item>} answers whose automatic reading was started: none is started twice */
    this.begun = new WeakSet();
    /** @type {import('./reader.js').Reader | null} null until an answer is to be read */
    this.reader = null;
    /** @type {import('./talk.js').Talk | null} null until the button is pressed */
    this.talk = null;
    this.opening = false;
    /** How often playing was stopped: an answer requested before a stop does not begin after it. */
    this.stops = 0;
    byId('talk').addEventListener('click', () => void this.#openTalk());
    /** @type {HTMLButtonElement} */
    this.aloud = byId('read-aloud');
    this.aloud.addEventListener('click', () => void this.#switchAloud());
    this.#show();
  }

  /** Whether a conversation by voice runs. */
  get talking() {
    return this.talk?.on ?? false;
  }

  /** Whether an answer is being played. */
  get playing() {
    return this.reader?.playing ?? false;
  }

  /** Reads an answer aloud. @param {Item} item */
  async listen(item) {
    const { stops } = this;
    const reader = await this.#loadReader();
    if (stops === this.stops) reader?.listen(item);
  }

  /** Stops playing until the next request. */
  stop() {
    this.stops += 1;
    this.reader?.stop();
  }

  /** Something runs or ends: shows whose turn it is. */
  refresh() {
    this.talk?.refresh();
  }

  /** @param {Frame} frame `welcome`: what the gateway can do */
  welcome({ live, speech }) {
    byId('talk').hidden = live !== true;
    this.aloud.hidden = speech !== true;
    // The Listen buttons are in rows that may be drawn already.
    byId('log').classList.toggle('can-read-aloud', speech === true);
    if (live !== true && this.talking) this.talk?.end(t('talk.not_listening'));
  }

  /** The connection's state changed. @param {import('./connection.js').LinkState} state */
  link(state) {
    if (state !== 'ready') this.reader?.interrupted();
    this.talk?.link();
  }

  /** @param {ArrayBuffer} sound of an answer */
  sound(sound) {
    this.reader?.sound(sound);
  }

  /** @param {Frame} frame of any type */
  frame(frame) {
    if (frame.type === 'speech') this.reader?.header(frame);
    else if (frame.type === 'speech_ended') this.reader?.ended(frame);
    else if (frame.type.startsWith('live')) {
      if (frame.type === 'live') this.store.heard.event(frame.event);
      if (frame.type === 'live_ended') this.store.heard.clear();
      if (this.talk) this.talk.frame(frame);
      // Another window of this conversation has the microphone.
      else if (frame.event?.type === 'speech_started') this.stop();
    } else if (frame.type === 'event') this.#event(frame.event);
  }

  /** @param {Frame} problem @returns {boolean} whether it was about something spoken */
  problem(problem) {
    return Boolean(this.reader?.problem(problem) || this.talk?.problem(problem));
  }

  /** A question was answered. @param {Item} item @param {string} choice */
  chosen(item, choice) {
    if (item.approval?.tool !== CONFIRM) return;
    const heard = choice === 'Edit' && HEARD.exec(item.text);
    if (heard) this.options.onEdit(heard[1]);
    if (choice === 'Retry') byId('mic').focus();
  }

  /** @param {Record<string, any>} event of the pipeline */
  #event({ type, message_id: messageId }) {
    if (type === 'error') this.reader?.failed(messageId);
    if (type === 'llm_token' || type === 'response_complete') void this.#readNew(messageId);
  }

  /** Reads an answer aloud from its beginning, where that is switched on. @param {string} messageId */
  async #readNew(messageId) {
    if (!this.talking || !this.#readsAloud()) return;
    const { stops } = this;
    const reader = this.reader ?? (await this.#loadReader());
    const item = this.store.find(messageId, 'assistant');
    const { talk } = this;
    const wanted = talk?.on && !talk.hearing && !talk.held && !this.aloud.hidden && this.#readsAloud() && stops === this.stops;
    if (!reader || !wanted || !item || this.begun.has(item)) return;
    // The gateway cannot read an answer that it does not store.
    if (item.streaming ? this.store.label.offRecord : item.entryId === 0 || item.unkept) return;
    this.begun.add(item);
    reader.listen(item);
  }

  async #switchAloud() {
    const on = !this.#readsAloud();
    if (on && !(await this.#loadReader())) return;
    write('readAloud', on ? 'yes' : null);
    if (!on) this.stop();
    this.#show();
  }

  async #openTalk() {
    // Once it is loaded, it has the button.
    if (this.talk || this.opening) return;
    this.opening = true;
    const { connection, onTrouble, onToggle } = this.options;
    const [module] = await Promise.all([this.#load(import('./talk.js')), this.#readsAloud() && this.#loadReader()]);
    this.opening = false;
    if (!module) return;
    this.talk = new module.Talk({
      connection,
      thinking: () => this.store.active.size > 0,
      speaking: () => this.playing,
      onVoice: () => this.stop(),
      onTrouble,
      onToggle,
    });
    void this.talk.start();
  }

  async #loadReader() {
    const module = this.reader ? null : await this.#load(import('./reader.js'));
    const { connection, onTrouble } = this.options;
    if (module) this.reader ??= new module.Reader({ store: this.store, send: (frame) => connection.send(frame), onTrouble, onChange: () => this.refresh() });
    return this.reader;
  }

  /** @template T @param {Promise<T>} loading @returns {Promise<T | null>} null if it cannot be loaded, which is said */
  async #load(loading) {
    try {
      return await loading;
    } catch {
      this.options.onTrouble(t('not_loaded'));
      return null;
    }
  }

  #readsAloud() {
    return read('readAloud') === 'yes';
  }

  #show() {
    this.aloud.setAttribute('aria-pressed', String(this.#readsAloud()));
  }
}

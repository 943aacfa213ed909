/**
 * The page's state of the conversation: durable entries, the answer in progress, and messages
 * being sent. Frames go in, changed items come out. It draws nothing and sends nothing.
 *
 * @module store
 */

import { activityOf, transcriptOf } from './activity.js';
import { Heard } from './heard.js';
import { newItem } from './items.js';
import { Label } from './label.js';
import { Questions } from './questions.js';
import { settled, stepsOf, withStep } from './steps.js';
import { Together } from './together.js';
import { Versions } from './versions.js';

/** @typedef {import('./items.js').Item} Item */
/** @typedef {import('./items.js').Role} Role */

/** @type {ReadonlySet<string>} */
const ROLES = new Set(['user', 'assistant', 'notice', 'error', 'session']);

export class ConversationStore {
  /** @param {(item: Item, change: 'changed' | 'removed') => void} onChange */
  constructor(onChange) {
    this.onChange = onChange;
    /** @type {Map<number, Item>} */
    this.items = new Map();
    /** @type {Map<string, Item>} */
    this.byIdentity = new Map();
    /** @type {Map<string, Item>} */
    this.byClient = new Map();
    /** @type {Set<string>} ids of the messages being answered now */
    this.active = new Set();
    this.questions = new Questions(this);
    this.heard = new Heard(this);
    this.versions = new Versions(this);
    this.label = new Label();
    this.together = new Together();
    /** Highest durable entry, the `after` of the next hello. */
    this.highest = 0;
  }

  /** Empties the conversation (another chat begins). Rows that were not accepted yet stay. */
  reset() {
    this.highest = 0;
    this.active.clear();
    this.heard.clear();
    this.label.clear();
    this.together.clear();
    this.versions.clear();
    for (const item of [...this.items.values()]) if (item.messageId) this.remove(item);
  }

  /** @param {string} messageId @param {Role} role */
  find(messageId, role) {
    return this.byIdentity.get(`${messageId}|${role}`);
  }

  /**
   * A row created by this page: a message being sent, or a notice of the page.
   *
   * @param {Partial<Item> & { role: Role }} fields
   * @returns {Item}
   */
  add(fields) {
    const item = newItem(fields);
    this.#index(item);
    this.onChange(item, 'changed');
    return item;
  }

  /** @param {Role} role @param {string} text @param {string} [code] */
  addLocal(role, text, code = 'page') {
    return this.add({ role, text, code, place: this.highest + 0.5 });
  }

  /** @param {Item} item @param {Partial<Item>} fields */
  update(item, fields) {
    Object.assign(item, fields);
    this.#index(item);
    this.onChange(item, 'changed');
  }

  /** @param {Item} item */
  remove(item) {
    this.items.delete(item.uid);
    const identity = `${item.messageId}|${item.role}`;
    if (this.byIdentity.get(identity) === item) this.byIdentity.delete(identity);
    if (this.byClient.get(item.clientId) === item) this.byClient.delete(item.clientId);
    this.onChange(item, 'removed');
  }

  /** A connection opens: unfinished answers are shown again only if the gateway sends them. */
  beginHistory() {
    this.active.clear();
    this.heard.clear();
    this.questions.beginHistory();
  }

  /** Earlier entries have arrived: none of them waits for an answer. */
  endEarlier() {
    this.#settleUsers(true);
  }

  /** The history is complete: unfinished answers that the gateway did not send have ended. */
  endHistory() {
    this.questions.endHistory();
    for (const item of [...this.items.values()]) if (item.streaming && !this.active.has(item.messageId)) this.remove(item);
    this.#settleUsers(false);
  }

  /** Turns run one after the other: a message before the last answer has had its turn. @param {boolean} recordedOnly */
  #settleUsers(recordedOnly) {
    const items = [...this.items.values()];
    const ended = Math.max(0, ...items.map(({ role, entryId }) => (role === 'user' || role === 'approval' ? 0 : entryId)));
    for (const item of items) {
      if (item.role !== 'user' || !item.messageId || item.state === 'answered' || this.active.has(item.turn || item.messageId)) continue;
      const over = item.entryId > 0 && item.entryId < ended;
      if (over || !recordedOnly) this.update(item, { state: over ? 'answered' : 'queued' });
    }
  }

  /** @param {import('./connection.js').Frame} frame `accepted` */
  accepted({ client_id: clientId, message_id: messageId }) {
    const local = this.byClient.get(clientId);
    if (!local || local.messageId === messageId) return;
    const known = this.find(messageId, 'user');
    const turn = this.together.of(messageId);
    const state = this.active.has(turn || messageId) ? 'answering' : (known?.state ?? 'queued');
    const fields = known ? { entryId: known.entryId, at: known.at, text: known.text || local.text, spoken: known.spoken, files: known.files.some(({ id }) => id) ? known.files : local.files } : {};
    if (known) this.remove(known);
    this.update(local, { ...fields, messageId, turn, state, problem: '', place: 0 });
  }

  /** @param {import('./connection.js').Frame} frame `entry` */
  entry(frame) {
    const { entry_id: entryId, message_id: messageId, role, text, html, at, spoken, code, thoughts, feedback = '' } = frame;
    this.label.entry(frame);
    if (!ROLES.has(role)) return;
    this.together.note(messageId, frame.turn ?? '');
    this.highest = Math.max(this.highest, entryId);
    // The entry that ends `/stop`: each stopped message has its own entry that says so.
    if (role === 'notice' && code === 'stopped') return;
    const known = this.find(messageId, role) ?? this.heard.claim(frame);
    const words = { text: text || known?.text || '', html: html || known?.html || '' };
    const steps = stepsOf(thoughts).length > 0 ? stepsOf(thoughts) : settled(known?.steps ?? []);
    const fields = { entryId: entryId || known?.entryId || 0, ...words, turn: this.together.of(messageId), steps, at, spoken, code, thumb: feedback, files: frame.files ?? known?.files ?? [], streaming: false, growing: false };
    const item = known ?? this.add({ role, messageId, ...fields, state: role === 'user' ? 'queued' : '' });
    if (known) this.update(known, fields);
    if (role === 'user') this.#refreshUser(item);
    else this.#finish(messageId, role);
    this.questions.recorded(frame);
    this.versions.entry(frame);
  }

  /** @param {import('./connection.js').Frame} frame `snapshot` */
  snapshot({ message_id: messageId, text }) {
    if (this.#hasAnswer(messageId)) return;
    this.#begin(messageId);
    this.update(this.#stream(messageId), { text, length: [...text].length });
  }

  /** @param {Record<string, any>} event a live event of the pipeline */
  event(event) {
    const messageId = event.message_id;
    const user = this.find(messageId, 'user');
    switch (event.type) {
      case 'turn_started':
        this.#begin(messageId);
        if (!this.#hasAnswer(messageId)) this.update(this.#stream(messageId), { steps: [] });
        return;
      case 'message_joined':
        this.#join(event);
        return;
      case 'transcript_pending':
      case 'transcript_partial':
      case 'transcript_ready':
        if (user) this.update(user, transcriptOf(event));
        return;
      case 'llm_token':
        this.#token(event);
        return;
      case 'response_complete':
        this.#complete(event);
        return;
      case 'error':
        this.#fail(event);
        return;
      case 'approval_required':
        this.questions.ask(event);
        return;
      case 'approval_resolved':
        this.questions.resolve(event);
        return;
      default: {
        const words = activityOf(event);
        if (!words || this.#hasAnswer(messageId)) return;
        const item = this.#stream(messageId);
        this.update(item, { activity: words, steps: withStep(item.steps, event) });
      }
    }
  }

  /** @param {string} messageId */
  #begin(messageId) {
    this.active.add(messageId);
    const user = this.find(messageId, 'user');
    if (user) this.update(user, { state: 'answering' });
    this.#stream(messageId);
  }

  /** @param {Record<string, any>} event `message_joined` */
  #join({ message_id: turn, joined }) {
    this.together.note(joined, turn);
    const user = this.find(joined, 'user');
    if (user) this.update(user, { turn, state: 'answering' });
    // The answer in progress moves below it.
    if (this.active.has(turn)) this.update(this.#stream(turn), {});
  }

  /** @param {Record<string, any>} event `llm_token` */
  #token({ message_id: messageId, text, offset }) {
    if (this.#hasAnswer(messageId)) return;
    if (!this.active.has(messageId)) this.#begin(messageId);
    const item = this.#stream(messageId);
    // Offsets count code points; an earlier offset means that the answer was restarted from there.
    let before = item.text;
    if (offset < item.length) before = [...before].slice(0, offset).join('');
    else if (offset > item.length) before += ' … ';
    this.update(item, { text: before + text, length: offset + [...text].length, activity: '' });
  }

  /** @param {Record<string, any>} event `response_complete` */
  #complete({ message_id: messageId, content: text, html = '', thoughts, entry_id: entryId = 0 }) {
    this.highest = Math.max(this.highest, entryId);
    const shown = this.find(messageId, 'notice') ?? this.find(messageId, 'session');
    if (!shown && text) {
      const item = this.find(messageId, 'assistant') ?? newItem({ role: 'assistant', messageId });
      const at = item.entryId ? item.at : Date.now() / 1000;
      const steps = stepsOf(thoughts).length > 0 ? stepsOf(thoughts) : settled(item.steps);
      this.update(item, { text, html, at, steps, entryId: entryId || item.entryId, unkept: this.label.offRecord, streaming: false, activity: '' });
    }
    this.#finish(messageId, text ? 'assistant' : 'notice');
  }

  /** @param {Record<string, any>} event `error` */
  #fail({ message_id: messageId, code, message, recoverable, entry_id: entryId = 0 }) {
    this.highest = Math.max(this.highest, entryId);
    const item = this.find(messageId, 'error') ?? newItem({ role: 'error', messageId });
    this.update(item, { text: message, code, recoverable, entryId: entryId || item.entryId });
    this.#finish(messageId, 'error');
  }

  /** The message has its outcome. @param {string} messageId @param {Role} role */
  #finish(messageId, role) {
    this.active.delete(messageId);
    const stream = this.find(messageId, 'assistant');
    if (stream?.streaming && role !== 'assistant') this.remove(stream);
    for (const one of this.together.messages(messageId)) {
      const user = this.find(one, 'user');
      if (user) this.update(user, { state: 'answered' });
    }
    this.questions.finish(messageId, role === 'error');
    this.versions.ended(messageId);
  }

  /** @param {Item} user */
  #refreshUser(user) {
    const turn = user.turn || user.messageId;
    const ended = ['assistant', 'error', 'notice'].some((role) => {
      const other = this.find(turn, /** @type {Role} */ (role));
      return other && !other.streaming;
    });
    if (ended) this.update(user, { state: 'answered' });
    else if (this.active.has(turn)) this.update(user, { state: 'answering' });
    else if (user.state === 'sending') this.update(user, { state: 'queued' });
  }

  /** @param {string} messageId @returns {boolean} whether its final answer is already shown */
  #hasAnswer(messageId) {
    const item = this.find(messageId, 'assistant');
    return item !== undefined && !item.streaming;
  }

  /** @param {string} messageId @returns {Item} the answer being written */
  #stream(messageId) {
    return this.find(messageId, 'assistant') ?? this.add({ role: 'assistant', messageId, streaming: true });
  }

  /** @param {Item} item */
  #index(item) {
    this.items.set(item.uid, item);
    // Several questions may belong to one message, so the message id does not identify them.
    if (item.messageId && item.role !== 'approval') this.byIdentity.set(`${item.messageId}|${item.role}`, item);
    if (item.clientId) this.byClient.set(item.clientId, item);
  }
}

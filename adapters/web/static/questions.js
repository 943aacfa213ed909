/**
 * The conversation's questions that a person answers with a choice: which are open, and for which
 * an answer was sent. Their rows are items of the store; it draws nothing and sends nothing.
 *
 * @module questions
 */

/** @typedef {import('./items.js').Item} Item */

/** The limit of the browser's timers; the gateway rejects late answers. */
const LONGEST_TIMER_S = 2_000_000;

/** The source of the question whether a transcript is right: the intake step. */
export const CONFIRM = 'intake';

/** The resolution of a question that was not answered in time. */
export const EXPIRED = 'expired';

export class Questions {
  /** @param {import('./store.js').ConversationStore} store */
  constructor(store) {
    this.store = store;
    /** @type {Set<string>} those that the gateway has sent since the connection opened */
    this.named = new Set();
    /** @type {Map<string, {item: Item, choice: string}>} those whose answers this connection has sent, by the frame's key */
    this.sent = new Map();
    /** @type {Map<string, number>} the timers of those that expire */
    this.timers = new Map();
  }

  /** A connection opens: the gateway will send the open questions. */
  beginHistory() {
    this.named.clear();
    this.sent.clear();
  }

  /** The history is complete: questions that the gateway did not send are no longer open. */
  endHistory() {
    for (const item of this.#open()) {
      if (!this.named.has(item.approval?.interaction ?? '')) this.#close(item);
    }
  }

  /** @param {Record<string, any>} event `approval_required` */
  ask({ message_id: messageId, interaction_id: interaction, tool_name: tool, reasoning, options, timeout_s: seconds, command = '', paused: asksLater = false, asked_at: askedAt = 0 }) {
    this.named.add(interaction);
    const known = this.#find(interaction);
    if (known?.approval?.choice) return;
    const paused = asksLater || command !== '' || !this.store.active.has(messageId);
    // The remaining time is a duration: the two clocks need not agree.
    const until = seconds > 0 ? Date.now() / 1000 + seconds : 0;
    const approval = { interaction, tool, options, choice: '', open: true, sent: false, paused, until, command, askedAt };
    const at = this.store.find(messageId, 'assistant')?.at ?? (askedAt || Date.now() / 1000);
    const item = known ?? this.store.add({ role: 'approval', messageId, text: reasoning, at, approval });
    if (known) this.store.update(known, { approval });
    clearTimeout(this.timers.get(interaction));
    if (seconds > 0 && seconds < LONGEST_TIMER_S) {
      this.timers.set(interaction, setTimeout(() => this.#close(item), seconds * 1000));
    }
  }

  /** @param {Record<string, any>} event `approval_resolved` */
  resolve({ interaction_id: interaction, choice }) {
    const item = this.#find(interaction);
    if (item) this.#change(item, { choice, open: false });
  }

  /** A line of the history: the questions of its turn, and their resolutions. @param {import('./connection.js').Frame} frame `entry` */
  recorded({ message_id: messageId, entry_id: entryId, at, questions = [] }) {
    for (const { interaction_id: interaction, tool_name: tool, reasoning, options, choice, paused = false } of questions) {
      const known = this.#find(interaction);
      if (known) {
        this.#change(known, { choice, open: false });
        continue;
      }
      const approval = { interaction, tool, options, choice, open: false, sent: false, paused, until: 0, command: '', askedAt: 0 };
      // A question within a turn was answered before the entry that ends it; a paused run asks after it.
      this.store.add({ role: 'approval', messageId, text: reasoning, at, approval, place: paused ? 0 : entryId - 0.5 });
    }
  }

  /** A message has its outcome: of its questions, only those of a paused run stay open. @param {string} messageId @param {boolean} failed */
  finish(messageId, failed) {
    for (const item of this.#open()) {
      if (item.messageId !== messageId) continue;
      if (failed) this.#close(item);
      else this.#change(item, { paused: true });
    }
  }

  /** An answer has been sent. @param {Item} item @param {string} clientId the frame's key @param {string} choice */
  answering(item, clientId, choice) {
    this.sent.set(clientId, { item, choice });
    this.#change(item, { sent: true });
  }

  /** An answer was accepted. @param {string} clientId */
  accepted(clientId) {
    const sent = this.sent.get(clientId);
    this.sent.delete(clientId);
    // Nothing waits for a command's value, so no turn will close its question.
    if (sent?.item.approval?.command) this.#change(sent.item, { open: false, choice: sent.choice });
  }

  /**
   * A frame was refused.
   *
   * @param {string} clientId @param {string} code
   * @returns {boolean} whether it was an answer to a question
   */
  refused(clientId, code) {
    const item = this.sent.get(clientId)?.item;
    if (!item) return false;
    this.sent.delete(clientId);
    // A refusal is final: it was answered elsewhere, or has expired.
    if (code === 'refused') this.#close(item);
    else this.#change(item, { sent: false });
    return true;
  }

  /** @param {string} interaction */
  #find(interaction) {
    return [...this.store.items.values()].find((item) => item.approval?.interaction === interaction);
  }

  #open() {
    return [...this.store.items.values()].filter((item) => item.approval?.open);
  }

  /** @param {Item} item */
  #close(item) {
    if (item.approval?.open) this.#change(item, { open: false });
  }

  /** @param {Item} item @param {Partial<import('./items.js').Approval>} fields */
  #change(item, fields) {
    if (item.approval && this.store.items.has(item.uid)) this.store.update(item, { approval: { ...item.approval, ...fields } });
  }
}

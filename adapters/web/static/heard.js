/**
 * Speech in progress, as provisional rows: one per utterance, until the gateway names the message that it
 * becomes part of. The row stays and becomes that message, so nothing jumps and nothing appears twice.
 *
 * @module heard
 */

/** @typedef {import('./items.js').Item} Item */

export class Heard {
  /** @param {import('./store.js').ConversationStore} store */
  constructor(store) {
    this.store = store;
    /** @type {Map<number, { item: Item, ended: boolean }>} by the utterance's number */
    this.rows = new Map();
  }

  /** Speech has ended: removes the provisional rows; the gateway sends what became a message. */
  clear() {
    for (const { item } of this.rows.values()) if (item.provisional) this.store.remove(item);
    this.rows.clear();
  }

  /** @param {Record<string, any>} event of live speech */
  event(event) {
    switch (event.type) {
      case 'speech_partial':
        this.#show(event);
        return;
      case 'speech_started':
      case 'speech_ended': {
        const row = this.rows.get(event.utterance);
        if (row) row.ended = event.type === 'speech_ended';
        return;
      }
      case 'speech_final':
        this.#settle(event);
        return;
      case 'speech_dropped':
        this.#forget(event.utterance);
    }
  }

  /**
   * The durable entry may arrive before the event that links an utterance to it.
   *
   * @param {import('./connection.js').Frame} frame `entry` of a message that the page does not know
   * @returns {Item | undefined} the provisional row that is this message
   */
  claim({ message_id: messageId, role, text, spoken }) {
    if (role !== 'user') return undefined;
    for (const { item, ended } of this.rows.values()) {
      if (!item.provisional || !((spoken && ended) || text === item.text)) continue;
      this.store.update(item, { messageId, provisional: false, state: 'queued' });
      return item;
    }
    return undefined;
  }

  /** @param {Record<string, any>} event `speech_partial` */
  #show({ utterance, text, stable_chars: stableChars }) {
    // The gateway counts code points.
    const stable = [...text].slice(0, stableChars).join('').length;
    const row = this.rows.get(utterance);
    if (row?.item.provisional) this.store.update(row.item, { text, stable });
    else if (!row && text) {
      const item = this.store.add({ role: 'user', text, stable, spoken: true, provisional: true });
      this.rows.set(utterance, { item, ended: false });
    }
  }

  /** @param {Record<string, any>} event `speech_final` */
  #settle({ utterance, message_id: messageId, text }) {
    const item = this.rows.get(utterance)?.item;
    const known = this.store.find(messageId, 'user');
    const state = this.store.active.has(messageId) ? 'answering' : 'queued';
    if (known) this.#forget(utterance);
    else if (item?.provisional) this.store.update(item, { messageId, text, state, provisional: false });
    else this.store.add({ role: 'user', messageId, text, state, spoken: true });
    this.rows.delete(utterance);
  }

  /** @param {number} utterance */
  #forget(utterance) {
    const item = this.rows.get(utterance)?.item;
    if (item?.provisional) this.store.remove(item);
    this.rows.delete(utterance);
  }
}

/**
 * Messages that are answered together: which of them joined the turn of an earlier one.
 *
 * @module together
 */

/** @typedef {import('./items.js').Item} Item */

export class Together {
  constructor() {
    /** @type {Map<string, string>} the message whose turn it is, by the later message */
    this.turns = new Map();
  }

  /** @param {string} messageId @param {string} turn */
  note(messageId, turn) {
    if (turn) this.turns.set(messageId, turn);
  }

  /** @param {string} messageId @returns {string} empty if it has a separate turn */
  of(messageId) {
    return this.turns.get(messageId) ?? '';
  }

  /** @param {string} messageId @returns {string[]} the messages of its turn, oldest first */
  messages(messageId) {
    return [messageId, ...[...this.turns].filter(([, turn]) => turn === messageId).map(([later]) => later)];
  }

  clear() {
    this.turns.clear();
  }
}

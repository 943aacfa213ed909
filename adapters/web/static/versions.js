/**
 * The versions of a turn: answers that were given again, messages that were edited, and turns
 * that were taken out of the conversation. It says which rows are shown; rows.js draws them.
 *
 * @module versions
 */

/** @typedef {import('./items.js').Item} Item */
/** @typedef {{ hidden: boolean, out: boolean, index: number, count: number, newest: boolean }} Version */

/** @type {Item['role'][]} what there may be of a message */
const OF_A_TURN = ['user', 'assistant', 'error', 'notice'];

export class Versions {
  /** @param {import('./store.js').ConversationStore} store */
  constructor(store) {
    this.store = store;
    this.clear();
  }

  clear() {
    /** @type {Map<string, string>} the first message of its turn, by message */
    this.roots = new Map();
    /** @type {Map<string, string[]>} the later messages of a turn, as they arrived */
    this.later = new Map();
    /** @type {Set<string>} */
    this.removed = new Set();
    /** @type {Map<string, string>} the version that the reader chose */
    this.chosen = new Map();
    this.newest = '';
    this.newestEntry = 0;
  }

  /** The message whose turn it is; another one for those that are answered together. @param {string} messageId */
  turnOf(messageId) {
    return this.store.together.of(messageId) || messageId;
  }

  /** The words of all messages of the turn. @param {string} messageId */
  wordsOf(messageId) {
    const texts = this.store.together.messages(messageId).map((one) => this.store.find(one, 'user')?.text).filter((text) => text !== undefined);
    return texts.length > 0 ? texts.join(texts.some((text) => text.includes('\n\n')) ? '\n\n' : '\n') : undefined;
  }

  /** @param {string} messageId */
  rootOf(messageId) {
    const turn = this.turnOf(messageId);
    return this.roots.get(turn) ?? turn;
  }

  /** @param {import('./connection.js').Frame} frame `entry` */
  entry({ entry_id: entryId, message_id: messageId, role, replaces, removed }) {
    if (role === 'user' && replaces && !this.roots.has(messageId)) {
      this.roots.set(messageId, replaces);
      this.later.set(replaces, [...(this.later.get(replaces) ?? []), messageId]);
      this.#draw(replaces);
    }
    // The first message may arrive after its versions, with the entries before them.
    if (role === 'user' && this.later.has(messageId)) this.#draw(messageId);
    if (removed) {
      this.removed.add(removed);
      this.#draw(removed);
      if (this.rootOf(this.newest) === removed) this.#findNewest();
    }
    if (role === 'session' && entryId > this.newestEntry) this.#setNewest('', entryId);
  }

  /** The message has its outcome. @param {string} messageId */
  ended(messageId) {
    const answer = this.store.find(messageId, 'assistant');
    const root = this.rootOf(messageId);
    if (answer && !this.removed.has(root) && !answer.streaming && answer.entryId > this.newestEntry) this.#setNewest(messageId, answer.entryId);
    if (this.roots.has(messageId)) this.chosen.delete(root);
    if (this.later.has(root)) this.#draw(root);
  }

  /** @param {Item} item @param {number} step to the version before or after the shown one */
  turn(item, step) {
    const root = this.rootOf(item.messageId);
    const list = this.#answered(root);
    const next = list[list.indexOf(this.#shown(root, list)) + step];
    if (!next) return;
    this.chosen.set(root, next);
    this.#draw(root);
  }

  /** @param {Item} item @returns {Version} */
  of(item) {
    const root = this.rootOf(item.messageId);
    const list = this.#answered(root);
    const turn = this.turnOf(item.messageId);
    const index = list.indexOf(turn);
    const known = item.messageId && index >= 0;
    const repeats = item.role === 'user' && turn !== root && item.text === this.wordsOf(root);
    const hidden = known ? this.#shown(root, list) !== turn : repeats;
    return { hidden, out: this.removed.has(root), index, count: list.length, newest: item.messageId !== '' && item.messageId === this.newest };
  }

  /** @param {string} root @param {string[]} list */
  #shown(root, list) {
    return this.chosen.get(root) ?? list.at(-1);
  }

  /** The messages of the turn that have an answer, oldest first, and the first one if anything of it is known. @param {string} root */
  #answered(root) {
    const answers = (this.later.get(root) ?? []).flatMap((id) => this.store.find(id, 'assistant') ?? []).filter(({ streaming, messageId }) => !streaming && !this.store.find(messageId, 'error'));
    // Entries of earlier pages arrive after the newest ones; one that is not recorded yet is the newest.
    const place = (/** @type {Item} */ { entryId }) => entryId || Number.MAX_SAFE_INTEGER;
    const later = answers.sort((one, other) => place(one) - place(other)).map(({ messageId }) => messageId);
    const known = OF_A_TURN.some((role) => this.store.find(root, role));
    return known || later.length === 0 ? [root, ...later] : later;
  }

  #findNewest() {
    const before = this.newest;
    this.newest = '';
    this.newestEntry = 0;
    for (const { role, entryId, messageId, streaming } of this.store.items.values()) {
      if (entryId <= this.newestEntry || streaming || this.removed.has(this.rootOf(messageId))) continue;
      if (role !== 'assistant' && role !== 'session') continue;
      this.newest = role === 'assistant' ? messageId : '';
      this.newestEntry = entryId;
    }
    this.#draw(this.rootOf(before));
    this.#draw(this.rootOf(this.newest));
  }

  /** @param {string} messageId @param {number} entryId */
  #setNewest(messageId, entryId) {
    const before = this.newest;
    this.newest = messageId;
    this.newestEntry = entryId;
    if (before) this.#draw(this.rootOf(before));
    if (messageId) this.#draw(this.rootOf(messageId));
  }

  /** @param {string} root */
  #draw(root) {
    if (!root) return;
    for (const item of this.store.items.values()) {
      if (item.messageId && this.rootOf(item.messageId) === root) this.store.onChange(item, 'changed');
    }
  }
}

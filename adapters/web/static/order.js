/**
 * The order of the rows of a conversation.
 *
 * @module order
 */

/** @typedef {import('./items.js').Item} Item */
/** @typedef {import('./items.js').Role} Role */
/** @typedef {import('./store.js').ConversationStore} ConversationStore */

/** @param {ConversationStore} store @returns {Item[]} */
export function inOrder(store) {
  const keyed = [...store.items.values()].map((item) => ({ item, key: sortKey(item, store) }));
  return keyed.sort((a, b) => a.key[0] - b.key[0] || a.key[1] - b.key[1] || a.key[2] - b.key[2] || a.item.uid - b.item.uid).map(({ item }) => item);
}

/** Where a turn ended: off the record only its answer has a position, not its message. @param {Item} user @param {ConversationStore} store @returns {number} */
function outcomeOf({ messageId, turn }, store) {
  const ends = messageId ? /** @type {Role[]} */ (['assistant', 'error', 'notice']) : [];
  return Math.max(0, ...ends.map((role) => store.find(turn || messageId, role)?.entryId ?? 0));
}

/** The newest entry up to a time. @param {number} time @param {ConversationStore} store @returns {number} */
function lastBefore(time, store) {
  return Math.max(0, ...[...store.items.values()].map(({ entryId, at }) => (at <= time ? entryId : 0)));
}

/** @param {Item} item @param {ConversationStore} store @returns {[number, number, number]} */
function sortKey(item, store) {
  if (item.entryId > 0) return [item.entryId, 0, 0];
  if (item.place > 0) return [item.place, 0, 0];
  const asking = item.approval ? (store.find(item.messageId, 'assistant') ?? store.find(item.messageId, 'notice')) : undefined;
  // A tool's question was answered before the answer; a paused run's question follows it.
  if (asking?.entryId) return [asking.entryId, 0, item.approval?.paused ? 1 : -0.5];
  // What asked it is not in the history, as it showed something that may be forgotten since.
  if (!asking && item.approval?.askedAt) return [lastBefore(item.approval.askedAt, store), 0, 2];
  if (item.role === 'user' && outcomeOf(item, store)) return [outcomeOf(item, store), 0, -1];
  // An answer follows the last of the messages that it answers.
  const asked = store.together.messages(item.messageId).reverse().map((one) => store.find(one, 'user'));
  const user = item.role === 'user' ? undefined : asked.find((one) => one);
  if (!user || !item.messageId) return [Infinity, item.uid, 0];
  const [first, second] = sortKey(user, store);
  return [first, second, item.role === 'approval' ? 1 : 2];
}

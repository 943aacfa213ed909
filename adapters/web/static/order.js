/**
 * Where a row of the conversation belongs.
 *
 * @module order
 */

/** @typedef {import('./items.js').Item} Item */
/** @typedef {import('./store.js').ConversationStore} Store */

/** Where a turn ended: off the record only its answer has a position, not its message. @param {Item} user @param {Store} store @returns {number} */
function outcomeOf({ messageId }, store) {
  const ends = messageId ? /** @type {import('./items.js').Role[]} */ (['assistant', 'error', 'notice']) : [];
  return Math.max(0, ...ends.map((role) => store.find(messageId, role)?.entryId ?? 0));
}

/** @param {Item} item @param {Store} store @returns {[number, number, number]} */
export function sortKey(item, store) {
  if (item.entryId > 0) return [item.entryId, 0, 0];
  if (item.place > 0) return [item.place, 0, 0];
  const asking = item.approval ? (store.find(item.messageId, 'assistant') ?? store.find(item.messageId, 'notice')) : undefined;
  // A tool's question was answered before the answer; a paused run's question follows it.
  if (asking?.entryId) return [asking.entryId, 0, item.approval?.paused ? 1 : -0.5];
  if (item.role === 'user' && outcomeOf(item, store)) return [outcomeOf(item, store), 0, -1];
  const user = item.role === 'user' ? undefined : store.find(item.messageId, 'user');
  if (!user || !item.messageId) return [Infinity, item.uid, 0];
  const [first, second] = sortKey(user, store);
  return [first, second, item.role === 'approval' ? 1 : 2];
}

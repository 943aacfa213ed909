/**
 * The keys of the workflow editor: save, undo, redo, and delete what is selected in the drawing.
 *
 * @module editor-keys
 */

/** @typedef {import('./editor.js').Desk} Desk */

/** @param {Desk} desk @param {KeyboardEvent} event */
export function pressed(desk, event) {
  const act = meant(desk, event);
  if (!act) return;
  event.preventDefault();
  act();
}

/** @param {Desk} desk @param {KeyboardEvent} event @returns {(() => void) | undefined} */
function meant(desk, { target, key, ctrlKey, metaKey, shiftKey }) {
  if (!desk.name) return undefined;
  const command = ctrlKey || metaKey;
  if (command && key === 's') return () => void desk.attempt(() => desk.saved());
  // A field undoes its own typing.
  if (/** @type {HTMLElement} */ (target).closest('input, textarea, select')) return undefined;
  if (command && key.toLowerCase() === 'z') return () => (shiftKey ? desk.draft.redo() : desk.draft.undo());
  if (command && key === 'y') return () => desk.draft.redo();
  if ((key !== 'Delete' && key !== 'Backspace') || desk.views.chosen !== 'drawing') return undefined;
  const { node, connection } = desk.selected;
  if (node !== undefined) return () => desk.draft.remove(node);
  return connection === undefined ? undefined : () => desk.draft.disconnect(connection);
}

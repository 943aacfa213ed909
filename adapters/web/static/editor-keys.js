/**
 * The keys of the workflow editor: save, undo, redo, and delete what is selected in the drawing.
 *
 * @module editor-keys
 */

/** @typedef {import('./editor.js').Editor} Editor */

/** @param {Editor} editor @param {KeyboardEvent} event */
export function pressed(editor, event) {
  const act = meant(editor, event);
  if (!act) return;
  event.preventDefault();
  act();
}

/** @param {Editor} editor @param {KeyboardEvent} event @returns {(() => void) | undefined} */
function meant(editor, { target, key, ctrlKey, metaKey, shiftKey }) {
  if (!editor.name) return undefined;
  const command = ctrlKey || metaKey;
  if (command && key === 's') return () => void editor.attempt(() => editor.saved());
  // A field undoes its own typing.
  if (/** @type {HTMLElement} */ (target).closest('input, textarea, select')) return undefined;
  if (command && key.toLowerCase() === 'z') return () => (shiftKey ? editor.draft.redo() : editor.draft.undo());
  if (command && key === 'y') return () => editor.draft.redo();
  if ((key !== 'Delete' && key !== 'Backspace') || editor.views.chosen !== 'drawing') return undefined;
  const { node, connection } = editor.selected;
  if (node !== undefined) return () => editor.draft.remove(node);
  return connection === undefined ? undefined : () => editor.draft.disconnect(connection);
}

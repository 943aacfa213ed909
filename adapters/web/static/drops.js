/**
 * Takes files that are dropped on the page or pasted into it. A browser would leave the page to show a
 * dropped file.
 *
 * @module drops
 */

import { t } from './texts.js';

export const NO_FILES = t('files.none');

/** @param {(files: File[]) => void} take */
export function takeFiles(take) {
  window.addEventListener('dragover', (event) => {
    if (isForText(event)) return;
    event.preventDefault();
    // Without an effect the browser sends no drop event, and no line could be shown.
    if (event.dataTransfer) event.dataTransfer.dropEffect = hasFiles(event.dataTransfer) ? 'copy' : 'none';
  });
  window.addEventListener('drop', (event) => {
    if (isForText(event)) return;
    event.preventDefault();
    if (hasFiles(event.dataTransfer)) take([...(event.dataTransfer?.files ?? [])]);
  });
  window.addEventListener('paste', (event) => {
    const content = event.clipboardData;
    // Text copied from an office program also contains a picture of itself.
    if (!hasFiles(content) || content?.types.includes('text/plain')) return;
    event.preventDefault();
    take([...(content?.files ?? [])]);
  });
}

/** @param {DragEvent} event whether text is dragged into a field, which the browser handles */
function isForText({ dataTransfer, target }) {
  return !hasFiles(dataTransfer) && target instanceof Element && target.closest('textarea, input') !== null;
}

/** @param {DataTransfer | null} content */
function hasFiles(content) {
  return content?.types.includes('Files') ?? false;
}

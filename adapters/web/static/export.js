/**
 * A conversation as a file: the gateway's line holds its content, and a press saves it.
 *
 * @module export
 */

import { el } from './dom.js';
import { t } from './texts.js';

/** @type {Record<string, { type: string, name: string }>} */
const KINDS = {
  'export-md': { type: 'text/markdown', name: 'conversation.md' },
  'export-jsonl': { type: 'application/jsonl', name: 'conversation.jsonl' },
};

/** @param {import('./items.js').Item} item @returns {HTMLElement | null} null for any other line */
export function exported(item) {
  const kind = KINDS[item.code];
  if (!kind) return null;
  const button = el('button', { type: 'button', class: 'choice' }, t('answer.export_save', { file: kind.name }));
  button.addEventListener('click', () => {
    const link = el('a', { download: kind.name, href: URL.createObjectURL(new Blob([item.text], { type: kind.type })) });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  });
  return el('div', {}, el('p', {}, t('answer.export')), button);
}

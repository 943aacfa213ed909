/**
 * The blocks of an answer that are more than one element: code with its copy button, tables that scroll
 * separately, headings below the page's own. The same for answers in progress and finished ones.
 *
 * @module blocks
 */

import { copyButton, el } from './dom.js';
import { t } from './texts.js';

/** @param {string} code @param {string} language as the answer names it, or empty */
export function codeBlock(code, language) {
  const label = el('span', { class: 'language' }, language || t('code.text'));
  const header = el('div', { class: 'code-head' }, label, copyButton(t('code.copy'), () => code));
  const body = el('pre', { tabindex: 0, 'aria-label': t('code.label', { language: language || t('code.text') }) }, el('code', { dir: 'ltr' }, code));
  return el('div', { class: 'code-block', dir: 'ltr' }, header, body);
}

/** @param {number} level 1 to 6, as the answer counts @param {Node[]} inside */
export function heading(level, inside) {
  // The page itself uses the first two levels.
  const tag = /** @type {'h3'} */ (`h${Math.min(6, level + 2)}`);
  return el(tag, { dir: 'auto', class: `level-${level}` }, ...inside);
}

/**
 * Gives the headings of an answer levels without a gap, for any levels in the answer: a
 * screen reader's list of headings must not skip one. Their size keeps the answer's level.
 *
 * @param {Element} target
 */
export function orderHeadings(target) {
  /** @type {number[]} */
  const above = [];
  for (const node of target.querySelectorAll('[class^="level-"]')) {
    const level = Number(node.className.slice('level-'.length));
    while (above.length > 0 && above[above.length - 1] >= level) above.pop();
    above.push(level);
    node.setAttribute('aria-level', String(Math.min(6, above.length + 2)));
  }
}

/** @param {HTMLTableElement} table */
export function tableRegion(table) {
  return el('div', { class: 'table', role: 'region', 'aria-label': t('answer.table'), tabindex: 0 }, table);
}

/** @param {boolean} checked */
export function taskBox(checked) {
  return el('input', { type: 'checkbox', disabled: true, checked, 'aria-label': t('answer.task') });
}

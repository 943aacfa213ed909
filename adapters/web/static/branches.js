/**
 * The controls of a turn: answer again, edit, and the way to its earlier versions.
 *
 * @module branches
 */

import { el } from './dom.js';
import { t } from './texts.js';

/** @typedef {import('./items.js').Item} Item */
/** @typedef {import('./rows.js').RowActions} RowActions */

/** @param {string} words @param {() => void} act @param {string} [label] @param {boolean} [off] */
function button(words, act, label, off = false) {
  const node = el('button', { type: 'button', class: 'quiet', 'aria-label': label, disabled: off }, words);
  node.addEventListener('click', act);
  return node;
}

/**
 * Shows or hides the row, and marks one that was taken out.
 *
 * @param {HTMLElement} row @param {Item} item @param {RowActions} actions
 */
export function showVersion(row, item, actions) {
  const { hidden, out } = actions.versions.of(item);
  row.hidden = hidden;
  row.classList.toggle('out', out);
}

/** @param {Item} item an answer or a message @param {RowActions} actions @returns {HTMLElement[]} */
export function branchControls(item, actions) {
  const { out, index, count, newest } = actions.versions.of(item);
  if (out) return [el('span', { class: 'state' }, t('row.out'))];
  const nodes = [];
  if (item.role === 'assistant' && count > 1) {
    const turn = (/** @type {number} */ step) => () => actions.versions.turn(item, step);
    nodes.push(el('span', { class: 'versions', role: 'group', 'aria-label': t('row.versions') },
      button('‹', turn(-1), t('row.earlier'), index <= 0), t('row.version', { number: index + 1, count }), button('›', turn(1), t('row.later'), index >= count - 1)));
  }
  if (newest && index === count - 1) {
    if (item.role === 'assistant') nodes.push(button(t('row.regenerate'), () => actions.regenerate()));
    else if (item.text && item.files.length === 0) nodes.push(button(t('row.edit'), () => actions.edit(item)));
  }
  return nodes;
}

/**
 * The work on an answer, inside its row: one line that opens into the list of its steps. While
 * the answer is made the line shows the present step.
 *
 * @module work
 */

import { el } from './dom.js';
import { t } from './texts.js';

/**
 * @typedef {import('./items.js').Item} Item
 * @typedef {import('./steps.js').Step} Step
 */

/** @type {Record<Step['state'], [string, string]>} the mark, and its text */
const MARKS = { running: ['…', t('steps.running')], asking: ['?', t('steps.asking')], done: ['✓', t('steps.done')], failed: ['✗', t('steps.failed')] };

/** @type {WeakMap<Element, Step>} which step a line shows: steps are replaced, never changed */
const DRAWN = new WeakMap();

/**
 * Updates the part of a row that shows the work from its item: none where there was none.
 *
 * @param {HTMLElement} body of the row
 * @param {Item} item
 */
export function showWork(body, item) {
  const known = /** @type {HTMLDetailsElement | null} */ (body.querySelector(':scope > .work'));
  if (item.steps.length === 0) {
    known?.remove();
    return;
  }
  const part = known ?? build(body, item);
  const line = /** @type {HTMLElement} */ (part.querySelector('summary > .now'));
  const words = (item.streaming && item.activity) || t('steps.how', { count: item.steps.length });
  line.classList.toggle('activity', item.streaming && item.activity !== '');
  if (line.textContent !== words) line.textContent = words;
  const list = /** @type {HTMLElement} */ (part.lastElementChild);
  item.steps.forEach((step, index) => {
    const shown = list.children[index];
    if (shown && DRAWN.get(shown) === step) return;
    const line = stepLine(step);
    DRAWN.set(line, step);
    if (shown) shown.replaceWith(line);
    else list.append(line);
  });
  while (list.children.length > item.steps.length) list.lastElementChild?.remove();
}

/** @param {HTMLElement} body @param {Item} item @returns {HTMLDetailsElement} */
function build(body, item) {
  // Announced politely to a screen reader; the answer itself only when it is complete.
  const now = el('span', { class: 'now', dir: 'auto', 'aria-live': 'polite' });
  const part = el('details', { class: 'work', 'data-testid': 'work', open: item.workOpen }, el('summary', {}, now), el('ol', { class: 'steps' }));
  part.addEventListener('toggle', () => {
    item.workOpen = part.open;
  });
  const prose = /** @type {HTMLElement} */ (body.querySelector(':scope > .prose'));
  prose.before(part);
  return part;
}

/** @param {Step} step */
function stepLine({ kind, label, words, state }) {
  const [mark, said] = MARKS[state];
  return el(
    'li',
    { class: 'step', 'data-kind': kind, 'data-state': state },
    el('span', { class: 'sign', 'aria-hidden': 'true' }, mark),
    el('span', { class: 'visually-hidden' }, `${said}: `),
    el('span', { class: 'what', dir: 'auto' }, label && el('code', { dir: 'auto' }, label), label && words ? ' ' : '', words),
  );
}

/**
 * A finished answer: the gateway's HTML, parsed and rebuilt from the page's own elements. Only the elements
 * listed here are built, and only attributes read by name are kept, so not even a bug in the
 * gateway's renderer could make an answer's markup active. The parsed document itself is never shown.
 *
 * @module finished
 */

import { codeBlock, heading, orderHeadings, tableRegion, taskBox } from './blocks.js';
import { el } from './dom.js';
import { safeUrl, wordedLink } from './links.js';

/** Deeper elements than this are shown as their text. */
const DEEPEST = 64;

/** Elements that are rebuilt unchanged, with these attributes. @type {Record<string, Record<string, string>>} */
const PLAIN = {
  p: { dir: 'auto' },
  blockquote: { dir: 'auto' },
  ul: { dir: 'auto' },
  em: {},
  strong: {},
  s: {},
  code: { dir: 'ltr' },
  br: {},
  hr: {},
  thead: {},
  tbody: {},
  tr: {},
};

/** What each target shows now, as HTML. @type {WeakMap<Element, string>} */
const shown = new WeakMap();

/**
 * Shows `html` in `target`, in place of its content.
 *
 * @param {Element} target
 * @param {string} html
 */
export function showFinished(target, html) {
  if (shown.get(target) === html) return;
  shown.set(target, html);
  const parsed = new DOMParser().parseFromString(html, 'text/html');
  target.replaceChildren(...built(parsed.body, 0));
  orderHeadings(target);
}

/** @param {Node} parent @param {number} depth @returns {Node[]} the rebuilt children of `parent` */
function built(parent, depth) {
  if (depth > DEEPEST) return [document.createTextNode(parent.textContent ?? '')];
  return [...parent.childNodes].flatMap((child) => {
    if (child.nodeType === Node.TEXT_NODE) return [document.createTextNode(child.nodeValue ?? '')];
    return child instanceof Element ? element(child, depth + 1) : [];
  });
}

/** @param {Element} source @param {number} depth @returns {Node[]} */
function element(source, depth) {
  const name = source.localName;
  if (Object.hasOwn(PLAIN, name)) {
    return [el(/** @type {'p'} */ (name), PLAIN[name], ...built(source, depth))];
  }
  const build = Object.hasOwn(SPECIAL, name) ? SPECIAL[name] : built;
  return build(source, depth);
}

/** @type {Record<string, (source: Element, depth: number) => Node[]>} */
const SPECIAL = {
  a: link,
  del: (source, depth) => [el('s', {}, ...built(source, depth))],
  h1: (source, depth) => [heading(1, built(source, depth))],
  h2: (source, depth) => [heading(2, built(source, depth))],
  h3: (source, depth) => [heading(3, built(source, depth))],
  h4: (source, depth) => [heading(4, built(source, depth))],
  h5: (source, depth) => [heading(5, built(source, depth))],
  h6: (source, depth) => [heading(6, built(source, depth))],
  li: item,
  ol: orderedList,
  pre: code,
  table: (source, depth) => [tableRegion(el('table', {}, ...built(source, depth)))],
  td: (source, depth) => [el('td', { dir: 'auto', class: alignOf(source) }, ...built(source, depth))],
  th: (source, depth) => [el('th', { dir: 'auto', class: alignOf(source), scope: 'col' }, ...built(source, depth))],
};

/** @param {Element} source a cell @returns {string | undefined} */
function alignOf(source) {
  return { center: 'center', right: 'end' }[source.getAttribute('align') ?? ''];
}

/** @param {Element} source @param {number} depth */
function link(source, depth) {
  const inside = built(source, depth);
  const url = safeUrl(source.getAttribute('href') ?? '');
  return url ? [wordedLink(url, inside)] : inside;
}

/** @param {Element} source @param {number} depth */
function item(source, depth) {
  const inside = built(source, depth);
  const first = inside[0]?.nodeName === 'P' ? inside[0].firstChild : inside[0];
  const task = first instanceof Text ? /^\[([ xX])\] /.exec(first.data) : null;
  if (!task) return [el('li', {}, ...inside)];
  /** @type {Text} */ (first).deleteData(0, task[0].length);
  return [el('li', { class: 'task' }, taskBox(task[1] !== ' '), ...inside)];
}

/** @param {Element} source @param {number} depth */
function orderedList(source, depth) {
  const start = Number.parseInt(source.getAttribute('start') ?? '1', 10);
  return [el('ol', { dir: 'auto', start: start >= 0 && start !== 1 ? start : undefined }, ...built(source, depth))];
}

/** @param {Element} source */
function code(source) {
  const named = /(?:^|\s)language-(\S{1,30})/.exec(source.querySelector('code')?.getAttribute('class') ?? '');
  return [codeBlock(source.textContent ?? '', named ? named[1] : '')];
}

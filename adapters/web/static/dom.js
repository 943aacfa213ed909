/**
 * Small helpers to build DOM nodes. Text only becomes text nodes, so nothing written by a person
 * or a model can turn into markup. Not a framework: no state, no diffing.
 *
 * @module dom
 */

import { t } from './texts.js';

const SVG = 'http://www.w3.org/2000/svg';

/**
 * @typedef {Node | string | null | undefined | false} Child
 */

/**
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Record<string, string | boolean | number | undefined>} [attributes] plain attributes; false and undefined are left out
 * @param {...Child} children strings become text nodes
 * @returns {HTMLElementTagNameMap[K]}
 */
export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === undefined) continue;
    node.setAttribute(name, value === true ? '' : String(value));
  }
  for (const child of children) if (child) node.append(child);
  return node;
}

/**
 * @param {string} name an id of the sprite in index.html, without `icon-`
 * @returns {SVGSVGElement}
 */
export function icon(name) {
  const svg = document.createElementNS(SVG, 'svg');
  svg.setAttribute('class', 'icon');
  svg.setAttribute('aria-hidden', 'true');
  const use = document.createElementNS(SVG, 'use');
  use.setAttribute('href', `#icon-${name}`);
  svg.append(use);
  return svg;
}

/**
 * @param {string} id
 * @returns {any} the element; a missing one is a broken page and throws at once
 */
export function byId(id) {
  const node = document.getElementById(id);
  if (!node) throw new Error(`index.html has no element #${id}`);
  return node;
}

/**
 * A button that copies the result of `text()` and confirms it briefly.
 *
 * @param {string} label
 * @param {() => string} text
 * @returns {HTMLButtonElement}
 */
export function copyButton(label, text) {
  const words = el('span', {}, t('copy.copy'));
  const button = el('button', { type: 'button', class: 'quiet', 'aria-label': label }, icon('copy'), words);
  button.addEventListener('click', async () => {
    const copied = await copy(text());
    words.textContent = copied ? t('copy.copied') : t('copy.failed');
    button.dataset.done = String(copied);
    setTimeout(() => {
      words.textContent = t('copy.copy');
      delete button.dataset.done;
    }, 1600);
  });
  return button;
}

/**
 * @param {string} text
 * @returns {Promise<boolean>} whether the browser took it
 */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text);
  }
}

/**
 * The fallback for pages without the clipboard interface (plain http on a home network).
 *
 * @param {string} text
 */
function copyBySelection(text) {
  const area = el('textarea', { class: 'visually-hidden', 'aria-hidden': 'true', tabindex: -1 });
  area.value = text;
  document.body.append(area);
  const before = /** @type {HTMLElement | null} */ (document.activeElement);
  area.select();
  const copied = document.execCommand('copy');
  area.remove();
  before?.focus();
  return copied;
}

/**
 * Loads the workflow editor with its texts and its style, when it is first opened.
 *
 * @module editor-opening
 */

import { el } from './dom.js';
import { addTexts, language } from './texts.js';

/** @param {ConstructorParameters<typeof import('./editor.js').Editor>[0]} options */
export async function opened(options) {
  const texts = fetch(new URL(`editor.${language}.json`, import.meta.url)).then((response) => response.json());
  const link = el('link', { rel: 'stylesheet', href: new URL('editor.css', import.meta.url).href });
  const styled = new Promise((done, failed) => {
    link.addEventListener('load', done);
    link.addEventListener('error', failed);
  });
  document.head.append(link);
  // The texts first: the modules name them when they are loaded.
  addTexts(await texts);
  const [{ Editor }] = await Promise.all([import('./editor.js'), styled]);
  return new Editor(options);
}

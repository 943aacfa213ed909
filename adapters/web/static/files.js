/**
 * The files of a message or an answer: pictures inline, sound with a player, everything else as a row to
 * download. The gateway says what a file is from its bytes, and a link to it is the access.
 *
 * @module files
 */

import { el, icon } from './dom.js';
import { measure, t } from './texts.js';

/**
 * @typedef {object} ShownFile
 * @property {string} [kind] `image`, `audio`, `voice`, `video` or `file`
 * @property {string} name
 * @property {number} size bytes
 * @property {string} [about]
 * @property {string} [caption]
 * @property {string} [url] empty until it is stored
 * @property {string} [handle] of an upload
 * @property {string} [thumb] a small picture, while this page still has it
 */

/** Only links of this gateway. */
const OWN = /^\/f\/[\w-]+\/[^/]+$/;

/** What was made for a list of files: a row that is drawn again shows it again, without loading it again. @type {WeakMap<ShownFile[], HTMLElement>} */
const blocks = new WeakMap();

/**
 * Shows the files below the words, once: pictures that are loaded and a player that plays stay as they are.
 *
 * @param {HTMLElement} after the words
 * @param {ShownFile[]} files
 */
export function showFiles(after, files) {
  const known = after.parentElement?.querySelector(':scope > .files');
  if (known || files.length === 0) return;
  after.after(fileBlock(files));
}

/** @param {ShownFile[]} files @returns {HTMLElement} */
export function fileBlock(files) {
  const block = blocks.get(files) ?? el('div', { class: 'files', 'data-testid': 'files' }, ...files.map(figure));
  blocks.set(files, block);
  return block;
}

/** @param {ShownFile} given */
function figure(given) {
  const file = { ...given, name: given.name || t('files.file'), url: OWN.test(given.url ?? '') ? given.url : '' };
  const caption = file.caption && el('figcaption', { dir: 'auto' }, file.caption);
  return el('figure', { class: `file ${file.kind ?? ''}` }, shown(file), caption);
}

/** @param {ShownFile} file @returns {HTMLElement} */
function shown(file) {
  if (!file.url) return file.thumb ? el('img', { src: file.thumb, alt: file.name }) : row(file);
  if (file.kind === 'image') return picture(file);
  if (file.kind === 'audio' || file.kind === 'voice' || file.kind === 'video') {
    const player = el(file.kind === 'video' ? 'video' : 'audio', { controls: true, preload: 'metadata', src: file.url, 'aria-label': file.name });
    player.addEventListener('error', () => player.replaceWith(row(file)));
    return player;
  }
  return row(file);
}

/** @param {ShownFile} file */
function picture(file) {
  const words = file.caption || file.name;
  const image = el('img', { src: file.url, alt: words, loading: 'lazy' });
  const button = el('button', { type: 'button', class: 'enlarge', 'aria-label': t('files.enlarge', { name: words }) }, image);
  // One that cannot be shown, because its link is too old, can still be asked for by its name.
  image.addEventListener('error', () => button.replaceWith(row(file)));
  button.addEventListener('click', () => enlarge(file, words));
  return button;
}

/** @param {ShownFile} file @param {string} words */
function enlarge(file, words) {
  const close = el('button', { type: 'button', class: 'tool', 'aria-label': t('files.close') }, icon('close'));
  const image = el('img', { src: file.url, alt: words });
  const dialog = el('dialog', { class: 'picture', 'aria-label': words }, image, el('div', { class: 'bar' }, row(file), close));
  dialog.addEventListener('click', ({ target }) => target === dialog && dialog.close());
  close.addEventListener('click', () => dialog.close());
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

/** @param {ShownFile} file */
function row(file) {
  const name = el('span', { class: 'name', dir: 'auto' }, file.name);
  const more = [file.about, sizeOf(file.size)].filter(Boolean).join(', ');
  const link = file.url ? { href: file.url, download: file.name } : {};
  return el(file.url ? 'a' : 'span', { class: 'download', ...link }, icon(file.url ? 'down' : 'file'), name, el('span', { class: 'size' }, more));
}

/** @param {number} bytes */
export function sizeOf(bytes) {
  if (bytes < 1000) return measure('byte', bytes, 0, 'long');
  if (bytes < 999_500) return measure('kilobyte', bytes / 1000);
  return measure('megabyte', bytes / 1e6, bytes < 1e7 ? 1 : 0);
}

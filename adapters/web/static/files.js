/**
 * The files of an entry: pictures inline, sound with a player, everything else as a row to download. The
 * gateway says what a file is from its bytes, and a link to it is the access.
 *
 * @module files
 */

import { el, icon } from './dom.js';

/**
 * @typedef {object} SentFile
 * @property {string} kind `image`, `audio`, `video` or `file`
 * @property {string} name
 * @property {number} size bytes
 * @property {string} about
 * @property {string} caption
 * @property {string} url
 */

/** Only links of this gateway. */
const OWN = /^\/f\/[\w-]+\/[^/]+$/;

/**
 * Shows the files below the words, once: pictures that are loaded and a player that plays stay as they are.
 *
 * @param {HTMLElement} after the words
 * @param {SentFile[]} files
 */
export function showFiles(after, files) {
  const known = after.parentElement?.querySelector(':scope > .files');
  if (known || files.length === 0) return;
  const shown = files.filter(({ url }) => OWN.test(url)).map(figure);
  after.after(el('div', { class: 'files', 'data-testid': 'files' }, ...shown));
}

/** @param {SentFile} file */
function figure(file) {
  const caption = file.caption && el('figcaption', { dir: 'auto' }, file.caption);
  return el('figure', { class: `file ${file.kind}` }, shown(file), caption);
}

/** @param {SentFile} file @returns {HTMLElement} */
function shown(file) {
  if (file.kind === 'image') return picture(file);
  if (file.kind === 'audio' || file.kind === 'video') {
    const player = el(file.kind, { controls: true, preload: 'metadata', src: file.url, 'aria-label': file.name });
    player.addEventListener('error', () => player.replaceWith(row(file)));
    return player;
  }
  return row(file);
}

/** @param {SentFile} file */
function picture(file) {
  const words = file.caption || file.name;
  const image = el('img', { src: file.url, alt: words, loading: 'lazy' });
  const button = el('button', { type: 'button', class: 'enlarge', 'aria-label': `Enlarge the picture: ${words}` }, image);
  // One that cannot be shown, because its link is too old, can still be asked for by its name.
  image.addEventListener('error', () => button.replaceWith(row(file)));
  button.addEventListener('click', () => enlarge(file, words));
  return button;
}

/** @param {SentFile} file @param {string} words */
function enlarge(file, words) {
  const close = el('button', { type: 'button', class: 'tool', 'aria-label': 'Close the picture' }, icon('close'));
  const image = el('img', { src: file.url, alt: words });
  const dialog = el('dialog', { class: 'picture', 'aria-label': words }, image, el('div', { class: 'bar' }, row(file), close));
  dialog.addEventListener('click', ({ target }) => target === dialog && dialog.close());
  close.addEventListener('click', () => dialog.close());
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

/** @param {SentFile} file */
function row(file) {
  const name = el('span', { class: 'name', dir: 'auto' }, file.name);
  const more = [file.about, sizeOf(file.size)].filter(Boolean).join(', ');
  return el('a', { class: 'download', href: file.url, download: file.name }, icon('down'), name, el('span', { class: 'size' }, more));
}

/** @param {number} bytes */
function sizeOf(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  return bytes < 1e6 ? `${Math.round(bytes / 1000)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

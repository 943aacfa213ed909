/**
 * Shows the files of a message: pictures small, and whole on request; other files as a line with a download.
 * Their bytes are fetched with the access token, once for each file.
 *
 * @module attached
 */

import { byId, el, icon } from './dom.js';

/**
 * @typedef {object} FileRef a file of a message
 * @property {string} [id] of a stored file; without it the file is on its way
 * @property {string} [kind]
 * @property {string} name
 * @property {string} mime
 * @property {number} size bytes
 * @property {string} [about] what is known of the content
 * @property {string} [handle] of an upload
 * @property {string} [thumb] a small picture, while this page still has it
 *
 * @typedef {(id: string) => Promise<Response>} Fetch fetches a stored file of this chat
 */

const KEPT = 60;
/** Pictures that were fetched, as data URLs, by the file's id: the page's policy allows no other local ones. @type {Map<string, string>} */
const pictures = new Map();

/** @param {number} bytes */
export function sizeWords(bytes) {
  if (bytes < 1000) return `${bytes} bytes`;
  return bytes < 999_500 ? `${Math.round(bytes / 1000)} KB` : `${(bytes / 1_000_000).toFixed(bytes < 10_000_000 ? 1 : 0)} MB`;
}

/** @param {Blob} blob @returns {Promise<string>} a data URL */
export function pictureUrl(blob) {
  return new Promise((done) => {
    const reader = new FileReader();
    reader.addEventListener('load', () => done(String(reader.result)));
    reader.addEventListener('error', () => done(''));
    reader.readAsDataURL(blob);
  });
}

/** @param {FileRef[]} files @param {Fetch} get */
export function fileBlock(files, get) {
  return el('div', { class: 'attached' }, ...files.map((file) => (isPicture(file) ? picture(file, get) : line(file, get))));
}

/** @param {FileRef} file */
function isPicture(file) {
  return Boolean(file.thumb || (file.id && file.kind === 'image'));
}

/** @param {FileRef} file @param {Fetch} get */
function picture(file, get) {
  const name = file.name || 'Picture';
  const image = el('img', { alt: name, 'data-testid': 'picture' });
  const button = el('button', { type: 'button', class: 'picture', 'aria-label': `Show ${name}`, disabled: !file.id }, image);
  const { id, thumb } = file;
  const known = id ? pictures.get(id) : thumb;
  if (known) image.src = known;
  else if (id) {
    void load(id, get).then((url) => {
      if (url) image.src = url;
      else button.replaceWith(line(file, get));
    });
  }
  button.addEventListener('click', () => enlarge(image.src, name));
  return button;
}

/** @param {string} id @param {Fetch} get @returns {Promise<string>} empty if it is gone */
async function load(id, get) {
  try {
    const response = await get(id);
    if (!response.ok || !response.headers.get('Content-Type')?.startsWith('image/')) return '';
    const url = await pictureUrl(await response.blob());
    pictures.set(id, url);
    if (pictures.size > KEPT) pictures.delete(pictures.keys().next().value ?? '');
    return url;
  } catch {
    return '';
  }
}

/** @param {string} url @param {string} name */
function enlarge(url, name) {
  /** @type {HTMLDialogElement} */
  const dialog = byId('lightbox');
  const close = el('button', { type: 'button', class: 'tool', 'aria-label': 'Close' }, icon('close'));
  close.addEventListener('click', () => dialog.close());
  dialog.setAttribute('aria-label', name);
  dialog.replaceChildren(el('img', { src: url, alt: name }), close);
  dialog.onclick = (event) => event.target === dialog && dialog.close();
  dialog.showModal();
}

/** @param {FileRef} file @param {Fetch} get */
function line(file, get) {
  const { id, name, about, size } = file;
  const words = [about, sizeWords(size)].filter(Boolean).join(', ');
  const text = el('span', { class: 'file-words' }, el('span', { class: 'file-name', dir: 'auto' }, name || 'File'), el('span', { class: 'file-about' }, words));
  const save = el('button', { type: 'button', class: 'quiet', 'aria-label': `Download ${name || 'the file'}` }, icon('down'));
  save.addEventListener('click', async () => {
    const gone = await download(id ?? '', name, get);
    if (gone) text.lastElementChild?.replaceChildren(gone);
  });
  return el('div', { class: 'file-line', 'data-testid': 'file' }, icon('file'), text, id ? save : undefined);
}

/** @param {string} id @param {string} name @param {Fetch} get @returns {Promise<string>} why not; empty if it was saved */
async function download(id, name, get) {
  try {
    const response = await get(id);
    if (!response.ok) return (await response.text()).trim();
    const url = URL.createObjectURL(await response.blob());
    el('a', { href: url, download: name || 'file' }).click();
    setTimeout(() => URL.revokeObjectURL(url), 60_000);
    return '';
  } catch {
    return 'The gateway could not be reached.';
  }
}

/**
 * The files that will go with the next message: chosen, pasted or dropped, uploaded at once, shown above the
 * field, and removed on request. The message itself is sent by app.js.
 *
 * @module uploads
 */

import { byId, el, icon } from './dom.js';
import { NO_FILES, takeFiles } from './drops.js';
import { sizeOf } from './files.js';
import { t } from './texts.js';

/**
 * @typedef {object} Pending a file of the next message
 * @property {File} file
 * @property {string} handle empty until it is uploaded
 * @property {string} thumb a small picture as a data URL; empty for other files
 * @property {AbortController} upload
 *
 * @typedef {{ handle: string, name: string, mime: string, size: number }} Uploaded
 */

const THUMB_PX = 256;

export class Uploads {
  /**
   * @param {object} options
   * @param {() => { file_bytes: number, files: number }} options.limits
   * @param {import('./signin.js').SignIn} options.signIn
   * @param {(words: string) => void} options.onTrouble
   * @param {() => void} options.onChange the list, or the progress of an upload, has changed
   */
  constructor({ limits, signIn, onTrouble, onChange }) {
    this.limits = limits;
    this.signIn = signIn;
    this.onTrouble = onTrouble;
    this.onChange = onChange;
    /** @type {Pending[]} */
    this.pending = [];
    this.chat = '';
    this.shown = byId('uploads');
    for (const name of ['attach', 'camera']) {
      /** @type {HTMLInputElement} */
      const input = byId(`${name}-input`);
      byId(name).addEventListener('click', () => input.click());
      input.addEventListener('change', () => {
        this.add([...(input.files ?? [])]);
        input.value = '';
      });
    }
    takeFiles((given) => {
      if (signIn.open) signIn.say(NO_FILES);
      else if (limits().file_bytes) this.add(given);
      else onTrouble(NO_FILES);
    });
  }

  /** @returns {'none' | 'busy' | 'ready'} whether there are files, and whether all of them are uploaded */
  get state() {
    if (this.pending.length === 0) return 'none';
    return this.pending.some((one) => !one.handle) ? 'busy' : 'ready';
  }

  /** @param {string} path @param {RequestInit} request */
  #fetch(path, request) {
    return fetch(`/files/${this.chat}${path}`, { ...request, headers: { Authorization: `Bearer ${this.signIn.token}` } });
  }

  /** The gateway's limits are known, and the chat of this window: another window may show another one. @param {string} chat */
  refresh(chat) {
    this.chat = chat;
    for (const name of ['attach', 'camera']) byId(name).hidden = !this.limits().file_bytes;
  }

  /** @param {File[]} files */
  add(files) {
    const { file_bytes: most, files: count } = this.limits();
    for (const file of files) {
      if (this.pending.length >= count) return this.onTrouble(t('files.too_many', { count }));
      if (file.size > most) this.onTrouble(t('files.too_large', { file: file.name, size: sizeOf(most) }));
      else void this.#begin(file);
    }
  }

  /** @returns {(Uploaded & { thumb: string })[]} the files for a message; the list is empty afterwards */
  take() {
    const taken = this.pending.map(({ file, handle, thumb }) => ({ handle, name: file.name.slice(0, 200), mime: plainType(file.type), size: file.size, thumb }));
    this.pending = [];
    this.#show();
    return taken;
  }

  /** @param {File} file */
  async #begin(file) {
    const one = { file, handle: '', thumb: '', upload: new AbortController() };
    this.pending.push(one);
    this.#show();
    void thumbnail(file).then((url) => {
      one.thumb = url;
      if (url) this.#show();
    });
    let words = '';
    try {
      const response = await this.#fetch('', { method: 'POST', body: file, signal: one.upload.signal });
      if (response.ok) one.handle = (await response.json()).handle;
      else words = (await response.text()).trim();
    } catch {
      words = one.upload.signal.aborted ? '' : t('files.unreachable');
    }
    if (!one.handle) {
      if (words) this.onTrouble(t('files.failed', { file: file.name || t('files.file'), why: words }));
      this.pending = this.pending.filter((other) => other !== one);
    }
    this.#show();
  }

  /** @param {Pending} one */
  #remove(one) {
    one.upload.abort();
    this.pending = this.pending.filter((other) => other !== one);
    this.#show();
    byId('input').focus();
  }

  #show() {
    this.shown.hidden = this.pending.length === 0;
    this.shown.replaceChildren(...this.pending.map((one) => this.#chip(one)));
    this.onChange();
  }

  /** @param {Pending} one */
  #chip(one) {
    const name = one.file.name || t('files.picture');
    const remove = el('button', { type: 'button', class: 'remove', 'aria-label': t('files.remove', { file: name }) }, icon('close'));
    remove.addEventListener('click', () => this.#remove(one));
    const look = one.thumb ? el('img', { src: one.thumb, alt: '' }) : icon('file');
    const words = one.handle ? sizeOf(one.file.size) : t('files.uploading');
    const text = el('span', { class: 'file-words' }, el('span', { class: 'file-name', dir: 'auto' }, name), el('span', { class: 'file-about' }, words));
    return el('div', { class: 'chip-file', role: 'listitem', 'data-testid': 'pending-file', 'data-ready': String(Boolean(one.handle)) }, look, text, remove);
  }
}

/** @param {string} type a browser may give any text */
function plainType(type) {
  return /^[a-z0-9.+-]+\/[a-z0-9.+-]+$/i.test(type) && type.length <= 100 ? type : '';
}

/** @param {File} file @returns {Promise<string>} a small picture of it; empty if it is none */
async function thumbnail(file) {
  if (!file.type.startsWith('image/') || file.type.includes('svg')) return '';
  try {
    const bitmap = await createImageBitmap(file);
    const scale = Math.min(1, THUMB_PX / Math.max(bitmap.width, bitmap.height));
    const canvas = el('canvas', { width: Math.ceil(bitmap.width * scale), height: Math.ceil(bitmap.height * scale) });
    canvas.getContext('2d')?.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
    bitmap.close();
    return await new Promise((done) => canvas.toBlob((blob) => done(blob ? pictureUrl(blob) : ''), 'image/webp', 0.85));
  } catch {
    return '';
  }
}

/** @param {Blob} blob @returns {Promise<string>} a data URL: the page's policy allows no other local ones */
function pictureUrl(blob) {
  return new Promise((done) => {
    const reader = new FileReader();
    reader.addEventListener('load', () => done(String(reader.result)));
    reader.addEventListener('error', () => done(''));
    reader.readAsDataURL(blob);
  });
}

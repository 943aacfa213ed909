/**
 * The field for writing a message: it grows with the text, keeps a draft, sends with Enter.
 * `onSend` gets the text; composer.js does not know how it is sent.
 *
 * @module composer
 */

import { byId } from './dom.js';
import { read, write } from './settings.js';
import { t } from './texts.js';

/** From this share of the maximum length on, the remaining characters are shown. */
const COUNT_FROM = 0.8;

export class Composer {
  /**
   * @param {{ limit: () => number, files: () => 'none' | 'busy' | 'ready', onSend: (text: string) => void }} options
   *   `limit` in characters; `files` go with the text, which may then be empty
   */
  constructor({ limit, files, onSend }) {
    this.limit = limit;
    this.files = files;
    this.onSend = onSend;
    /** @type {HTMLTextAreaElement} */
    this.input = byId('input');
    this.counter = byId('counter');
    /** @type {HTMLButtonElement} */
    this.button = byId('send');
    this.input.value = read('draft', sessionStorage) ?? '';
    byId('composer').addEventListener('submit', (/** @type {Event} */ event) => {
      event.preventDefault();
      this.#submit();
    });
    this.input.addEventListener('input', () => this.#changed());
    this.input.addEventListener('keydown', (event) => {
      // While an input method composes a word, Enter belongs to the word.
      if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      this.#submit();
    });
    // A press on the card around the field focuses the field.
    byId('composer-card').addEventListener('click', (/** @type {MouseEvent} */ event) => {
      if (event.target === event.currentTarget) this.input.focus();
    });
    this.#changed();
  }

  focus() {
    this.input.focus();
  }

  /** @param {string} text shown for the author to change or send */
  fill(text) {
    this.input.value = text;
    this.#changed();
    this.input.focus();
  }

  /** The limit may have changed. */
  refresh() {
    this.#changed();
  }

  #submit() {
    const text = this.input.value.trim();
    if (this.#left() < 0 || this.files() === 'busy' || (!text && this.files() === 'none')) return;
    this.fill('');
    this.onSend(text);
  }

  /** Characters left; the gateway counts code points, so an emoji is one. */
  #left() {
    return this.limit() - [...this.input.value.trim()].length;
  }

  #changed() {
    const { input, counter, button } = this;
    write('draft', input.value || null, sessionStorage);
    input.style.height = 'auto';
    input.style.height = `${input.scrollHeight}px`;
    const left = this.#left();
    counter.hidden = left > this.limit() * (1 - COUNT_FROM);
    counter.textContent = left < 0 ? t('compose.over', { count: -left }) : t('compose.left', { count: left });
    counter.classList.toggle('over', left < 0);
    input.setAttribute('aria-invalid', String(left < 0));
    const files = this.files();
    button.disabled = left < 0 || files === 'busy' || (files === 'none' && !input.value.trim());
  }
}

/**
 * The card that asks for the access token. The token comes from the person or from the browser's
 * storage, never from the address bar, and is kept only after the gateway has taken it.
 *
 * @module signin
 */

import { byId } from './dom.js';
import { read, write } from './settings.js';

export class SignIn {
  /** @param {() => void} onToken a token was entered and should be tried */
  constructor(onToken) {
    this.card = byId('signin');
    this.app = byId('app');
    /** @type {HTMLInputElement} */
    this.input = byId('token');
    this.message = byId('signin-message');
    this.button = byId('signin-button');
    this.token = read('token') ?? '';
    /** Whether the gateway has taken this token before. */
    this.proven = this.token !== '';
    byId('signin-form').addEventListener('submit', (/** @type {Event} */ event) => {
      event.preventDefault();
      const entered = this.input.value.trim();
      if (!entered) {
        this.say('Please enter the access token.');
        this.input.focus();
        return;
      }
      this.token = entered;
      this.proven = false;
      this.say('');
      this.#busy(true);
      onToken();
    });
  }

  get open() {
    return !this.card.hidden;
  }

  /** @param {string} [words] why the card is shown */
  show(words = '') {
    this.card.hidden = false;
    this.app.hidden = true;
    this.#busy(false);
    this.say(words);
    this.input.focus();
    this.input.select();
  }

  /** The gateway took the token. */
  accept() {
    this.proven = true;
    write('token', this.token);
    this.#busy(false);
    this.input.value = '';
    this.card.hidden = true;
    this.app.hidden = false;
  }

  /** Forgets the token here and in every tab. */
  forget() {
    this.token = '';
    this.proven = false;
    write('token', null);
  }

  /** @param {string} words */
  say(words) {
    this.message.textContent = words;
    this.message.hidden = !words;
    this.input.setAttribute('aria-invalid', String(Boolean(words)));
  }

  /** @param {boolean} busy */
  #busy(busy) {
    this.button.disabled = busy;
    this.button.textContent = busy ? 'Connecting…' : 'Sign in';
  }
}

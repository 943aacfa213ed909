/**
 * The card that asks for the access token. The token comes from the person, from the browser's storage or
 * from a link (`#token=…`), whose fragment is removed from the address bar at once and never sent to a server. It
 * is stored only after the gateway has accepted it.
 *
 * @module signin
 */

import { byId } from './dom.js';
import { read, write } from './settings.js';

const WRONG = 4401;
const TOO_MANY = 4429;
const WRONG_WORDS = 'This token is not right. Check it against the line that the gateway printed when it started.';
const STALE_WORDS = 'The access token has changed. Enter the one that the gateway printed when it started.';
const MANY_WORDS = 'Too many wrong tokens. Wait a minute, then try again.';

/** @returns {string} the token of the link that the page was opened with, removed from the address */
function takeLinked() {
  const linked = /^#token=([^&]+)$/.exec(location.hash);
  if (!linked) return '';
  history.replaceState(null, '', location.pathname);
  try {
    return decodeURIComponent(linked[1]).trim();
  } catch {
    return '';
  }
}

export class SignIn {
  /**
   * @param {() => void} onToken a token was entered and should be tried
   * @param {(words: string) => void} tell shows a text to a person who is signed in
   */
  constructor(onToken, tell) {
    this.tell = tell;
    this.card = byId('signin');
    this.app = byId('app');
    // From here on this class decides which of the two is shown (theme.js).
    delete document.documentElement.dataset.first;
    /** @type {HTMLInputElement} */
    this.input = byId('token');
    this.message = byId('signin-message');
    this.button = byId('signin-button');
    this.token = read('token') ?? '';
    /** Whether the gateway has accepted this token before. */
    this.proven = this.token !== '';
    /** The token replaced by a link's, until the gateway has accepted that one. */
    this.former = '';
    this.#useLinked();
    window.addEventListener('hashchange', () => {
      if (this.#useLinked()) onToken();
    });
    byId('signin-form').addEventListener('submit', (/** @type {Event} */ event) => {
      event.preventDefault();
      const entered = this.input.value.trim();
      if (!entered) {
        this.say('Please enter the access token.');
        this.input.focus();
        return;
      }
      this.token = entered;
      this.former = '';
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

  /** The gateway accepted the token. */
  accept() {
    this.proven = true;
    this.former = '';
    write('token', this.token);
    this.#busy(false);
    this.input.value = '';
    this.card.hidden = true;
    this.app.hidden = false;
  }

  /**
   * The gateway has closed the connection.
   *
   * @param {number} code @param {string} why in the gateway's words, or empty
   * @returns {'retry' | 'stop' | number} what to do next; a number is a pause in ms
   */
  closed(code, why) {
    if (code === WRONG || code === TOO_MANY) {
      if (this.#restore()) return 0;
      const stale = this.proven;
      this.forget();
      this.show(code === TOO_MANY ? MANY_WORDS : stale ? STALE_WORDS : WRONG_WORDS);
      return 'stop';
    }
    if (this.proven) return 'retry';
    this.show(why || 'The gateway cannot be reached. Is it running? Try again in a moment.');
    return 'stop';
  }

  /** A link's token was rejected: restores the one that this browser had. @returns {boolean} whether there is one */
  #restore() {
    if (!this.former) return false;
    this.token = this.former;
    this.former = '';
    this.proven = true;
    this.tell('The token of that link is not right. You are still signed in with the one that you had.');
    return true;
  }

  /** @returns {boolean} whether the address had a token, which is the one to try now */
  #useLinked() {
    const linked = takeLinked();
    if (!linked || linked === this.token) return false;
    this.former = this.proven ? this.token : '';
    this.token = linked;
    this.proven = false;
    return true;
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
